"""The error by which Ansible refuses to load content: where it is, and which names are nearly right."""

import contextlib
import importlib
import re
from typing import Any

import ensign_near

_MODULE = re.compile(r"couldn't resolve module/action '([\w.]+)'")
_ROLE = re.compile(r"[Tt]he role '([\w.-]+)' was not found in:? (\S+)")


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
        return ensign_near.modules(found[1])
    if found := _ROLE.search(message):
        return ensign_near.roles(found[1], found[2].split(":"))
    return []
