"""Functions that runs call, laid together.

Python writes to a function's code when it is called, and the first write to a page makes it a fork's
own. What is called lies among what is not, in five times the pages that it needs. The first runs of a
server show which functions these are; a wrong note only moves one that need not be.
"""

import gc
import mmap
import os
import sys
from types import CodeType, FunctionType

from ensign_warm import heap, immortal

_RUNS = 3  # that show it
_TOOL = 5  # sys.monitoring.OPTIMIZER_ID
_SLOTS = 1 << 20  # for code, by its address; a few share one with others


class Hot:
    """Notes of what was called, which forks make and the server reads."""

    def __init__(self, *, possible: bool) -> None:
        # In each slot a bit for runs, one for workers, one for modules; then the number of runs.
        self._notes = mmap.mmap(-1, _SLOTS + 1)
        if not possible:
            self._notes.close()

    def note(self) -> None:
        """Note, in a fork that becomes a run and in its own, what is called."""
        if self._notes.closed or self._notes[_SLOTS] >= _RUNS or sys.monitoring.get_tool(_TOOL):
            return
        self._notes[_SLOTS] += 1
        monitoring, kind = sys.monitoring, 1

        def called(code: CodeType, _: int) -> object:
            self._notes[_slot(code)] |= kind
            return monitoring.DISABLE

        def forked() -> None:
            nonlocal kind
            kind = min(kind << 1, 4)
            monitoring.restart_events()

        monitoring.use_tool_id(_TOOL, "ensign")
        monitoring.register_callback(_TOOL, monitoring.events.PY_START, called)
        monitoring.set_events(_TOOL, monitoring.events.PY_START)
        os.register_at_fork(after_in_child=forked)

    def ended(self) -> None:
        """Move what was called, in a server without live forks, once all runs that show it have begun."""
        if self._notes.closed or self._notes[_SLOTS] < _RUNS:
            return
        gc.unfreeze()
        called = [f for f in gc.get_objects() if type(f) is FunctionType and self._notes[_slot(f.__code__)]]
        called.sort(key=lambda function: self._notes[_slot(function.__code__)])
        for function in called:
            function.__code__.replace()  # The old code caches parts: made now, they do not lie between the copies.
        for function in called:
            function.__code__ = self._moved(function.__code__)
        self._notes.close()
        gc.freeze()
        heap.gather()

    def _moved(self, code: CodeType) -> CodeType:
        inner = (self._moved(c) if isinstance(c, CodeType) and self._notes[_slot(c)] else c for c in code.co_consts)
        moved = code.replace(co_consts=tuple(inner))
        immortal.mark(moved, moved.co_consts)
        return moved


def _slot(code: CodeType) -> int:
    return (id(code) >> 6) % _SLOTS
