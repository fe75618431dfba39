"""What modules import, kept apart from what Ansible's controller imports.

The server imports it first, with packages `ansible` and `ansible_collections` that hold nothing themselves: as
in a module's own interpreter, where module_utils see that they are not in a controller. Then it is taken out of
sys.modules, and a module's process gets it back in the place of the controller's.
"""

import contextlib
import importlib
import importlib.machinery
import importlib.util
import io
import multiprocessing.process
import os
import runpy
import sys
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any

# What modules of Kubernetes and most others import, as far as it is installed.
_THIRD_PARTY = """
kubernetes kubernetes.dynamic kubernetes.dynamic.resource kubernetes.dynamic.exceptions kubernetes.client.rest
kubernetes.config urllib3 yaml jinja2 jsonpatch requests cryptography.hazmat.backends cryptography.x509 distro
argparse base64 concurrent.futures.thread configparser ctypes datetime decimal difflib email.mime.application
email.mime.multipart encodings.cp437 encodings.idna fcntl filecmp getpass gettext glob grp gzip hashlib hmac
http.client http.cookiejar json locale logging mimetypes multiprocessing.pool netrc pkgutil platform pwd random
resource runpy select selectors shlex shutil socket ssl subprocess syslog tempfile traceback typing urllib.request
uuid zipfile zipimport
"""
_UTILS = """
_internal._ansiballz._loader _internal._json._profiles._module_legacy_c2m _internal._json._profiles._module_legacy_m2c
_text basic common.dict_transformations common.respawn compat.version service urls
"""
# The collections whose module_utils are imported ahead; those of others are imported by their modules.
_COLLECTIONS = ("kubernetes.core", "operator_sdk.util")
_ROOTS = ("ansible", "ansible_collections")
# Where the client of Kubernetes keeps what it has read of KUBECONFIG.
_KUBECONFIG = "KUBE_CONFIG_DEFAULT_LOCATION"
# What a payload of Ansible's has of its packages.
_PARTS = {"ansible": ("module_utils", "modules", "legacy"), "ansible_collections": ("module_utils", "modules")}


