"""What is known of the error by which Ansible refuses to load content: where it is, and which names are nearly right."""

import contextlib
import difflib
import glob
import importlib
import os
import re
from typing import Any

_MODULE = re.compile(r"couldn't resolve module/action '([\w.]+)'")
_ROLE = re.compile(r"[Tt]he role '([\w.-]+)' was not found in:? (\S+)")
_MAX_NAMES = 3


def refusal_of(error: BaseException) -> dict[str, Any] | None:
    """Return the place and the near names of an error that refuses content; None for any other error.

    What Ansible could not parse, find or decrypt is content, and so is what an error points to in a file. An error
    about options, the inventory or a worker that has died is of no such kind.
    """
    errors: Any = importlib.import_module("ansible.errors")
    if not isinstance(error, errors.AnsibleError) or isinstance(error, errors.AnsibleOptionsError):
        return None
    message, place = str(error), place_of(error)
    unreadable = isinstance(error, (errors.AnsibleParserError, errors.AnsibleFileNotFound))
    if not (unreadable or place or message.startswith("The requested handler ")):
        return None
    near: list[str] = []
    with contextlib.suppress(Exception):  # A version of Ansible without these parts has no suggestions.
        near = near_names(message)
    return {"task_path": place, "res": {"near": near}}


def place_of(error: BaseException) -> str:
    """Return the file and line to which Ansible points in its message, as file:line; "" if it knows none."""
    with contextlib.suppress(ImportError, AttributeError):
        origins: Any = importlib.import_module("ansible._internal._datatag._tags").Origin
        value = getattr(error, "obj", None)
        origin = value if isinstance(value, origins) else origins.get_tag(value)
        if origin and origin.path:
            return f"{origin.path}:{origin.line_num or 1}"
    return ""


def near_names(message: str) -> list[str]:
    """Return the modules or roles that may be meant by the name that Ansible has not found."""
    if found := _MODULE.search(message):
        return near_modules(found[1])
    if found := _ROLE.search(message):
        roles = {name for place in found[2].split(":") if os.path.isdir(place) for name in os.listdir(place)}
        return difflib.get_close_matches(found[1], sorted(roles), _MAX_NAMES)
    return []


def near_modules(name: str) -> list[str]:
    collection, _, short = name.rpartition(".")
    roots = importlib.import_module("ansible.utils.collection_loader").AnsibleCollectionConfig.collection_paths
    known = modules_of(roots, collection)
    if not collection:
        known |= stems(os.path.dirname(str(importlib.import_module("ansible.modules").__file__)), "*")
    near = difflib.get_close_matches(name, sorted(known), _MAX_NAMES)
    # A module of this very name in another collection: the collection was left out, or is another one.
    return near or sorted(modules_of(roots, "*.*", short))[:_MAX_NAMES]


def modules_of(roots: list[str], collection: str, short: str = "*") -> set[str]:
    """Return the full names of modules in the collections."""
    found = set()
    if collection.count(".") == 1:
        for root in roots:
            pattern = os.path.join(root, "ansible_collections", *collection.split("."))
            for place in glob.glob(pattern):
                owner = ".".join(place.split(os.sep)[-2:])
                for folder in ("modules", "action"):
                    found |= {f"{owner}.{stem}" for stem in stems(os.path.join(place, "plugins", folder), short)}
    return found


def stems(folder: str, name: str) -> set[str]:
    return {os.path.basename(path)[:-3] for path in glob.glob(os.path.join(glob.escape(folder), f"{name}.py"))} - {"__init__"}
