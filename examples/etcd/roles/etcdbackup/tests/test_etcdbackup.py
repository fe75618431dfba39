# Copyright The Ensign authors
# SPDX-License-Identifier: Apache-2.0

"""Tests of the role's filters: when a backup is due, where it goes, and what is read of its Job."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

SOURCE = Path(__file__).parents[1] / "filter_plugins" / "etcdbackup.py"
SPEC = importlib.util.spec_from_file_location("etcdbackup_filters", SOURCE)
assert SPEC and SPEC.loader
filters = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(filters)

DONE = {"succeeded": True, "generation": 2, "lastSuccessDate": "2026-01-01T11:59:00Z"}


@pytest.mark.parametrize(
    ("status", "interval", "want"),
    [
        pytest.param({}, 0, 0, id="the first one is due"),
        pytest.param({**DONE, "succeeded": False}, 0, 0, id="one that failed is made again"),
        pytest.param({**DONE, "generation": 1}, 0, 0, id="a change of the spec asks for another one"),
        pytest.param(DONE, 0, -1, id="without an interval there is one"),
        pytest.param(DONE, 100, 40, id="it is not due yet, whoever restarts"),
        pytest.param(DONE, 60, 0, id="it is due"),
        pytest.param(DONE, 10, 0, id="it is overdue"),
    ],
)
def test_when_it_is_due(status: dict[str, Any], interval: int, want: int) -> None:
    """The status says when the next one is due."""
    assert filters.etcdbackup_wait(status, 2, interval, "2026-01-01T12:00:00") == want


def test_files_take_turns() -> None:
    """No more than so many files are kept, and the oldest one is replaced."""
    status: dict[str, Any] = {}
    for want in ["0.db", "1.db", "2.db", "0.db", "1.db"]:
        name = filters.etcdbackup_file(status, 3)
        assert name == want
        status["backups"] = filters.etcdbackup_kept(status, {"path": f"b-123/{name}"}, 3)
    assert [backup["path"] for backup in status["backups"]] == ["b-123/1.db", "b-123/0.db", "b-123/2.db"]


def test_another_limit_loses_no_more_than_it_has_to() -> None:
    """Where more files may be kept than are there, none is replaced; where fewer, the oldest one is."""
    status = {"backups": [{"path": "b-123/0.db"}, {"path": "b-123/1.db"}]}
    assert filters.etcdbackup_file(status, 5) == "2.db"
    assert filters.etcdbackup_file(status, 1) == "1.db"


def test_all_files_are_kept_without_a_limit() -> None:
    """A new file never has the name of one that is kept."""
    assert filters.etcdbackup_file({"backups": [{"path": "b-123/41.db"}]}, 0) == "42.db"


def test_what_a_container_printed() -> None:
    """The last line that is JSON counts, whatever else a program says."""
    assert filters.etcdbackup_printed('{"level":"info"}\n{"revision":7}\nbye') == {"revision": 7}
    assert filters.etcdbackup_printed('[{"Status":{"version":"3.6.8"}}]') == {"Status": {"version": "3.6.8"}}
    assert filters.etcdbackup_printed("no such file") == {}
    assert filters.etcdbackup_printed("[]\n3") == {}


STARTED = {"spec": {"activeDeadlineSeconds": 90}, "status": {"startTime": "2026-01-01T12:00:00Z"}}
ENDED = {**STARTED, "status": {"conditions": [{"type": "Failed", "status": "True"}]}}
ENDS = {**STARTED, "status": {"conditions": [{"type": "FailureTarget", "status": "True"}]}}


@pytest.mark.parametrize(
    ("jobs", "now", "want"),
    [
        pytest.param([], "2026-01-01T12:00:10", True, id="it is gone"),
        pytest.param([{}], "2026-01-01T12:00:10", False, id="nobody has seen it yet"),
        pytest.param([STARTED], "2026-01-01T12:01:14", False, id="it runs"),
        pytest.param([STARTED], "2026-01-01T12:01:15", True, id="its limit is near"),
        pytest.param([STARTED], "", False, id="whatever its limit"),
        pytest.param([ENDS], "2026-01-01T12:00:10", False, id="its pods are being deleted"),
        pytest.param([ENDED], "2026-01-01T12:00:10", True, id="it has ended"),
    ],
)
def test_whether_a_job_is_over(jobs: list[dict[str, Any]], now: str, want: bool) -> None:
    """Pods are looked up before the limit of their Job deletes them."""
    assert filters.etcdbackup_over(jobs, now, 15) is want


def test_why_a_job_failed() -> None:
    """What a program said at its end is told, and what keeps a pod from starting."""
    ended = {"name": "save", "state": {"terminated": {"exitCode": 1, "message": " no endpoint\n"}}}
    well = {"name": "member", "state": {"terminated": {"exitCode": 0, "message": "fine"}}}
    waits = {"name": "snapshot", "state": {"waiting": {"reason": "ErrImagePull", "message": "no image"}}}
    pods = [{"status": {"initContainerStatuses": [ended], "containerStatuses": [well, waits]}}]
    assert filters.etcdbackup_said(pods) == "save: no endpoint; snapshot: no image"
    unplaced = {"status": {"conditions": [{"type": "PodScheduled", "reason": "Unschedulable", "message": "no claim"}]}}
    assert filters.etcdbackup_said([unplaced]) == "no claim"
    assert filters.etcdbackup_said([]) == ""
