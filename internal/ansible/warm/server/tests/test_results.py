"""Ansible waits for the results of workers until they come, and looks for what else may happen."""

import collections
import importlib
import queue
import threading
import time
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
from ensign_warm import results

_LONG = 60.0


@pytest.fixture
def strategy() -> Iterator[ModuleType]:
    module = importlib.import_module("ansible.plugins.strategy")
    before = module.__dict__.copy()
    yield module
    module.__dict__.update(before)


class Waiting:
    """What a strategy has that waits."""

    def __init__(self, module: ModuleType, found: Any) -> None:
        self._results = found
        self._module = module

    def _wait_on_pending_results(self, seconds: float) -> None:
        self._module.time.sleep(seconds)

    def another(self, seconds: float) -> None:
        self._module.time.sleep(seconds)


def test_a_strategy_keeps_its_results_where_they_are_heard_of(strategy: ModuleType) -> None:
    results.expect()
    made = strategy.StrategyBase.__new__(strategy.StrategyBase)
    assert "deque" in strategy.StrategyBase.__init__.__code__.co_names
    assert "_results" in strategy.results_thread_main.__code__.co_names
    assert "sleep" in made._wait_on_pending_results.__code__.co_names
    assert strategy.deque is results.Results


def test_a_strategy_keeps_requests_where_they_are_heard_of(strategy: ModuleType) -> None:
    results.expect()
    assert "_rpc_queue" in strategy.StrategyBase._process_rpc_queue.__code__.co_names
    assert {"queue", "Queue"} <= set(strategy.StrategyBase.__init__.__code__.co_names)
    assert strategy.queue.Queue is results.Requests
    assert strategy.queue.Empty is queue.Empty


@pytest.fixture(autouse=True)
def no_news() -> None:
    results._news.clear()


@pytest.mark.parametrize("what", ["a result", "a request"])
def test_what_comes_ends_the_waiting(strategy: ModuleType, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    monkeypatch.setattr(results, "_LONGEST", _LONG)
    results.expect()
    found, requests = strategy.deque(), strategy.queue.Queue()
    waiting = Waiting(strategy, found)
    thread = threading.Timer(0.01, found.append if what == "a result" else requests.put, ("came",))
    thread.start()
    begun = time.monotonic()
    waiting._wait_on_pending_results(0.001)
    assert [*found, *requests.queue] == ["came"]
    assert time.monotonic() - begun < _LONG / 2
    thread.join()


def test_a_result_that_came_before_is_not_waited_for(strategy: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "_LONGEST", _LONG)
    results.expect()
    found = strategy.deque()
    found.append("first")
    begun = time.monotonic()
    Waiting(strategy, found)._wait_on_pending_results(0.001)
    assert time.monotonic() - begun < _LONG / 2


def test_what_tells_of_no_result_is_waited_for_at_most_a_moment(strategy: ModuleType) -> None:
    results.expect()
    found = strategy.deque()
    found.append("first")
    waiting = Waiting(strategy, found)
    begun = time.monotonic()
    waiting._wait_on_pending_results(0.001)
    waiting._wait_on_pending_results(0.001)
    assert results._LONGEST <= time.monotonic() - begun < _LONG


@pytest.mark.parametrize(
    ("found", "where", "seconds"),
    [
        (collections.deque(), "_wait_on_pending_results", 0.001),
        (results.Results(), "another", 0.001),
        (results.Results(), "_wait_on_pending_results", 0.5),
    ],
    ids=["the results of a plugin with a list of its own", "somebody else", "a longer interval that is configured"],
)
def test_others_sleep(
    strategy: ModuleType, monkeypatch: pytest.MonkeyPatch, found: Any, where: str, seconds: float
) -> None:
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    results.expect()
    getattr(Waiting(strategy, found), where)(seconds)
    assert slept == [seconds]


def test_a_strategy_that_somebody_has_changed_is_left_alone(strategy: ModuleType) -> None:
    strategy.__dict__["deque"] = list
    results.expect()
    assert strategy.deque is list
    assert strategy.time is time
    assert strategy.queue is queue


def test_the_clock_is_the_other_one_in_all_else(strategy: ModuleType) -> None:
    results.expect()
    assert strategy.time.monotonic is time.monotonic
