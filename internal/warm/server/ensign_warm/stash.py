"""Modules that were imported ahead, and are given out when they are asked for.

Until then sys.modules is that of a new interpreter. A module that is asked for is
the one imported ahead only if an import would find the same file: the search path
and the other finders must be as they were. With it come the modules that it has
imported itself, as in an import.
"""

import os
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

Graph = dict[str, set[str]]


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


class Stash(MetaPathFinder, Loader):
    """Gives modules out. It must be the first of the finders."""

    def __init__(self, modules: dict[str, ModuleType], graph: Graph, same: Callable[[], bool]) -> None:
        self._modules = modules
        self._graph = graph
        self._same = same
        self._giving: ModuleSpec | None = None

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        del path, target
        if fullname not in self._modules:
            return None
        if not self._whole(fullname) or not self._same():
            self._forget(fullname)
            return None
        return ModuleSpec(fullname, self)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = self._modules[spec.name]
        self._giving = module.__spec__  # The import is about to replace it.
        return module

    def exec_module(self, module: ModuleType) -> None:
        name = module.__spec__.name if module.__spec__ is not None else module.__name__
        module.__spec__ = self._giving
        needed = [n for n in self._closure(name) if n not in sys.modules]
        for other in needed:
            sys.modules[other] = self._modules[other]
        if "multiprocessing" in (name, *needed):
            sys.modules["__mp_main__"] = sys.modules["__main__"]  # It does that when it is imported.
        for other in needed:
            package, _, part = other.rpartition(".")
            if package in sys.modules and part not in sys.modules[package].__dict__:
                sys.modules[package].__dict__[part] = self._modules[other]

    def _whole(self, name: str) -> bool:
        """Tell whether the package of a module is from here, or was there before."""
        package = name.rpartition(".")[0]
        return package not in self._modules or sys.modules.get(package) is self._modules[package]

    def _forget(self, name: str) -> None:
        """Give nothing out any more that uses a module of which there is going to be another copy."""
        for user in [n for n in self._modules if n == name or name in self._closure(n)]:
            if sys.modules.get(user) is not self._modules[user]:
                del self._modules[user]

    def _closure(self, name: str) -> set[str]:
        """Return what an import of the module imports with it."""
        found: set[str] = set()
        pending = [name]
        while pending:
            current = pending.pop()
            asked = self._graph.get(current, ())
            # A name that could not be imported has brought its packages.
            for needed in (*_packages(current), *asked, *(p for name in asked for p in _packages(name))):
                if needed not in found and needed in self._modules:
                    found.add(needed)
                    pending.append(needed)
        return found


def _packages(name: str) -> list[str]:
    parts = name.split(".")[:-1]
    return [".".join(parts[: n + 1]) for n in range(len(parts))]


class SearchPath:
    """Tells whether the search path finds the same modules as at the start."""

    def __init__(self, names: Iterable[str]) -> None:
        self._path = list(sys.path)
        self._finders = list(sys.meta_path)
        self._hooks = list(sys.path_hooks)
        self._names = {name.partition(".")[0] for name in names}

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
        if _PAYLOAD.search(place):
            return False  # It holds the packages ansible and ansible_collections.
        try:
            return any(entry.partition(".")[0] in self._names for entry in os.listdir(place or "."))
        except FileNotFoundError:
            return False
        except OSError:
            return True


_PAYLOAD = re.compile(r"/ansible_[^/]+_payload_[^/]+/ansible_[^/]+_payload\.zip$")
