"""How much of its memory a fork shares by huge pages, in an interpreter of its own."""

import re
from pathlib import Path

from conftest import execute

PROGRAM = """
import os
from ensign_warm import huge
kept = [b"." * 1000 + b"%d" % n for n in range(20_000)]
huge.gather()
if os.fork():
    os.wait()
else:
    print(open("/proc/self/smaps_rollup").read(), sum(map(len, kept)))
"""


def collapses() -> bool:
    """Report whether the kernel has MADV_COLLAPSE."""
    release = re.findall(r"\d+", Path("/proc/sys/kernel/osrelease").read_text())
    return (int(release[0]), int(release[1])) >= (6, 1) and Path("/sys/kernel/mm/transparent_hugepage").is_dir()


def test_a_fork_shares_huge_pages_where_there_are_any() -> None:
    kept = 20  # MiB of objects, in memory that begins and ends anywhere
    (huge,) = re.findall(r"AnonHugePages: +(\d+) kB", execute(PROGRAM))
    assert int(huge) >> 10 >= kept * 3 // 4 * collapses()
