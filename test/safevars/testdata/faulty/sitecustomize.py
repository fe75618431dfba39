"""A fault in Ansible: what is marked as untrusted is templated after all.

Python imports this file at its start wherever PYTHONPATH names its directory.
It changes one line of Ansible's source as it is imported.
"""

import importlib.machinery
import sys
import types
from collections.abc import Sequence

MODULE = "ansible._internal._json._profiles._legacy"
RIGHT = "            result = value.value\n"
WRONG = "            result = _tags.TrustedAsTemplate().tag(value.value)\n"


class Loader(importlib.machinery.SourceFileLoader):
    """Compiles the changed source."""

    def get_code(self, fullname: str) -> types.CodeType:
        source = self.get_data(self.path).decode()
        if source.count(RIGHT) != 1:
            sys.exit("the line to change is not there")
        return compile(source.replace(RIGHT, WRONG), self.path, "exec")


class Finder:
    """Finds the one module."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: object = None) -> importlib.machinery.ModuleSpec | None:
        if name != MODULE:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec is not None and spec.origin is not None:
            spec.loader = Loader(name, spec.origin)
        return spec


sys.meta_path.insert(0, Finder)
