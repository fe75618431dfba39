"""How the memory of a server lies, so that its forks copy less of it.

A program that has imported much leaves thousands of holes, which malloc fills first: what a fork puts
there copies the page around it. So a server takes them all before. And a fork copies one entry for a
huge page, for 512 others: of 20,000 pages that is most of what a short fork costs, and a task has two.
"""

import contextlib
import ctypes
import sys
from collections.abc import Iterator

_STEP = 16  # bytes from one size of malloc to the next one
_LARGEST_HOLE = 32 << 10  # bytes; what is larger is pages of its own
_MOST = 8 << 20  # bytes that are taken at most, in case that malloc is another one
_COLLAPSE = 25  # MADV_COLLAPSE, since Linux 6.1
_HUGE = 2 << 20  # bytes of a huge page


class _Figures(ctypes.Structure):
    """What mallinfo2 returns, as far as it matters: the last figure is what is free at the heap's end."""

    _fields_ = (("others", ctypes.c_size_t * 9), ("keepcost", ctypes.c_size_t))


def fill() -> None:
    """Give pages back that hold nothing, and take for good what is free in the others: large pieces first."""
    with contextlib.suppress(AttributeError):  # Another C library.
        library = ctypes.CDLL(None)
        allocate, free, figures = library.malloc, library.free, library.mallinfo2
        allocate.restype, allocate.argtypes = ctypes.c_size_t, [ctypes.c_size_t]
        free.restype, free.argtypes = None, [ctypes.c_size_t]
        figures.restype = _Figures
        library.malloc_trim(0)
        taken, end = 0, figures().keepcost
        for size in range(_LARGEST_HOLE - _STEP // 2, 0, -_STEP):
            while taken < _MOST:
                piece = allocate(size)
                if figures().keepcost != end:  # There is none left of the size.
                    free(piece)
                    end = figures().keepcost
                    break
                taken += size


def gather() -> None:
    """Put the objects into huge pages, as far as they fill some. A kernel that cannot leaves them as they are."""
    with contextlib.suppress(AttributeError, OSError):
        advise = ctypes.CDLL(None).madvise
        advise.argtypes = [ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int]
        for start, end in _places():
            advise(start, end - start, _COLLAPSE)


def _places() -> Iterator[tuple[int, int]]:
    """Yield where memory that is no file's has whole huge pages."""
    with open("/proc/self/maps", encoding=sys.getfilesystemencoding()) as file:
        lines = file.read().splitlines()
    for place, access, _, _, _, *name in (line.split(maxsplit=5) for line in lines):
        start, end = (int(bound, 16) for bound in place.split("-"))
        start, end = -(-start // _HUGE) * _HUGE, end // _HUGE * _HUGE
        if access == "rw-p" and name in ([], ["[heap]"]) and start < end:
            yield start, end
