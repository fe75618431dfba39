"""Huge pages: a fork copies one entry for each of them, in the place of 512.

What a server has imported is 20,000 pages. To copy their entries, and to let them go at
the end, is most of what a short fork costs, and a run has two for each task.
"""

import contextlib
import ctypes
import sys
from collections.abc import Iterator

_COLLAPSE = 25  # MADV_COLLAPSE, since Linux 6.1
_SIZE = 2 << 20  # bytes of a huge page


def gather() -> None:
    """Put the objects into huge pages, as far as they fill some. A kernel that cannot leaves them as they are."""
    with contextlib.suppress(AttributeError, OSError):
        advise = ctypes.CDLL(None).madvise
        advise.argtypes = [ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int]
        for start, end in _heaps():
            advise(start, end - start, _COLLAPSE)


def _heaps() -> Iterator[tuple[int, int]]:
    """Yield where memory that is no file's has whole huge pages."""
    with open("/proc/self/maps", encoding=sys.getfilesystemencoding()) as file:
        lines = file.read().splitlines()
    for place, access, _, _, _, *name in (line.split(maxsplit=5) for line in lines):
        start, end = (int(bound, 16) for bound in place.split("-"))
        start, end = -(-start // _SIZE) * _SIZE, end // _SIZE * _SIZE
        if access == "rw-p" and name in ([], ["[heap]"]) and start < end:
            yield start, end
