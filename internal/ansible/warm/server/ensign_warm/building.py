"""How a module's payload is built, by Ansible's own functions, with a look at what they look at."""

import base64
import datetime
import importlib
import importlib.machinery
import io
import json
import os
import pickle
import pkgutil
import sys
import time
import zipfile
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

# What changes when a file or directory does: device, number, size and times.
Stamp = tuple[int, int, int, int, int] | None
Built = tuple[bytes, tuple[tuple[str, Stamp], ...]]

_COMMON = "ansible.executor.module_common"
_FINDER = "ansible.utils.collection_loader._collection_finder"
# What changed shortly before it was looked at may change again without a sign of it, as
# long as a file system's clock stands still. In nanoseconds.
_UNSETTLED = 50_000_000


class Wanted(NamedTuple):
    """All that a payload depends on besides the content of files."""

    name: str
    fqn: str
    path: str
    compression: str
    utilities: tuple[str, ...]  # the directories of module_utils, in the order in which they are searched
    collections: tuple[str, ...]  # where collections are searched


class _UnfitError(Exception):
    """To build the payload says something, which has to be said each time."""


def stamp(path: str) -> Stamp:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def wanted(name: str, fqn: str, path: str, compression: str) -> Wanted:
    """Return what a payload of the module would depend on in this process of Ansible's."""
    common, finder = importlib.import_module(_COMMON), importlib.import_module(_FINDER)
    utilities = tuple(p for p in common.module_utils_loader._get_paths(subdirs=False) if os.path.isdir(p))
    roots = finder.AnsibleCollectionConfig.collection_finder._n_collection_paths
    collections = tuple(p for p in roots if os.path.isdir(os.path.join(p, "ansible_collections")))
    return Wanted(str(name), str(fqn), str(path), str(compression), utilities, collections)


def parse(note: bytes) -> Wanted | None:
    """Return what a fork has noted, if it can be that."""
    try:
        name, fqn, path, compression, utilities, collections = json.loads(note)
        found = Wanted(name, fqn, path, compression, tuple(utilities), tuple(collections))
    except (ValueError, TypeError):
        return None
    texts = (*found[:4], *found.utilities, *found.collections)
    return found if all(isinstance(text, str) for text in texts) else None


def build(of: Wanted) -> Built | None:
    """Build a payload, in a process for that: without content if it must not be kept, None if it may be later."""
    begun = time.time_ns()
    common = importlib.import_module(_COMMON)
    importlib.invalidate_caches()
    _silence(common.display)
    seen = _Seen(of)
    seen.watch(common)
    _find_collections(of.collections)
    common.module_utils_loader._get_paths = lambda subdirs: list(of.utilities)  # noqa: ARG005
    try:
        content = _payload(common, of)
    except Exception:
        content = b""
    stamps = seen.stamps()
    newest = max((max(taken[3:]) for _, taken in stamps if taken is not None), default=0)
    return (content, stamps) if newest < begun - _UNSETTLED else None


def _payload(common: Any, of: Wanted) -> bytes:
    """Do what Ansible's function of the name _find_module_utils does for lack of a payload."""
    with open(of.path, "rb") as file:
        source = file.read()
    source = source.replace(common.REPLACER, b"from ansible.module_utils.basic import *")
    now = datetime.datetime.now(datetime.UTC)
    manager = common._builder.ExtensionManager()
    buffer = io.BytesIO()
    archive = zipfile.ZipFile(buffer, mode="w", compression=getattr(zipfile, of.compression))
    tagged = common.Origin(path=of.path).tag(source)
    metadata = common.recursive_finder(of.name, of.fqn, tagged, archive, now, manager)
    common._add_module_to_zip(archive, now, of.fqn, source, of.path, manager)
    archive.close()
    data = base64.b64encode(buffer.getvalue())
    return pickle.dumps(common._CachedModule(zip_data=data, metadata=metadata, source_mapping=manager.source_mapping))


def _silence(display: Any) -> None:
    def unfit(*_: object, **__: object) -> None:
        raise _UnfitError

    for name in ("display", "warning", "deprecated", "error", "error_as_warning", "v", "vv"):
        setattr(display, name, unfit)
    for name in ("debug", "vvv", "vvvv", "vvvvv", "vvvvvv"):
        setattr(display, name, lambda *_, **__: None)


def _find_collections(roots: Iterable[str]) -> None:
    loader, finder = importlib.import_module("ansible.plugins.loader"), importlib.import_module(_FINDER)
    finder._AnsibleCollectionFinder(list(roots), scan_sys_paths=False)._install()
    finder.AnsibleCollectionConfig.on_collection_load += loader._on_collection_load_handler


class _Seen:
    """Notes the files and directories that are looked at."""

    def __init__(self, of: Wanted) -> None:
        self._places: set[str] = {of.path, *of.utilities}
        self._roots = of.collections

    def stamps(self) -> tuple[tuple[str, Stamp], ...]:
        """Return the stamps of the places; what a directory that is there lacks shows in that."""
        taken = {place: stamp(place) for place in sorted(self._places)}
        return tuple((p, s) for p, s in taken.items() if s is not None or os.path.dirname(p) not in taken)

    def watch(self, common: Any) -> None:
        common.importlib.machinery.PathFinder.find_spec = self._searching(importlib.machinery.PathFinder.find_spec)
        common._slurp = self._reading(common._slurp)
        pkgutil.get_data = self._taking(pkgutil.get_data)
        locator = common.CollectionModuleUtilLocator
        locator.__init__ = self._locating(locator.__init__)
        common.EmbeddedResource.path_context_manager = property(lambda _: 1 / 0)  # It may be anything.

    def _searching(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def find_spec(fullname: str, path: list[str] | None = None, target: Any = None) -> Any:
            tail = fullname.rpartition(".")[2]
            for place in path or ():
                self._places |= {place, os.path.join(place, tail)}
            return original(fullname, path, target)

        return find_spec

    def _reading(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def slurp(path: str) -> Any:
            self._places.add(path)
            return original(path)

        return slurp

    def _taking(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def get_data(package: str, resource: str) -> Any:
            if package in sys.modules:  # Otherwise its place in each root is known.
                place = os.path.join(os.path.dirname(str(sys.modules[package].__file__)), resource)
                self._places |= {place, os.path.dirname(place)}
            return original(package, resource)

        return get_data

    def _locating(self, original: Callable[..., None]) -> Callable[..., None]:
        def locate(locator: object, fq_name_parts: tuple[str, ...], *rest: Any, **options: Any) -> None:
            for root in self._roots:
                place = os.path.join(root, "ansible_collections")
                for part in ("", *fq_name_parts[1:3], "meta", "runtime.yml"):
                    place = os.path.join(place, part)
                    self._places.add(place)
            original(locator, fq_name_parts, *rest, **options)

        return locate
