"""Modules that were imported ahead, and are given out when they are asked for.

Until then sys.modules is that of a new interpreter. A module that is asked for is
the one imported ahead only if an import would find the same file: the search path
and the other finders must be as they were. With it come the modules that it has
imported itself, as in an import.
"""

import os
import sys
from collections.abc import Callable, Container, Iterable, Mapping, Sequence, Set
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Protocol

from ensign_warm import sources

Graph = dict[str, set[str]]
Names = frozenset[str]
_NONE: Names = frozenset()


def load(names: Iterable[str]) -> None:
    """Import the modules. One that can't be imported is left to the program."""
    for name in names:
        try:
            import_module(name)
        except Exception:  # noqa: S112
            continue


def take(before: set[str], graph: Graph) -> dict[str, ModuleType]:
    """Take out of sys.modules what was not there before."""
    sys.modules.pop("__mp_main__", None)  # The server's own script, by a name that multiprocessing gives it.
    taken = {
        name: sys.modules.pop(name)
        for name in [n for n in sys.modules if n not in before]
        if isinstance(sys.modules[name], ModuleType)
    }
    for name, module in taken.items():
        package, _, part = name.rpartition(".")
        if module.__spec__ is not None and module.__spec__.name != name:
            graph.setdefault(package, set()).add(name)  # Another name that the package has given to it.
        holder = taken.get(package) or sys.modules.get(package)
        # What a package imports itself comes with it, and is one of its own names.
        if holder is not None and holder.__dict__.get(part) is module and name not in graph.get(package, ()):
            del holder.__dict__[part]
    return taken


class Given(Protocol):
    """Modules that look different in each fork."""

    def __contains__(self, name: str) -> bool: ...

    def differing(self) -> set[str]:
        """Name those that this fork must not have. That is told once."""

    def working(self) -> set[str]:
        """Name further ones, which other modules of the stash may have to be given out for. That is told once."""

    def leads(self, name: str, path: Sequence[str] | None) -> bool:
        """Tell whether an import by this path would find the module."""

    def dress(self, name: str, module: ModuleType) -> None:
        """Let the module look as in this fork; called once it is in sys.modules."""


class Stash(MetaPathFinder, Loader):
    """Gives modules out. It must be the first of the finders."""

    def __init__(
        self, modules: dict[str, ModuleType], graph: Graph, same: Callable[[], bool], given: Given | None = None
    ) -> None:
        self._modules = modules
        self._same = same
        self._given = given
        self._giving: ModuleSpec | None = None
        self._needs = compact({name: needs(name, graph, modules) for name in modules})
        self._users = compact(inverted(self._needs))
        everything = sys.modules | modules
        self._apart = {name for name in modules if is_apart(name, everything)}
        self._dressed = {name for name in modules if given is not None and name in given}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        del target
        if fullname not in self._modules:
            return None
        if not self._fits(fullname, path):
            self._forget({fullname})
        return ModuleSpec(fullname, self) if fullname in self._modules else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = self._modules[spec.name]
        self._giving = module.__spec__  # The import is about to replace it.
        return module

    def exec_module(self, module: ModuleType) -> None:
        name = module.__spec__.name if module.__spec__ is not None else module.__name__
        module.__spec__ = self._giving
        needed = self._bring(name)
        if "multiprocessing" in (name, *needed):
            sys.modules["__mp_main__"] = sys.modules["__main__"]  # It does that when it is imported.
        for other in self._apart.intersection(needed):
            package, _, part = other.rpartition(".")
            if package in sys.modules and part not in sys.modules[package].__dict__:
                sys.modules[package].__dict__[part] = self._modules[other]
        for other in (*self._dressed.intersection(needed), *self._dressed.intersection((name,))):
            if self._given is not None:
                self._given.dress(other, self._modules[other])

    def _bring(self, name: str) -> list[str]:
        """Put into sys.modules what an import of the module imports with it. What is there has all that it needs."""
        brought: list[str] = []
        pending = [name]
        while pending:
            for other in self._needs[pending.pop()].difference(sys.modules):
                if other in self._modules:
                    sys.modules[other] = self._modules[other]
                    brought.append(other)
                    pending.append(other)
        return brought

    def _fits(self, name: str, path: Sequence[str] | None) -> bool:
        """Tell whether an import would find the same module, and its package is from here or was there before."""
        package = name.rpartition(".")[0]
        if package in self._modules and sys.modules.get(package) is not self._modules[package]:
            return False
        if self._given is None or name not in self._given:
            return self._same()
        self._forget(self._given.differing())
        self._forget(self._given.working())
        return self._given.leads(name, path) and self._same()

    def _forget(self, names: set[str]) -> None:
        """Give nothing out any more that uses a module of which there is going to be another copy."""
        for name in reachable(names, self._users):
            if name in self._modules and sys.modules.get(name) is not self._modules[name]:
                del self._modules[name]


def is_apart(name: str, modules: dict[str, ModuleType]) -> bool:
    """Tell whether a module's package, or another copy of it that is made later, does not have it."""
    package, _, part = name.rpartition(".")
    return package != "" and (package not in modules or part not in modules[package].__dict__)


def needs(name: str, graph: Graph, modules: Container[str]) -> set[str]:
    """Return which of the modules an import of this one imports, as far as itself asks for them."""
    asked = graph.get(name, set())
    # A name that could not be imported has brought its packages.
    found = {*sources.packages(name), *asked, *(package for other in asked for package in sources.packages(other))}
    return {other for other in found if other in modules}


def inverted(graph: Mapping[str, Iterable[str]]) -> Graph:
    """Return who needs each name."""
    users: Graph = {}
    for name, needed in graph.items():
        for other in needed:
            users.setdefault(other, set()).add(name)
    return users


def compact(graph: Graph) -> dict[str, Names]:
    """Return the graph with one set for all who need the same, as thousands do."""
    shared: dict[Names, Names] = {}
    return {name: shared.setdefault(found, found) for name, found in ((n, frozenset(s)) for n, s in graph.items())}


def reachable(names: Iterable[str], graph: Mapping[str, Set[str]]) -> set[str]:
    """Return the names, and all that a way in the graph leads to."""
    found = set(names)
    pending = list(found)
    while pending:
        further = graph.get(pending.pop(), _NONE) - found
        found |= further
        pending.extend(further)
    return found


class SearchPath:
    """Tells whether the search path finds the same modules as at the start."""

    def __init__(self, names: Iterable[str]) -> None:
        self._path = list(sys.path)
        self._finders = list(sys.meta_path)
        self._hooks = list(sys.path_hooks)
        # Not those that an import does not look for in the path.
        known = {"", *sys.builtin_module_names, *sys.modules}
        self._names = {name.partition(".")[0] for name in names} - known

    def same(self) -> bool:
        further = [place for place in sys.path if place not in self._path]
        return (
            [place for place in sys.path if place in self._path] == self._path
            and [f for f in sys.meta_path if not isinstance(f, Stash)] == self._finders
            and sys.path_hooks == self._hooks
            and not any(self.hides(place) for place in further)
        )

    def hides(self, place: str) -> bool:
        """Tell whether a module in that place could be found instead of one that is there."""
        if sources.is_place(place):
            return False  # It holds the packages ansible and ansible_collections.
        try:
            return any(entry.partition(".")[0] in self._names for entry in os.listdir(place or "."))
        except FileNotFoundError:
            return False
        except OSError:
            return True
