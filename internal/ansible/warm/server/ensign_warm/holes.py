"""Free memory between what servers have: what a fork puts there copies the page around it.

A program that has imported much leaves thousands of such holes, and allocators fill
them first. A server takes them all before it forks, so that what forks allocate lies
together in pages that hold nothing else.
"""

import contextlib
import ctypes
import os
import re
import sys
import tempfile

_STDERR = 2
# A line of a table: a class, its size, its pools, and of their blocks those in use and others.
_ROOM = re.compile(r"^ *\d+ +(\d+) +\d+ +\d+ +(\d+)$", re.MULTILINE)
_STEP = 16  # bytes from one size of malloc to the next one
_LARGEST_HOLE = 32 << 10  # bytes; what is larger is pages of its own
_MOST = 8 << 20  # bytes that are taken at most, in case that malloc is another one


class _Figures(ctypes.Structure):
    """What mallinfo2 returns, as far as it matters: the last figure is what is free at the heap's end."""

    _fields_ = (("others", ctypes.c_size_t * 9), ("keepcost", ctypes.c_size_t))


def fill() -> None:
    """Give pages back that hold nothing, and take what is free in the others, for good."""
    with contextlib.suppress(AttributeError, OSError):  # Another C library, or interpreter, or a full disk.
        _fill_pools(ctypes.PyDLL(None).PyObject_Malloc)  # Not that of pythonapi, which forks have.
        library = ctypes.CDLL(None)
        library.malloc_trim(0)
        _fill_heap(library)


def _fill_pools(allocate: "ctypes._NamedFuncPointer") -> None:
    """Take as many objects of each size as there is room for where others are."""
    allocate.restype, allocate.argtypes = ctypes.c_size_t, [ctypes.c_size_t]
    for size, free in _ROOM.findall(_figures()):
        for _ in range(int(free)):
            allocate(int(size))


def _figures() -> str:
    """Return what Python's own allocator, if that is in use, shows of itself, which is on the standard error."""
    with tempfile.TemporaryFile(dir=".") as shown:
        kept = os.dup(_STDERR)
        os.dup2(shown.fileno(), _STDERR)
        try:
            sys._debugmallocstats()
        finally:
            os.dup2(kept, _STDERR)
            os.close(kept)
        shown.seek(0)
        return shown.read().decode()


def _fill_heap(library: ctypes.CDLL) -> None:
    """Take pieces, large ones first, until they come from the heap's end."""
    allocate, free, figures = library.malloc, library.free, library.mallinfo2
    allocate.restype, allocate.argtypes = ctypes.c_size_t, [ctypes.c_size_t]
    free.restype, free.argtypes = None, [ctypes.c_size_t]
    figures.restype = _Figures
    taken, end = 0, figures().keepcost
    for size in range(_LARGEST_HOLE - _STEP // 2, 0, -_STEP):
        while taken < _MOST:
            piece = allocate(size)
            if figures().keepcost != end:
                free(piece)
                end = figures().keepcost
                break
            taken += size
