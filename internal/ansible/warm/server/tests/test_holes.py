"""Where what a fork allocates lies, in an interpreter of its own, because holes are filled for good."""

import contextlib
import os
import select
import socket
import subprocess
import sys

import pytest
from conftest import SERVE
from ensign_warm import holes, loop

# A part of everything is free, in pieces; a fork needs less than that.
PROGRAM = """
import os, sys
sys.path.insert(0, sys.argv[1])
from ensign_warm import holes
size, count, filled = int(sys.argv[2]), int(sys.argv[3]), sys.argv[4] == "filled"
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


def pages(size: int, count: int, how: str = "filled") -> int:
    """Return how many pages a fork's own objects are in."""
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", PROGRAM, str(SERVE.parent), str(size), str(count), how],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return int(done.stdout)


@pytest.mark.parametrize(("size", "count"), [(16, 40_000), (100, 20_000), (440, 8_000), (2_000, 2_000)])
def test_what_a_fork_allocates_lies_together(size: int, count: int) -> None:
    needed = (size + 40) * count // 20 // 4096
    assert needed <= pages(size, count) < needed * 1.5 < pages(size, count, "as it is")


@pytest.mark.parametrize("allocator", ["malloc", "debug"])
def test_another_allocator_is_left_alone(monkeypatch: pytest.MonkeyPatch, allocator: str) -> None:
    monkeypatch.setenv("PYTHONMALLOC", allocator)
    assert pages(100, 1000) > 0


class Finite:
    """Lessons that end, and something that happens then."""

    def __init__(self, number: int, wake: int) -> None:
        self._left, self._wake = number, wake

    def hear(self) -> bool:
        return True

    def learn(self) -> bool:
        self._left -= 1
        if not self._left:
            os.write(self._wake, b".")
        return bool(self._left)

    def look(self) -> None:
        pass

    def leave_server(self) -> None:
        pass


def test_memory_that_it_took_to_learn_is_given_back_once(monkeypatch: pytest.MonkeyPatch) -> None:
    trimmed: list[bool] = []
    woken, wake = os.pipe()
    monkeypatch.setattr(holes, "trim", lambda: trimmed.append(bool(select.select([woken], [], [], 0)[0])))
    monkeypatch.setattr(loop, "_MANAGER", 1)
    with contextlib.ExitStack() as kept:
        for descriptor in (woken, wake):
            kept.callback(os.close, descriptor)
        lessons = Finite(3, wake)
        listener = kept.enter_context(socket.socket(socket.AF_UNIX))
        serving = loop.Loop(listener, loop.Manager(lambda: None, lambda _: None), lessons, lessons)
        for descriptor in (serving._news, serving._tell_news, serving._woken, serving._wake, serving._spare):
            kept.callback(os.close, descriptor)
        serving._poll.register(woken, select.POLLIN)
        serving._learning = lessons.hear()
        assert serving._wait() == [(woken, select.POLLIN)]
    assert trimmed == [True]
