#!/usr/bin/python
"""A module for tests: it describes what it finds of Ansible's library."""

# IMPORTS
import dataclasses
import re
import socket
import sys
import types
import warnings
from pathlib import PurePath

from ansible.module_utils.basic import AnsibleModule

UNLIKE = ("__builtins__", "_PARSED_MODULE_ARGS", "seen")
IMPLIED = ("__dict__", "__weakref__", "_abc_impl", "__annotations__", "__annotations_cache__", "__annotate_func__")
LIBRARIES = ("kubernetes", "distro", "argparse", "ctypes", "cryptography")
seen: set[type] = set()


def text(value):
    """Return a text without what differs from process to process."""
    return re.sub(r" (at 0x|handle )[0-9a-f]+", "", str(value))


def code(value):
    inner = [code(part) for part in value.co_consts if isinstance(part, types.CodeType)]
    return [value.co_filename, value.co_firstlineno, value.co_qualname, inner]


def show(value):  # noqa: PLR0911
    kind = type(value).__name__
    if isinstance(value, types.FunctionType):
        return [kind, value.__module__, code(value.__code__), text(value.__defaults__)]
    if isinstance(value, types.ModuleType):
        return [kind, value.__name__]
    if isinstance(value, type):
        return [kind, value.__module__, value.__qualname__, *klass(value)]
    if isinstance(value, (str, bytes, int, float, PurePath, re.Pattern, types.NoneType)):
        return [kind, text(value)]
    if isinstance(value, (list, tuple)):
        return [kind, [show(part) for part in value]]
    if isinstance(value, dict):
        return [kind, sorted([text(name), show(part)] for name, part in value.items())]
    if isinstance(value, (set, frozenset)):
        return [kind, sorted(text(part) for part in value)]
    return [kind, "" if "object" in repr(value) else text(value)]


def klass(value):
    if value in seen or not value.__module__.startswith("ansible"):
        return []
    seen.add(value)
    return [[name, show(part)] for name, part in sorted(value.__dict__.items()) if name not in IMPLIED]


def main():
    module = AnsibleModule({})
    names = sorted(name for name in sys.modules if name.startswith("ansible"))
    found = {
        name: sorted([key, show(value)] for key, value in vars(sys.modules[name]).items() if key not in UNLIKE)
        for name in names
    }
    loaded_from = [(name, sys.modules[name].__spec__) for name in names]
    specs = {name: [text(spec), spec.cached, spec.has_location] for name, spec in loaded_from if spec is not None}
    mended = [sys.intern, socket.getaddrinfo, vars(dataclasses)["_is_type"]]
    effects = [type(function).__module__ for function in mended]
    silent = [text(f) for f in warnings.filters if "HTTPWarning" in str(f)]
    paths = [key for key in sorted(sys.path_importer_cache) if "payload" in key and "site-packages" not in key]
    loaded = [name for name in sorted(sys.modules) if name.partition(".")[0] in LIBRARIES]
    module.exit_json(found=found, specs=specs, effects=effects, silent=silent, paths=paths, loaded=loaded)


if __name__ == "__main__":
    main()
