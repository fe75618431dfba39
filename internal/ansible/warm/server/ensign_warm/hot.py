"""Functions that runs call, laid together.

Python writes to a function's code when it is called, and the first write to a page makes it a fork's
own. What is called lies among what is not, in five times the pages that it needs. Which that is,
the first runs of a server show: what is moved does the same, so they can do no harm by it.
"""

import gc
import mmap
import os
import sys
from types import CodeType, FunctionType

from ensign_warm import immortal

_RUNS = 3  # that show it
_SLOTS = 1 << 20  # for code, by its address: what happens to share one is moved along


class Hot:
    """Notes of what was called, which forks make and the server reads."""

    def __init__(self, *, possible: bool) -> None:
        # In each slot a bit for runs, one for workers, one for modules; then the number of runs.
        self._notes = mmap.mmap(-1, _SLOTS + 1)
        if not possible:
            self._notes.close()

    def note(self) -> None:
        """Note, in a fork that becomes a run and in its own, what is called."""
        if self._notes.closed or self._notes[_SLOTS] >= _RUNS:
            return
        self._notes[_SLOTS] += 1
        monitoring, kind = sys.monitoring, 1  # It is there if objects can be immortal.

        def called(code: CodeType, _: int) -> object:
            self._notes[_slot(code)] |= kind
            return monitoring.DISABLE

        def forked() -> None:
            nonlocal kind
            kind = min(kind << 1, 4)
            monitoring.restart_events()

        monitoring.use_tool_id(monitoring.OPTIMIZER_ID, "ensign")
        monitoring.register_callback(monitoring.OPTIMIZER_ID, monitoring.events.PY_START, called)
        monitoring.set_events(monitoring.OPTIMIZER_ID, monitoring.events.PY_START)
        os.register_at_fork(after_in_child=forked)

    def ended(self) -> None:
        """Move, in the server when a run has ended, what was called, once all that show it have begun."""
        if self._notes.closed or self._notes[_SLOTS] < _RUNS:
            return
        gc.unfreeze()
        called = [f for f in gc.get_objects() if type(f) is FunctionType and self._notes[_slot(f.__code__)]]
        gc.freeze()
        called.sort(key=lambda function: self._notes[_slot(function.__code__)])
        for function in called:
            function.__code__.replace()  # It keeps what this makes, which is not to lie between what is moved.
        for function in called:
            function.__code__ = self._moved(function.__code__)
        self._notes.close()

    def _moved(self, code: CodeType) -> CodeType:
        inner = (self._moved(c) if isinstance(c, CodeType) and self._notes[_slot(c)] else c for c in code.co_consts)
        moved = code.replace(co_consts=tuple(inner))
        immortal.mark(moved, moved.co_consts)
        return moved


def _slot(code: CodeType) -> int:
    return (id(code) >> 6) % _SLOTS
