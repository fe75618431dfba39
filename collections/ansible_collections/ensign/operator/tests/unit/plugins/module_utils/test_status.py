"""Tests of what becomes of a status."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from ansible_collections.ensign.operator.plugins.module_utils import status

NOW = "2026-01-02T03:04:05Z"
THEN = "2020-01-01T00:00:00Z"


def cond(kind: str, value: str, **fields: Any) -> dict[str, Any]:
    return {"type": kind, "status": value, **fields}


MERGED: dict[str, tuple[Any, Any, Any]] = {
    "a key is added": ({"a": 1}, {"b": 2}, {"a": 1, "b": 2}),
    "a key is changed": ({"a": 1}, {"a": 2}, {"a": 2}),
    "null removes a key": ({"a": 1, "b": 2}, {"a": None}, {"b": 2}),
    "null of what is not there is nothing": ({}, {"a": None}, {}),
    "null in what is new leaves nothing": ({}, {"a": {"b": None, "c": 1}}, {"a": {"c": 1}}),
    "dictionaries are merged at depth": (
        {"a": {"b": {"c": 1}}},
        {"a": {"b": {"d": 2}}},
        {"a": {"b": {"c": 1, "d": 2}}},
    ),
    "a dictionary replaces what is none": ({"a": "text"}, {"a": {"b": 1}}, {"a": {"b": 1}}),
    "what is none replaces a dictionary": ({"a": {"b": 1}}, {"a": "text"}, {"a": "text"}),
    "another list replaces the list": ({"a": [1]}, {"a": [2]}, {"a": [2]}),
    "a list of which all is there leaves it": ({"a": [1, 2]}, {"a": [2]}, {"a": [1, 2]}),
    "conditions that are not given stay": (
        {"conditions": [cond("A", "True")]},
        {"x": 1},
        {"conditions": [cond("A", "True")], "x": 1},
    ),
    "conditions can be removed": ({"conditions": [cond("A", "True")], "x": 1}, {"conditions": None}, {"x": 1}),
}


@pytest.mark.parametrize("why", MERGED)
def test_merging(why: str) -> None:
    before, given, want = MERGED[why]
    kept = copy.deepcopy(before)
    assert status.wanted(before, given, NOW, replace=False, replace_lists=False) == want
    assert before == kept, "the status that was read is changed"


def test_lists_are_replaced_where_asked_for() -> None:
    after = status.wanted(
        {"a": [1, 2], "b": {"c": [1]}}, {"a": [2], "b": {"c": []}}, NOW, replace=False, replace_lists=True
    )
    assert after == {"a": [2], "b": {"c": []}}


def test_replacing_leaves_nothing_else() -> None:
    before = {"a": 1, "conditions": [cond("Other", "True"), cond("Mine", "True", lastTransitionTime=THEN)]}
    given = {"b": {"c": None}, "conditions": [cond("Mine", "True")]}
    after = status.wanted(before, given, NOW, replace=True, replace_lists=False)
    assert after == {"b": {}, "conditions": [cond("Mine", "True", lastTransitionTime=THEN)]}
    assert status.wanted(before, {"b": 1}, NOW, replace=True, replace_lists=False) == {"b": 1}


CONDITIONS: dict[str, tuple[Any, list[Any], list[Any]]] = {
    "the first gets the time": (None, [cond("A", "True")], [cond("A", "True", lastTransitionTime=NOW)]),
    "the time that is given is taken for it": (
        [],
        [cond("A", "True", lastTransitionTime=THEN)],
        [cond("A", "True", lastTransitionTime=THEN)],
    ),
    "the same status keeps its time": (
        [cond("A", "True", lastTransitionTime=THEN, reason="X")],
        [cond("A", "True", reason="Y")],
        [cond("A", "True", reason="Y", lastTransitionTime=THEN)],
    ),
    "it keeps it over a time that is given": (
        [cond("A", "True", lastTransitionTime=THEN)],
        [cond("A", "True", lastTransitionTime=NOW)],
        [cond("A", "True", lastTransitionTime=THEN)],
    ),
    "another status has the time of the change": (
        [cond("A", "True", lastTransitionTime=THEN)],
        [cond("A", "False")],
        [cond("A", "False", lastTransitionTime=NOW)],
    ),
    "a condition without a time gets one": (
        [cond("A", "True")],
        [cond("A", "True")],
        [cond("A", "True", lastTransitionTime=NOW)],
    ),
    "others stay, byte for byte and in their places": (
        [cond("B", "True", extra=1), cond("A", "True", lastTransitionTime=THEN), "no condition", {"no": "type"}],
        [cond("C", "True"), cond("A", "True", message="m")],
        [
            cond("B", "True", extra=1),
            cond("A", "True", message="m", lastTransitionTime=THEN),
            "no condition",
            {"no": "type"},
            cond("C", "True", lastTransitionTime=NOW),
        ],
    ),
    "what is no condition is added as it is": ([], ["text", {"x": 1}], ["text", {"x": 1}]),
}


@pytest.mark.parametrize("why", CONDITIONS)
def test_conditions(why: str) -> None:
    before, given, want = CONDITIONS[why]
    after = status.wanted(
        {"conditions": before, "kept": 1}, {"conditions": given}, NOW, replace=False, replace_lists=True
    )
    assert after == {"conditions": want, "kept": 1}


def test_conditions_are_checked() -> None:
    given = [cond("A", "True", reason="GoodReason_1:a", message=None, lastTransitionTime="2020-01-01T00:00:00.5+01:00")]
    assert status.checked(given) == [
        cond("A", "True", reason="GoodReason_1:a", lastTransitionTime="2020-01-01T00:00:00.5+01:00")
    ]


@pytest.mark.parametrize(
    "given",
    [
        [cond("A", "True"), cond("A", "False")],
        [cond("", "True")],
        [cond("A", "True", reason="two words")],
        [cond("A", "True", reason="1st")],
        [cond("A", "True", lastTransitionTime="yesterday")],
        [cond("A", "True", lastHeartbeatTime="2020-01-01")],
    ],
)
def test_conditions_against_the_conventions_are_refused(given: list[dict[str, Any]]) -> None:
    with pytest.raises(ValueError, match=r"A|type"):
        status.checked(given)


@pytest.mark.parametrize("why", MERGED)
def test_the_patch_leads_from_one_to_the_other(why: str, merge: Any) -> None:
    before, _given, after = MERGED[why]
    patched = copy.deepcopy(before)
    merge(patched, status.merge_patch(before, after))
    assert patched == after
    assert status.merge_patch(after, after) == {}


def test_the_patch_says_no_more_than_it_must() -> None:
    patch = status.merge_patch({"a": {"b": 1, "c": 2, "d": 3}, "e": [1]}, {"a": {"b": 1, "c": 4}, "e": [1]})
    assert patch == {"a": {"c": 4, "d": None}}


def test_what_a_schema_did_not_keep_is_named() -> None:
    wanted = {"a": 1, "b": {"c": 1, "d": 2}, "e": [{"f": 1}], "g": [1, 2]}
    assert (
        status.lost(wanted, {"a": 1, "b": {"c": 1, "d": 2, "default": 3}, "e": [{"f": 1, "default": 1}], "g": [1, 2]})
        == []
    )
    assert status.lost(wanted, {"b": {"c": 1}, "e": [{}], "g": [1]}) == ["a", "b", "e", "g"]
