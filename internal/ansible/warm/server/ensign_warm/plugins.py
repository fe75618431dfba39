"""Files of Ansible's own plugins that each run executes: executed once, in the server.

Their modules have names that a role's plugins may have, and Ansible takes the first that it has executed.
So a run has none of them before it asks for that very file.
"""

import contextlib
import importlib
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from ensign_warm.parsed import files

# Not those of caches: one of its files warns that it is deprecated.
_KINDS = ("become", "callback", "connection", "filter", "inventory", "shell", "strategy", "test", "vars")


class Plugins:
    """Modules of plugins, which are not in sys.modules."""

    def __init__(self) -> None:
        self._modules: dict[str, ModuleType] = {}  # by name

    def load(self) -> list[ModuleType]:
        """Execute the files, in the server, and return their modules."""
        base = importlib.import_module("ansible.plugins.loader").PluginLoader
        for name, path in _named():
            with contextlib.suppress(Exception):  # Each run executes it, and says what is wrong.
                self._modules[name] = base._load_module_source(None, python_module_name=name, path=path)
        for name in self._modules:
            del sys.modules[name]
        return list(self._modules.values())

    def give_out(self) -> None:
        """Have Ansible find a module when it asks for its file, in a fork."""
        base = importlib.import_module("ansible.plugins.loader").PluginLoader
        original = base._load_module_source

        def load(own: object, *, python_module_name: str, path: str) -> Any:
            module = self._modules.get(python_module_name)
            if module is not None and module.__file__ == path:
                sys.modules.setdefault(python_module_name, module)
            return original(own, python_module_name=python_module_name, path=path)

        base._load_module_source = load


def _named() -> Iterator[tuple[str, str]]:
    """Return the names that Ansible gives to the modules, and their files."""
    loader = importlib.import_module("ansible.plugins.loader")
    for kind in _KINDS:
        for path in files("plugins", kind):
            plugin = path.rpartition("/")[2].removesuffix(".py")
            context = loader.PluginLoadContext(kind, f"ansible.plugins.{kind}")
            context.resolve_legacy(plugin, {plugin: loader.PluginPathContext(path, True)})
            yield context._python_module_name, path