class Apart:
    """The modules, and the state of the interpreter from before the controller's imports."""

    def __init__(self, collection_roots: Sequence[str]) -> None:
        self.roots: list[str] = []
        self.look_in(collection_roots)
        self.library = ""  # the directory of Ansible's package
        self._modules: dict[str, ModuleType] = {}
        self._places: dict[str, str] = {}  # of the collections, when they were imported
        self._path = [entry for entry in sys.path if entry]
        self._finders: list[Any] = []
        self._hooks = list(sys.path_hooks)
        self._process = multiprocessing.process.current_process()
        self._filters: list[Any] = list(warnings.filters)
        self._streams = [(s.encoding, s.errors) for s in (sys.__stdin__, sys.__stdout__, sys.__stderr__) if s]

    def load(self) -> list[ModuleType]:
        """Import, in the server and before anything of the controller, and return what was imported."""
        before = set(sys.modules)
        for name in _THIRD_PARTY.split():
            _try(name)
        self._packages()
        fence = _Fence(self)
        sys.meta_path.insert(0, fence)
        for name in _UTILS.split():
            _try(f"ansible.module_utils.{name}")
        self._places = {collection: self.directory_of(collection) for collection in _COLLECTIONS}
        for name in self._collection_utils():
            _try(name)
        for package in ("ansible", *(f"{_ROOTS[1]}.{collection}.plugins" for collection in _COLLECTIONS)):
            _try(f"{package}.modules.none")  # To look for it reads the directory, of which the finder keeps the list.
        sys.meta_path.remove(fence)
        self._finders = list(sys.meta_path)  # With those of what was imported: six has one for its moves.
        loaded = [m for n, m in sys.modules.items() if n not in before and isinstance(m, ModuleType)]
        for name in _owned():
            self._modules[name] = sys.modules.pop(name)
        return loaded

    def look_in(self, roots: Sequence[str]) -> None:
        """Look for collections in these directories."""
        self.roots[:] = [r if os.path.basename(r) == _ROOTS[1] else os.path.join(r, _ROOTS[1]) for r in roots]

    def modules(self) -> list[ModuleType]:
        return list(self._modules.values())

    def path_of(self, module: str) -> str:
        """Return the file that a module's process executes for this name; "" if there is none."""
        first, *rest = module.split(".")
        place = self.library if first == "ansible" else self.directory_of(".".join(rest[:2]))
        return os.path.join(place, *(rest if first == "ansible" else rest[2:])) + ".py" if place else ""

    def directory_of(self, collection: str) -> str:
        """Return the first directory of a collection, which is the one that Ansible takes; "" if there is none."""
        places = (os.path.join(root, *collection.split(".")) for root in self.roots)
        return next((place for place in places if os.path.isdir(place)), "")

    def enter(self) -> None:
        """Make this process, which is a module's, one that has imported nothing else."""
        for name in _owned():
            del sys.modules[name]
        replaced = [f"{_ROOTS[1]}.{c}" for c, place in self._places.items() if self.directory_of(c) != place]
        sys.modules.update({name: module for name, module in self._modules.items() if not _is_of(name, replaced)})
        sys.path[:] = [os.path.dirname(self.library), *self._path]
        sys.dont_write_bytecode = True  # A payload's files leave none behind.
        sys.meta_path[:], sys.path_hooks[:] = [_Fence(self), *self._finders], self._hooks
        for path, finder in list(sys.path_importer_cache.items()):
            if type(finder).__module__.startswith("ansible"):
                del sys.path_importer_cache[path]
        state = multiprocessing.process.__dict__
        state["_current_process"], state["_parent_process"], state["_children"] = self._process, None, set()
        warnings.filters[:] = self._filters  # type: ignore[index]
        warnings._filters_mutated()  # type: ignore[attr-defined]
        if tempfile.tempdir != os.environ.get("TMPDIR"):  # Else it would be found again, by a test file.
            tempfile.tempdir = None
        place = os.environ.get("KUBECONFIG", "~/.kube/config")
        for name in ("kubernetes.config", "kubernetes.config.kube_config"):
            if _KUBECONFIG in getattr(sys.modules.get(name), "__dict__", {}):
                sys.modules[name].__dict__[_KUBECONFIG] = place

    def open_streams(self) -> None:
        """Make the standard streams as a new interpreter does that has no terminal."""
        for number, (encoding, errors) in enumerate(self._streams):
            name, mode = ("stdin", "stdout", "stderr")[number], "wb" if number else "rb"
            stream = io.TextIOWrapper(
                open(number, mode, closefd=False),  # noqa: SIM115
                encoding=encoding,
                errors=errors,
                newline="\n",
                line_buffering=name == "stderr",
            )
            stream.mode = mode[0]  # type: ignore[misc]
            setattr(sys, name, stream)
            setattr(sys, f"__{name}__", stream)

    def run(self, name: str, parameters: bytes) -> None:
        """Run a module as Ansible's payload does. It ends by an exception, as an interpreter's script."""
        loader: Any = sys.modules["ansible.module_utils._internal._ansiballz._loader"]
        loader.run_module(
            json_params=parameters,
            profile="legacy",
            module_fqn=name,
            modlib_path=os.path.dirname(self.library),
            extensions={},
        )

    def _packages(self) -> None:
        found = importlib.util.find_spec("ansible")
        if found is None or found.origin is None:
            raise ImportError("ansible")
        self.library = os.path.dirname(found.origin)
        package = _package("ansible", [self.library], found.origin)
        release = runpy.run_path(os.path.join(self.library, "release.py"))
        package.__dict__.update({key: release[key] for key in ("__version__", "__author__")})
        _package("ansible_collections", self.roots)

    def _collection_utils(self) -> Iterator[str]:
        for collection, place in self._places.items():
            for directory, _, files in os.walk(os.path.join(place, "plugins", "module_utils")) if place else ():
                for file in sorted(files):
                    if file.endswith(".py") and file != "__init__.py":
                        path = os.path.relpath(os.path.join(directory, file), place).removesuffix(".py")
                        yield f"{_ROOTS[1]}.{collection}.{path.replace(os.sep, '.')}"


class _Fence:
    """Finds no more of Ansible's packages than a module's payload would have, and a collection where Ansible does."""

    def __init__(self, apart: Apart) -> None:
        self._apart = apart

    def find_spec(
        self, name: str, _path: object = None, _target: object = None
    ) -> importlib.machinery.ModuleSpec | None:
        first, *rest = name.split(".")
        allowed = _PARTS.get(first)
        if allowed is None or not rest:
            return None
        if first == _ROOTS[1] and len(rest) <= 2:  # noqa: PLR2004
            return self._package(name, ".".join(rest))
        # ansible.PART… and ansible_collections.NAMESPACE.NAME.plugins.PART…
        part = rest[0] if first == "ansible" else (rest[3] if len(rest) > 3 else allowed[0])  # noqa: PLR2004
        if part not in allowed:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return None

    def _package(self, name: str, collection: str) -> importlib.machinery.ModuleSpec | None:
        place = self._apart.directory_of(collection)
        spec = importlib.machinery.ModuleSpec(name, None, is_package=True)
        spec.submodule_search_locations = [place]
        return spec if place else None


def _package(name: str, path: list[str], file: str | None = None) -> ModuleType:
    package = ModuleType(name)
    package.__path__ = path
    package.__spec__ = importlib.machinery.ModuleSpec(name, None, origin=file, is_package=True)
    package.__spec__.submodule_search_locations = path
    if file is not None:
        package.__file__ = file
    sys.modules[name] = package
    return package


def _is_of(module: str, collections: Sequence[str]) -> bool:
    """Report whether a module belongs to one of the collections, or is the package that has the collection."""
    return any(module == name.rpartition(".")[0] or f"{module}.".startswith(f"{name}.") for name in collections)


def _owned() -> list[str]:
    return [name for name in sys.modules if name.startswith(_ROOTS) and name.partition(".")[0] in _ROOTS]


def _try(name: str) -> None:
    with contextlib.suppress(Exception):  # Not installed, or not to be imported here: its modules say so.
        importlib.import_module(name)
