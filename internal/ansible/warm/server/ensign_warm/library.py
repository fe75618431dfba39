"""Ansible's library for modules, imported ahead as if from a payload.

A fork is given of it what its payload has byte by byte, with all that it imports, and
it looks as if it had been imported from there.
"""

import contextlib
import importlib
import linecache
import pkgutil
import platform
import re
import sys
import zipimport
from _imp import _fix_co_filename  # type: ignore[attr-defined]
from collections.abc import Sequence
from importlib import _bootstrap
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import PurePath
from types import CodeType, ModuleType
from typing import Any

from ensign_warm import effects, noting, sources

# What most modules import, and the one that gathers facts; from collections, all.
_NAMES = (
    "_internal._ansiballz._loader",
    "_internal._json._profiles._module_legacy_c2m",
    "_internal._json._profiles._module_legacy_m2c",
    "_text",
    "basic",
    "common.dict_transformations",
    "common.respawn",
    "compat.version",
    "facts.ansible_collector",
    "facts.default_collectors",
    "facts.namespace",
    "service",
    "urls",
)
# It looks for the classes that there are, and so is given out as a whole.
_WHOLE = "ansible.module_utils.facts"
# Where the trace of a failed import is kept, a frame of the import's that noted it is in it.
_NOTING = re.compile(rf'  File "{re.escape(noting.__file__)}", .*\n(?: {{4}}.*\n)*')
_ARCHIVE = "/ensign-warm/ansible_x_payload_x/ansible_x_payload.zip"  # There is none.


class Unfit(Exception):  # noqa: N818
    """The library does something when it is imported that can't be done for a fork later."""


class Importer(MetaPathFinder, Loader):
    """Imports the library, and notes what came of it."""

    def __init__(self, files: dict[str, sources.Source], done: effects.Effects) -> None:
        self._sources = files
        self._done = done
        self.codes: dict[str, CodeType] = {}
        self.absent: set[str] = set()
        self.failed: set[str] = set()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        del path, target
        if fullname.partition(".")[0] not in ("ansible", "ansible_collections"):
            return None
        if fullname not in self._sources:
            self.absent.add(fullname)
            return None
        return spec(self._sources[fullname], _ARCHIVE, self)

    def exec_module(self, module: ModuleType) -> None:
        name = module.__name__
        try:
            code = zipimport._compile_source(module.__file__, self._sources[name].content)  # type: ignore[attr-defined]
            with self._done.of(name):
                exec(code, module.__dict__)  # noqa: S102
        except BaseException:
            self.failed.add(name)
            raise
        self.codes[name] = code

    def get_source(self, fullname: str) -> str:
        """Return what traces show of a module."""
        return self._sources[fullname].content.decode()


def spec(source: sources.Source, archive: str, loader: Any) -> ModuleSpec:
    """Return what zipimport would, which compiles the source for it."""
    made = ModuleSpec(source.name, loader, origin=f"{archive}/{source.file}", is_package=source.package)
    made.has_location = True
    if source.package:
        made.submodule_search_locations = [f"{archive}/{sources.stem(source.name)}"]
    return made


class Library:
    """The modules that were imported ahead, and how they become those of a payload."""

    def __init__(self) -> None:
        self._sources = sources.installed()
        self._effects = effects.Effects()
        self._codes: dict[str, CodeType] = {}
        self._absent: set[str] = set()
        self._failed: set[str] = set()
        self._moving: dict[str, list[tuple[str, Any]]] = {}  # variables that tell from where the module was imported
        self._main = sys.modules["__main__"]
        self._place: str | None = None

    def load(self) -> None:
        """Import it. The modules are in sys.modules then, and all else is as before."""
        importer = Importer(self._sources, self._effects)
        platform.uname()  # It is kept, which is no effect of who asks first.
        before, settings = effects.state(), effects.settings()
        sys.meta_path.insert(0, importer)
        try:
            for name in self._names():
                with contextlib.suppress(ImportError):
                    importlib.import_module(name)
        finally:
            sys.meta_path.remove(importer)
            self._effects.undo()
            linecache.clearcache()
        self._codes, self._absent, self._failed = importer.codes, importer.absent, importer.failed
        if others := effects.changed(before, effects.state()):
            raise Unfit(", ".join(others))
        if settings != effects.settings():
            raise Unfit("settings")

    def _names(self) -> list[str]:
        core = [f"{sources.CORE}.{name}" for name in _NAMES]
        return core + [name for name in self._sources if name.startswith(sources.COLLECTIONS)]

    def settle(self, modules: dict[str, ModuleType], graph: dict[str, set[str]]) -> None:
        """Leave out of the modules to give out what each fork has to run itself."""
        for name in sources.OPEN:
            modules.pop(name, None)
        self._sources = {n: source for n, source in self._sources.items() if n in modules or n in sources.OPEN}
        whole = {name for name in self._sources if name.startswith(_WHOLE)}
        for name in whole:
            graph.setdefault(name, set()).update(whole)
        for name, source in self._sources.items():
            source.pack()
            if name in modules and modules[name].__name__ == name:  # Some put another one in their place.
                self._moving[name] = [pair for pair in modules[name].__dict__.items() if self._moves(*pair)]
                modules[name].__file__ = source.origin or None

    def _moves(self, variable: str, value: object) -> bool:
        ours = isinstance(value, str | PurePath) and (_ARCHIVE in str(value) or noting.__file__ in str(value))
        return value is self._main or (ours and not variable.startswith("__"))

    def __contains__(self, name: str) -> bool:
        return name in self._sources

    def differing(self) -> set[str]:
        """Name what this fork's payload does not have, or has otherwise. That is told once."""
        if self._place is not None:
            return set()
        self._place = sys.path[0] if sys.path and sources.is_place(sys.path[0]) else ""
        toc = zipimport._zip_directory_cache.get(self._place)  # type: ignore[attr-defined]
        if not toc or self._effects.disturbed():
            return set(self._sources)
        with open(self._place, "rb") as file:
            archive = file.read()
        different = {name for name, source in self._sources.items() if not source.same(archive, toc)}
        if different.intersection(sources.OPEN) or any(sources.forms(name, toc) for name in self._absent):
            return set(self._sources)
        return different

    def leads(self, name: str, path: Sequence[str] | None) -> bool:
        """Tell whether an import would look for the module in the payload first."""
        package = name.rpartition(".")[0]
        first = list(path or ())[:1] if package else sys.path[:1]
        return first == [f"{self._place}/{sources.stem(package)}" if package else self._place]

    def working(self) -> set[str]:
        """Name all if something can be imported now that could not be then. That is told once."""
        failed, self._failed = self._failed, set()
        for name in failed:
            with contextlib.suppress(ImportError):
                importlib.import_module(name)
                return set(self._sources)
        return set()

    def dress(self, name: str, module: ModuleType) -> None:
        """Let the module look as if it had been imported from the payload, and do what it does then."""
        self._effects.do(name)
        if name not in self._moving:
            return
        source, package = self._sources[name], name.rpartition(".")[0]
        importer = pkgutil.get_importer(f"{self._place}/{sources.stem(package)}" if package else str(self._place))
        made = spec(source, str(self._place), importer)
        _bootstrap._init_module_attrs(made, module, override=True)
        _fix_co_filename(self._codes[name], made.origin)
        for variable, value in self._moving[name]:
            here = sys.modules["__main__"] if value is self._main else self._moved(value)
            module.__dict__[variable] = here

    def _moved(self, value: Any) -> Any:
        return type(value)(_NOTING.sub("", str(value)).replace(_ARCHIVE, str(self._place)))
