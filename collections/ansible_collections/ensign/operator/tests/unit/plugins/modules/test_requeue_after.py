"""Tests of requeue_after."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from ansible_collections.ensign.operator.plugins.modules import requeue_after

Run = Callable[..., dict[str, Any]]


@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize(
    "time", ["30s", "1h30m", "+5m", "1.5h", ".5s", "5.s", "500ms", "1us", "1µs", "1μs", "1ns", "1s1s", "2562047h"]
)
def test_what_go_reads_is_taken_as_it_is(run: Run, time: str, check: bool) -> None:
    result = run(requeue_after.main, time=time, check=check)
    assert (result.get("failed"), result["period"], result["changed"]) == (None, time, False)


@pytest.mark.parametrize(
    "time",
    [
        "٣s",
        "1S",
        ".s",
        "s",
        "--1s",
        "1s-1s",
        "1e3s",
        "2562048h",
        "0.1ns",
        "",
        "soon",
        "30",
        "0s",
        "0",
        "-1s",
        "1d",
        "1 s",
        " 1s",
        "1s ",
        "1s\n",
    ],
)
def test_what_is_no_positive_duration_of_go_fails(run: Run, time: str) -> None:
    result = run(requeue_after.main, time=time)
    assert result["failed"]
    assert f'time: invalid duration "{time}": write a positive one' in result["msg"]
    assert "period" not in result


@pytest.mark.parametrize("manager", [None, "12-34"])
def test_outside_of_a_run_a_note_says_that_nothing_comes_again(
    run: Run, monkeypatch: pytest.MonkeyPatch, manager: str | None
) -> None:
    monkeypatch.delenv("ENSIGN_MANAGER", raising=False)
    if manager:
        monkeypatch.setenv("ENSIGN_MANAGER", manager)
    result = run(requeue_after.main, time="30s")
    assert (result.get("failed"), result["period"]) == (None, "30s")
    assert ("outside of an operator's run" in result.get("msg", "")) == (manager is None)


def test_the_time_is_required(run: Run) -> None:
    assert "time" in run(requeue_after.main)["msg"]
