"""A version of Ansible that changes what one mechanism needs turns off this mechanism alone."""

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from ensign_warm import bound

KNOWN = json.loads(Path(bound.KNOWN).read_text())
CALLS = [(mechanism, line) for mechanism, lines in bound._CALLED.items() for line in lines.strip().splitlines()]


def replace(monkeypatch: pytest.MonkeyPatch, function: str, other: object) -> None:
    place, _, path = function.partition(":")
    owner, _, name = path.rpartition(".")
    monkeypatch.setattr(bound._find(f"{place}:{owner}") if owner else importlib.import_module(place), name, other)


def test_all_is_there_in_the_version_of_the_tests() -> None:
    assert bound.unmet() == {}


@pytest.mark.parametrize(("mechanism", "line"), CALLS)
def test_a_function_that_takes_something_else(monkeypatch: pytest.MonkeyPatch, mechanism: str, line: str) -> None:
    function = line.split(maxsplit=1)[0]
    replace(monkeypatch, function, lambda *, other: other)
    assert set(bound.unmet()) == {mechanism}


@pytest.mark.parametrize(("mechanism", "function"), [(m, f) for m, functions in KNOWN.items() for f in functions])
def test_a_function_with_another_source(monkeypatch: pytest.MonkeyPatch, mechanism: str, function: str) -> None:
    original: Any = bound._find(function)

    def other(*args: Any, **options: Any) -> Any:
        return original(*args, **options)

    replace(monkeypatch, function, other)
    assert bound.unmet() == {mechanism: function}


def test_a_module_that_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ansible._internal._ansiballz._builder", None)
    assert set(bound.unmet()) == {"modules"}
