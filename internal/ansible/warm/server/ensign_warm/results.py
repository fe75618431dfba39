"""Waits for what workers send until it comes, where Ansible looks for it each millisecond.

To look costs 2 % of the time that modules take, and half a millisecond for each result.
"""

import collections
import importlib
import queue
import sys
import threading
import time
from typing import Any

from ensign_warm.overlay import Overlay

# Seconds until Ansible looks all the same: for workers that have died, and for its own end.
_LONGEST = 0.02
_WAITING = "_wait_on_pending_results"
# Up when something may have come. One for all strategies: each looks at all that there
# is before it waits, and no two wait at the same time.
_news = threading.Event()


class Results(collections.deque[Any]):
    """Results that have come."""

    def append(self, result: Any) -> None:
        super().append(result)
        _news.set()


class Requests(queue.Queue[Any]):
    """What workers have asked for: to add a host or a group."""

    def put(self, item: Any, block: bool = True, timeout: float | None = None) -> None:
        super().put(item, block, timeout)
        _news.set()


def sleep(seconds: float) -> None:
    """Wait for news, if it is a strategy that waits for results, and that is how it would hear of them."""
    frame = sys._getframe(1)
    results = getattr(frame.f_locals.get("self"), "_results", None)
    if frame.f_code.co_name == _WAITING and isinstance(results, Results) and seconds < _LONGEST:
        _news.wait(_LONGEST)
        _news.clear()
    else:
        time.sleep(seconds)


def expect() -> None:
    """Let strategies wait like that; called in a fork."""
    names = importlib.import_module("ansible.plugins.strategy").__dict__
    if names.get("deque") is not collections.deque or names.get("time") is not time:
        return
    names["deque"], names["time"] = Results, Overlay(time, sleep=sleep)
    if names.get("queue") is queue:
        names["queue"] = Overlay(queue, Queue=Requests)
