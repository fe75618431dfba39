"""How the memory of forks lies, in an interpreter of its own, because holes are filled for good."""

import re
from pathlib import Path

import pytest
from conftest import execute

# A part of everything is free, in pieces; a fork needs less than that.
HOLES = """
import os, sys
from ensign_warm import heap
size, count, filled = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "filled"
def make(count):
    return [b"." * size + b"%d" % n for n in range(count)]
kept = make(count)
del kept[::10]
if filled:
    heap.fill()
if os.fork():
    os.wait()
else:
    print(len({id(item) // 4096 for item in make(count // 20)}), flush=True)
"""
HUGE = """
import os
from ensign_warm import heap
kept = [b"." * 1000 + b"%d" % n for n in range(20_000)]
heap.gather()
if os.fork():
    os.wait()
else:
    print(open("/proc/self/smaps_rollup").read(), sum(map(len, kept)))
"""


def pages(size: int, count: int, how: str = "filled") -> int:
    """Return in how many pages a fork's own objects begin."""
    return int(execute(HOLES, str(size), str(count), how))


@pytest.mark.parametrize(("size", "count"), [(600, 8_000), (1_000, 4_000), (2_000, 2_000)])
def test_what_a_fork_allocates_lies_together(size: int, count: int) -> None:
    needed = (size + 40) * count // 20 // 4096
    assert needed <= pages(size, count) < needed * 1.5 < pages(size, count, "as it is")


def collapses() -> bool:
    """Report whether the kernel has MADV_COLLAPSE."""
    release = re.findall(r"\d+", Path("/proc/sys/kernel/osrelease").read_text())
    return (int(release[0]), int(release[1])) >= (6, 1) and Path("/sys/kernel/mm/transparent_hugepage").is_dir()


def test_a_fork_shares_huge_pages_where_there_are_any() -> None:
    kept = 20  # MiB of objects, in memory that begins and ends anywhere
    (huge,) = re.findall(r"AnonHugePages: +(\d+) kB", execute(HUGE))
    assert int(huge) >> 10 >= kept * 3 // 4 * collapses()
