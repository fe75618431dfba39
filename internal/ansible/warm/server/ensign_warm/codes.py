"""Code of sources that an earlier fork had to compile, for what zipimport would compile.

A payload of Ansible's is a zip file of sources, each of which a new interpreter
compiles twice. A fork tells the server at its end what it had to compile, and the
server compiles that itself for later ones: what it knows is a function of the
sources' bytes and of nothing else.
"""

import os
import struct
import sys
import types
import warnings
import zipimport
from _imp import _fix_co_filename  # type: ignore[attr-defined]  # As importlib does with code from elsewhere.
from collections.abc import Callable, Iterator

from ensign_warm.notes import Notes

_MOST = 4 << 20  # bytes of sources that are kept
_SIZE = struct.Struct("<I")

Give = Callable[[str, bytes], types.CodeType | None]


class Codes:
    """Code by its source. None stands for a source that has to be compiled each time."""

    def __init__(self, directory: str) -> None:
        self._known: dict[bytes, types.CodeType | None] = {}
        self._size = 0
        self._wanted: list[bytes] = []
        self._missed: set[bytes] = set()
        self._notes = Notes(os.path.join(directory, "sources"))

    def hear(self) -> bool:
        """Take the notes that forks have left; tell whether there is something to learn."""
        self._wanted += _parse(self._notes.take())
        return bool(self._wanted)

    def learn(self) -> bool:
        """Compile one source; tell whether there is another one."""
        source = self._wanted.pop()
        if source not in self._known and len(source) <= _MOST:
            self._known[source] = compiled(source)
            self._size += len(source)
        while self._size > _MOST:
            oldest = next(iter(self._known))
            del self._known[oldest]
            self._size -= len(oldest)
        return bool(self._wanted)

    def leave_server(self) -> None:
        """Give up in a fork what is the server's."""
        self._notes.leave_server()

    def use(self) -> None:
        """Let zipimport have what is known; called in a fork."""
        original = getattr(zipimport, "_compile_source", None)
        if isinstance(original, types.FunctionType):
            zipimport.__dict__["_compile_source"] = _disguised(self._giving(), original)

    def _giving(self) -> Give:
        given: dict[tuple[str, bytes], types.CodeType] = {}

        def give(pathname: str, source: bytes) -> types.CodeType | None:
            code = given.get((pathname, source)) or self.take(pathname, source)
            if code is not None:
                given[pathname, source] = code
            return code

        return give

    def take(self, pathname: str, source: bytes) -> types.CodeType | None:
        """Return what is known, once; what is not will be. Called in a fork."""
        if source not in self._known:
            self._missed.add(source)
            return None
        code = self._known[source]
        if code is not None:
            del self._known[source]  # A second file of the same content needs code with another name.
            _fix_co_filename(code, pathname)
        return code

    def note(self) -> None:
        """Tell the server what it did not know, at the end of a fork."""
        if self._missed:
            self._notes.leave(b"".join(_SIZE.pack(len(source)) + source for source in self._missed))


def compiled(source: bytes) -> types.CodeType | None:
    """Return the code of a source; None if to compile it warns or fails, which has to be seen each time."""
    before = set(sys.modules)
    sys.modules["warnings"] = warnings  # The server has taken it out.
    filters: list[object] = warnings.filters  # type: ignore[assignment]
    kept = filters.copy()
    try:
        warnings.simplefilter("error")
        code: types.CodeType = zipimport._compile_source("", source)  # type: ignore[attr-defined]
        return code
    except Exception:
        return None
    finally:
        filters[:] = kept  # In place, because the interpreter holds the list itself.
        for name in set(sys.modules) - before:
            del sys.modules[name]


def _parse(notes: bytes) -> Iterator[bytes]:
    while len(notes) >= _SIZE.size:
        end = _SIZE.size + _SIZE.unpack_from(notes)[0]
        yield notes[_SIZE.size : end]
        notes = notes[end:]


def _disguised(give: Give, original: types.FunctionType) -> Callable[[str, bytes], types.CodeType]:
    """Return what takes the original's place, and looks like it in the trace of a source with an error."""
    normalize = zipimport._normalize_line_endings  # type: ignore[attr-defined]

    def _compile_source(pathname: str, source: bytes) -> types.CodeType:
        return give(pathname, source) or (
            compile(normalize(source), pathname, "exec", dont_inherit=True)
        )  # fmt: skip  # As far below the first line as in the original.

    theirs = original.__code__
    _compile_source.__code__ = _compile_source.__code__.replace(
        co_filename=theirs.co_filename, co_firstlineno=theirs.co_firstlineno
    )
    return _compile_source
