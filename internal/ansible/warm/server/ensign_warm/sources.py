"""Payloads of Ansible's: zip files with a module and what it may import of ansible and ansible_collections."""

import importlib.util
import os
import re
import runpy
import zlib
from collections.abc import Iterable, Iterator
from typing import Any

CORE = "ansible.module_utils"
COLLECTIONS = ("ansible_collections.kubernetes.core.plugins.module_utils",)
# These have further places in their __path__.
OPEN = ("ansible", CORE)

_PLACE = re.compile(r"/ansible_[^/]+_payload_[^/]+/ansible_[^/]+_payload\.zip$")
_FORMS = (".py", ".pyc", "/__init__.py", "/__init__.pyc")
_STORED, _DEFLATED = 0, 8
_HEADER = 30  # bytes of a zip file before a file's name
_EXTEND = b"from pkgutil import extend_path\n__path__=extend_path(__path__,__name__)\n"

Toc = dict[str, tuple[Any, ...]]  # as zipimport has it


def is_place(path: str) -> bool:
    return _PLACE.search(path) is not None


def stem(name: str) -> str:
    return name.replace(".", "/")


def forms(name: str, toc: Toc) -> list[str]:
    """Return the files of a payload that a module could be."""
    return [stem(name) + form for form in _FORMS if stem(name) + form in toc]


class Source:
    """A file that payloads have."""

    def __init__(self, name: str, content: bytes, package: bool, origin: str = "") -> None:
        self._content = content
        self.package = package
        self.origin = origin  # "" if Ansible makes it up
        self.name = name
        self.file = stem(name) + ("/__init__.py" if package else ".py")
        self._packed = b""

    @property
    def content(self) -> bytes:
        return zlib.decompress(self._packed, -zlib.MAX_WBITS) if self._packed else self._content

    def pack(self) -> None:
        """Keep what zipfile makes of the content, to be compared, and takes less memory."""
        compressor = zlib.compressobj(wbits=-zlib.MAX_WBITS)
        self._packed = compressor.compress(self._content) + compressor.flush()
        self._content = b""

    def same(self, archive: bytes, toc: Toc) -> bool:
        """Tell whether a payload has this file, and none that would be taken for it."""
        if forms(self.name, toc) != [self.file]:
            return False
        _, method, packed, _, offset, *_ = toc[self.file]
        names = sum(int.from_bytes(archive[offset + n : offset + n + 2], "little") for n in (26, 28))
        data = archive[offset + _HEADER + names :][:packed]
        if method == _DEFLATED:
            return data == self._packed or zlib.decompress(data, -zlib.MAX_WBITS) == self.content
        return bool(method == _STORED and data == self.content)


def installed() -> dict[str, Source]:
    """Return what payloads could have of what is installed."""
    spec = importlib.util.find_spec("ansible")
    if spec is None or spec.origin is None:
        return {}
    package = os.path.dirname(spec.origin)
    found = {source.name: source for source in _below(os.path.dirname(package), CORE)}
    for name in COLLECTIONS:
        found |= {source.name: source for source in _collection(os.path.dirname(package), name)}
    release = runpy.run_path(os.path.join(package, "release.py"))
    about = f'__version__="{release["__version__"]}"\n__author__="{release["__author__"]}"\n'
    made = {"ansible": _EXTEND + about.encode(), CORE: _EXTEND}
    made |= {package: b"" for name in found for package in packages(name) if package not in found} | made
    return found | {name: Source(name, content, True) for name, content in made.items()}


def packages(name: str) -> Iterator[str]:
    """Return the packages that a module is in."""
    parts = name.split(".")[:-1]
    return (".".join(parts[: n + 1]) for n in range(len(parts)))


def _collection(last: str, name: str) -> Iterable[Source]:
    """Look where Ansible looks unless a setting says otherwise; then another version is found to be another."""
    configured = os.environb.get(b"ANSIBLE_COLLECTIONS_PATH", b"~/.ansible/collections:/usr/share/ansible/collections")
    for place in [*os.fsdecode(configured).split(":"), last]:
        if found := _below(os.path.expanduser(place), name):
            return found
    return []


def _below(place: str, name: str) -> list[Source]:
    """Return the files of a package."""
    return [
        _read(place, os.path.join(directory, file))
        for directory, _, files in os.walk(os.path.join(place, stem(name)))
        for file in files
        if file.endswith(".py")
    ]


def _read(place: str, path: str) -> Source:
    short = os.path.relpath(path, place).removesuffix(".py")
    with open(path, "rb") as file:
        return Source(short.removesuffix("/__init__").replace("/", "."), file.read(), short.endswith("/__init__"), path)
