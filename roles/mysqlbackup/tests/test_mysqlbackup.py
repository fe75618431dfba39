"""Tests of the role's filters."""

from __future__ import annotations

import importlib.util
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

PATH = Path(__file__).parent.parent / "filter_plugins" / "mysqlbackup.py"
SPEC = importlib.util.spec_from_file_location("mysqlbackup_filters", PATH)
assert SPEC and SPEC.loader
filters: Any = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(filters)

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
LAST = {"time": "2026-01-31T11:00:00Z", "generation": 3}


@pytest.mark.parametrize(
    ("last", "generation", "interval", "want"),
    [
        ({}, 1, "24h", 0),
        (LAST, 3, "24h", 23 * 3600),
        (LAST, 3, "1h0m1s", 1),
        (LAST, 3, "1h", 0),
        (LAST, 3, "10s", 0),
        (LAST, 4, "24h", 0),
    ],
    ids=["none yet", "not due", "nearly due", "due", "overdue", "another generation"],
)
def test_wait(last: dict[str, Any], generation: int, interval: str, want: int) -> None:
    assert filters.wait(last, generation, interval, NOW) == want


@pytest.mark.parametrize("interval", ["", "24", "1d", "-1h", "1h "])
def test_what_is_no_duration(interval: str) -> None:
    with pytest.raises(ValueError, match="invalid duration"):
        filters.wait(LAST, 3, interval, NOW)


def job(name: str, turn: str, ended: str = "", made: str = "1") -> dict[str, Any]:
    conditions = [{"type": ended, "status": "True"}] if ended else [{"type": "Failed", "status": "False"}]
    metadata = {"name": name, "labels": {"mysqlbackup-turn": turn}, "creationTimestamp": made}
    return {"metadata": metadata, "status": {"conditions": conditions}}


def test_jobs() -> None:
    jobs = [job("a", "1", "Complete"), job("b", "2"), job("c", "2", "Failed", "1"), job("d", "2", "Failed", "2")]
    assert filters.working([*jobs, {"metadata": {"name": "new"}}]) == ["b", "new"]
    assert filters.for_turn(jobs, "2", "Complete") == {}
    assert filters.for_turn(jobs, "2", "Failed")["metadata"]["name"] == "d"
    assert filters.for_turn(jobs, "1", "Complete")["metadata"]["name"] == "a"


def test_what_an_object_belongs_to() -> None:
    def thing(name: str, *uids: str) -> dict[str, Any]:
        return {"metadata": {"name": name, "ownerReferences": [{"uid": uid} for uid in uids]}}

    things = [
        thing("mine", "u1"),
        thing("another's", "u2"),
        thing("both", "u2", "u1"),
        thing("nobody's"),
        {"metadata": {"name": "bare"}},
    ]

    def names(*owners: str) -> list[str]:
        return [found["metadata"]["name"] for found in filters.owned(things, list(owners))]

    assert names("u1") == ["mine", "both"]
    assert names("u1", "u2") == ["mine", "another's", "both"]
    assert names() == []
    assert names("none") == ["nobody's", "bare"]


@pytest.mark.parametrize(
    ("quantity", "want"),
    [("0", 0), ("512", 512), ("10Gi", 10 * 2**30), ("1.5k", 1500), ("2M", 2 * 10**6), ("1e3", 1000)],
)
def test_bytes(quantity: str, want: int) -> None:
    assert filters.bytes_of(quantity) == want


def pod(made: str = "1", **status: Any) -> dict[str, Any]:
    return {"metadata": {"creationTimestamp": made}, "status": status}


def container(**state: Any) -> dict[str, Any]:
    return {"containerStatuses": [{"state": state}]}


UNSCHEDULABLE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no room"}
NO_IMAGE = {"reason": "ErrImagePull", "message": "none"}


@pytest.mark.parametrize(
    ("pods", "want"),
    [
        ([], ""),
        ([pod()], ""),
        ([pod(**container(terminated={"message": "disk full\n"}))], "disk full"),
        ([pod(**container(terminated={"reason": "OOMKilled", "exitCode": 137}))], "OOMKilled, exit code 137"),
        ([pod(**container(waiting=NO_IMAGE))], "ErrImagePull: none"),
        ([pod(**container(waiting={"reason": "ContainerCreating"}))], ""),
        ([pod(conditions=[UNSCHEDULABLE])], "Unschedulable: no room"),
        ([pod("2", message="evicted"), pod("1", **container(terminated={"message": "old"}))], "evicted"),
    ],
)
def test_what_a_pod_says(pods: list[dict[str, Any]], want: str) -> None:
    assert filters.says(pods) == want


def restore(name: str, made: str, cluster: str = "db", **status: Any) -> dict[str, Any]:
    metadata = {"name": name, "creationTimestamp": made}
    return {"metadata": metadata, "spec": {"cluster": {"name": cluster}}, "status": status}


def test_restores_that_have_begun() -> None:
    me = restore("me", "2", dump="x")
    others = [
        restore("waits", "1"),
        restore("done", "1", dump="x", restored={"dump": "x"}),
        restore("elsewhere", "1", cluster="other", dump="x"),
        restore("older", "1", dump="x"),
        restore("alike", "2", dump="x"),
        restore("newer", "3", dump="x"),
        me,
    ]
    assert filters.begun(others, "db") == ["older", "alike", "newer", "me"]
    assert filters.begun(others, "db", me) == ["older", "alike"]


def test_backups_at_work() -> None:
    def backup(name: str, reason: str, status: str = "True", cluster: str = "db") -> dict[str, Any]:
        conditions = [{"type": "Running", "status": status, "reason": reason}]
        return restore(name, "1", cluster, conditions=conditions)

    backups = [backup("a", "Running"), backup("b", "Successful"), backup("c", "Failed", "False"), restore("new", "1")]
    assert filters.running([*backups, backup("d", "Running", cluster="other")], "db") == ["a"]


def test_every_filter_has_its_name() -> None:
    assert "mysqlbackup_wait" in filters.FilterModule().filters()
