"""Waits for the results of workers until one comes, where Ansible looks for one each millisecond.

That costs 2 % of the time that modules take, and half a millisecond for each result.
"""

import collections
import importlib
import sys
import threading
import time
from typing import Any

# Seconds until Ansible looks all the same: for workers that have died, and for its own end.
_LONGEST = 0.02
_WAITING = "_wait_on_pending_results"


class Results(collections.deque[Any]):
    """Results that have come, and a flag that is up when that may be news."""

    def __init__(self) -> None:
        super().__init__()
        self._arrived = threading.Event()

    def append(self, result: Any) -> None:
        super().append(result)
        self._arrived.set()

    def wait(self) -> None:
        """Wait for a result; whoever calls this looks at all that there are before the next call."""
        self._arrived.wait(_LONGEST)
        self._arrived.clear()


class Clock:
    """The module time, for the one that it stands in for there."""

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)

    def sleep(self, seconds: float) -> None:
        frame = sys._getframe(1)
        results = getattr(frame.f_locals.get("self"), "_results", None)
        if frame.f_code.co_name == _WAITING and isinstance(results, Results) and seconds < _LONGEST:
            results.wait()
        else:
            time.sleep(seconds)


def expect() -> None:
    """Let strategies wait like that; called in a fork."""
    strategy = importlib.import_module("ansible.plugins.strategy")
    if strategy.__dict__.get("deque") is collections.deque and strategy.__dict__.get("time") is time:
        strategy.__dict__["deque"], strategy.__dict__["time"] = Results, Clock()
