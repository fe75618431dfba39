"""Where what a fork allocates lies, in an interpreter of its own, because holes are filled for good."""

import pytest
from conftest import execute

# A part of everything is free, in pieces; a fork needs less than that.
PROGRAM = """
import os, sys
from ensign_warm import holes
size, count, filled = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "filled"
def make(count):
    return [b"." * size + b"%d" % n for n in range(count)]
kept = make(count)
del kept[::10]
if filled:
    holes.fill()
if os.fork():
    os.wait()
else:
    import ctypes
    assert ctypes.pythonapi.PyObject_Malloc.argtypes is None, "a program could tell"
    print(len({id(item) // 4096 for item in make(count // 20)}), flush=True)
"""


def pages(size: int, count: int, how: str = "filled", allocator: str = "default") -> int:
    """Return how many pages a fork's own objects are in."""
    return int(execute(PROGRAM, str(size), str(count), how, PYTHONMALLOC=allocator))


@pytest.mark.parametrize(("size", "count"), [(16, 40_000), (100, 20_000), (440, 8_000), (2_000, 2_000)])
def test_what_a_fork_allocates_lies_together(size: int, count: int) -> None:
    needed = (size + 40) * count // 20 // 4096
    assert needed <= pages(size, count) < needed * 1.5 < pages(size, count, "as it is")


@pytest.mark.parametrize("allocator", ["malloc", "debug"])
def test_another_allocator_is_left_alone(allocator: str) -> None:
    assert pages(100, 1000, allocator=allocator) > 0
