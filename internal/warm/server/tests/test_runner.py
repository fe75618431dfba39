"""What a fork of ansible-runner does otherwise than ansible-runner."""

import importlib
import os

import pytest
from ensign_warm.runner import prompt

terminals = importlib.import_module("ptyprocess.ptyprocess")


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    made: list[float] = []
    pause = terminals.time.sleep
    monkeypatch.setattr(terminals.time, "sleep", lambda seconds: made.append(seconds) or pause(seconds))  # type: ignore[func-returns-value]
    monkeypatch.setattr(terminals.PtyProcess, "close", prompt(terminals.PtyProcess.close))
    return made


def test_a_terminal_is_closed_at_once_when_its_process_has_ended(pauses: list[float]) -> None:
    terminal = terminals.PtyProcess.spawn(["/bin/sh", "-c", "exit 3"])
    terminal.wait()
    terminal.close()
    assert pauses == [0]
    assert terminal.closed
    assert terminal.exitstatus == 3


def test_a_process_that_has_not_ended_gets_its_time(pauses: list[float]) -> None:
    terminal = terminals.PtyProcess.spawn(["/bin/sleep", "600"])
    terminal.close()
    assert pauses[0] == 0.1
    assert terminal.closed
    with pytest.raises(ProcessLookupError):
        os.kill(terminal.pid, 0)
