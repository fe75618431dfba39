"""Ansible's own plugins, executed ahead.

A fork is given one where Ansible's loader would execute that very file under that very
name: not where a role has a plugin of the same name, whose file is another, not where
the name is taken, and not where by now the plugin could import something that it did
without. Executed ahead are only those that can't tell when that is done,
as their source shows: at its top level it calls next to nothing, and looks at nothing
that a run may have its own of.
"""

import ast
import contextlib
import functools
import importlib
import importlib.util
import inspect
import os
import sys
from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import Any, NamedTuple

_KINDS = (
    *("action", "become", "cache", "callback", "connection", "doc_fragments"),
    *("inventory", "lookup", "shell", "strategy", "vars"),
)
_PACKAGE = "ansible.plugins"
# What the source may call and look at when it is executed. Ansible has one display in a process.
_CALLED = {"Display", "frozenset", "re.compile", "set", "type"}
_DECORATORS = {"_clean_resources", "_ssh_retry", "classmethod", "functools.cached_property", "property", "staticmethod"}
_ATTRIBUTES = {"TYPE_CHECKING", "cached_property", "compile", "search", "version_info"}
# What is another in each fork, and may only be looked up there.
_OWN = {"ansible.constants", "os", "sys", "tempfile"}
_OWN_NAMES = {"random_int"}
_PARAMETERS = ["self", "python_module_name", "path"]


class Plugin(NamedTuple):
    """A plugin that was executed, with those that it has imported, and what they all could not import."""

    module: ModuleType
    others: dict[str, ModuleType]
    absent: frozenset[str]


class Plugins:
    """Plugins by their names and files."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], Plugin] = {}

    def load(self) -> list[ModuleType]:
        """Execute the plugins, in the server, and return them; sys.modules has none of them then."""
        execute = getattr(_loader(), "_load_module_source", None)
        if execute is None or list(inspect.signature(execute).parameters) != _PARAMETERS:
            return []  # Another version of Ansible.
        files, before = dict(_files()), set(sys.modules)
        for path in files.values():
            with contextlib.suppress(Exception):
                _read(path)  # First of all, so that no memory for it is left between what stays.
        for name in files:
            with contextlib.suppress(Exception):  # It fails in a fork, then.
                self._load(name, files, execute)
        for name in set(sys.modules) - before:
            _put(name, None)
        _read.cache_clear()
        return self.modules()

    def modules(self) -> list[ModuleType]:
        return [plugin.module for plugin in self._known.values()]

    def give_out(self) -> None:
        """Have Ansible's loader ask here, in a fork."""
        if not self._known:
            return
        loader = _loader()
        original = loader._load_module_source

        def load(asked: object, *, python_module_name: str, path: str) -> Any:
            given = self._given(python_module_name, path)
            return given or original(asked, python_module_name=python_module_name, path=path)

        loader._load_module_source = load

    def _given(self, name: str, path: str) -> ModuleType | None:
        plugin = self._known.get((name, path))
        if plugin is None or name in sys.modules:
            return None
        if any(sys.modules.get(other, module) is not module for other, module in plugin.others.items()):
            return None  # It would get another one where it imports that.
        if any(map(_can_be, plugin.absent)):
            return None  # It would import that by now.
        for other, module in plugin.others.items():
            if other not in sys.modules:
                _put(other, module)
        sys.modules[name] = plugin.module
        return plugin.module

    def _load(self, name: str, files: dict[str, str], execute: Any) -> Plugin | None:
        """Execute a plugin, if what it imports is there by then, or can't be imported."""
        key = name, files[name]
        if key in self._known or name in sys.modules:
            return self._known.get(key)
        imports, timeless = _read(files[name])
        others: dict[str, ModuleType] = {}
        absent = {other for other in imports if not _can_be(other)}
        for other in imports - absent:
            plugin = self._load(other, files, execute) if other in files else None
            if plugin is not None:
                others |= {other: plugin.module, **plugin.others}
                absent |= plugin.absent
            elif other not in sys.modules:
                return None
        before = set(sys.modules)
        if timeless:
            plugin = Plugin(execute(None, python_module_name=name, path=files[name]), others, frozenset(absent))
            if set(sys.modules) - before == {name}:
                self._known[key] = plugin
        return self._known.get(key)


def _loader() -> Any:
    return importlib.import_module(f"{_PACKAGE}.loader").PluginLoader


def _put(name: str, module: ModuleType | None) -> None:
    """Let it be imported, or not."""
    parent, _, last = name.rpartition(".")
    if module is not None:
        sys.modules[name] = module
        setattr(sys.modules[parent], last, module)
    else:
        del sys.modules[name]
        sys.modules[parent].__dict__.pop(last, None)


def _files() -> Iterator[tuple[str, str]]:
    """Return plugins, which the loader finds by these names."""
    package = os.path.dirname(str(importlib.import_module(_PACKAGE).__file__))
    for kind in _KINDS:
        importlib.import_module(f"{_PACKAGE}.{kind}")
        for file in sorted(os.listdir(os.path.join(package, kind))):
            if file.endswith(".py") and file != "__init__.py":
                yield f"{_PACKAGE}.{kind}.{file.removesuffix('.py')}", os.path.join(package, kind, file)


@functools.cache
def _read(path: str) -> tuple[set[str], bool]:
    """Return what a plugin imports, and whether it does the same whenever it is executed."""
    with open(path, "rb") as file:
        top = list(_top(ast.parse(file.read())))
    return _imports(top), all(map(_is_timeless, top))


def _top(tree: ast.Module) -> Iterator[ast.AST]:
    """Return all of the source that is executed by its import."""
    todo: list[ast.AST] = list(tree.body)
    while todo:
        node = todo.pop()
        yield node
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            todo += [*node.decorator_list, *node.args.defaults, *filter(None, node.args.kw_defaults)]
        elif isinstance(node, ast.Try) and not all(map(_can_be, _imports(node.body[:1]))):
            todo += [node.body[0], *node.handlers, *node.finalbody]  # That import fails.
        elif isinstance(node, ast.Lambda):
            todo.append(node.args)
        else:
            todo += ast.iter_child_nodes(node)


def _imports(top: Iterable[ast.AST]) -> set[str]:
    """Name the modules that are imported; "." stands for what is named relatively."""
    found: set[str] = set()
    for node in top:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module if node.module and not node.level else ".")
    return found


def _can_be(name: str) -> bool:
    """Tell whether the module's first package can be imported."""
    first = name.partition(".")[0]
    return not first or first in sys.modules or importlib.util.find_spec(first) is not None


def _is_timeless(node: ast.AST) -> bool:
    """Tell whether that part of a source does the same whenever it is executed."""
    if isinstance(node, ast.Call):
        return ast.unparse(node.func) in _CALLED
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return all(ast.unparse(one) in _DECORATORS for one in node.decorator_list)
    if isinstance(node, ast.AugAssign | ast.Subscript):  # It may be what somebody else has.
        return isinstance(getattr(node, "ctx", None), ast.Load)
    if isinstance(node, ast.Attribute):
        return node.attr in _ATTRIBUTES
    if isinstance(node, ast.ImportFrom):
        return node.module not in _OWN and not any(alias.name in _OWN_NAMES for alias in node.names)
    return True
