"""Which sources of Ansible, ansible-runner and Jinja warm runs are known to work with.

known.json has the functions and modules that each mechanism replaces or relies on, with digests of their
sources in the versions that were tried (../known.py). A mechanism is off where one has another source.

What the mechanisms are: "run" is forks that become runs (run.py, ../../runner/program): without
it all runs are cold. "modules" is modules in forks of the worker (modules.py, apart.py): without
it they are started as in a cold run. The others are those of parsed.py and templates.py.
"""

import hashlib
import importlib
import importlib.util
import inspect
import json
import linecache
import os
from typing import Any

KNOWN = os.path.join(os.path.dirname(__file__), "known.json")


def digest(function: str) -> str:
    """Return a digest of the source of a function, or of a module, which is not imported; "" if there is none."""
    try:
        return hashlib.sha256(_source(function)).hexdigest()[:16]
    except (AttributeError, ImportError, OSError, TypeError):
        return ""


def _source(function: str) -> bytes:
    place, _, path = function.partition(":")
    if not path:
        spec = importlib.util.find_spec(place)
        if spec is None or spec.origin is None:
            raise ImportError(place)
        with open(spec.origin, "rb") as file:
            return file.read()
    found: Any = importlib.import_module(place)
    for name in path.split("."):
        found = getattr(found, name)
    return inspect.getsource(inspect.unwrap(found)).encode()


def unknown() -> dict[str, str]:
    """Return the mechanisms that must be off, each with a function whose source is not known."""
    with open(KNOWN, encoding="utf-8") as file:
        known = json.load(file)
    found = {m: f for m, functions in known.items() for f, digests in functions.items() if digest(f) not in digests}
    linecache.clearcache()
    return found
