# Copyright The Ensign authors
# SPDX-License-Identifier: Apache-2.0

"""Tests of the role's filters."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

_PATH = Path(__file__).parents[1] / "filter_plugins" / "mysqlcluster.py"
_SPEC = importlib.util.spec_from_file_location("mysqlcluster_filters", _PATH)
assert _SPEC is not None and _SPEC.loader is not None
filters = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(filters)

IDENTITY = {"managed-by": "ensign", "mysql-cluster": "db"}


@pytest.mark.parametrize(
    ("quantity", "expected"),
    [
        ("20Gi", 20 * 2**30),
        ("20480Mi", 20 * 2**30),
        ("1Ti", 2**40),
        ("1.5Gi", 3 * 2**29),
        ("20G", 20 * 10**9),
        ("100k", 10**5),
        ("2E", 2 * 10**18),
        ("1e9", 10**9),
        ("21474836480", 20 * 2**30),
        ("1.5", 2),
    ],
)
def test_bytes(quantity: str, expected: int) -> None:
    """Quantities are compared whatever their units."""
    assert filters.mysqlcluster_bytes(quantity) == expected


OWNER_MARK = "myapp.myorg.tld/cluster-uid"
NEW_SET = {"spec": {"volumeClaimTemplates": [{"metadata": {"annotations": {OWNER_MARK: "u"}}}]}}
OLD_SET = {"spec": {"volumeClaimTemplates": [{"metadata": {"labels": IDENTITY}}]}}


@pytest.mark.parametrize(
    ("uid", "labels", "mark", "state", "ours"),
    [
        ("u", IDENTITY, "u", {}, True),
        ("u", None, "u", {}, True),
        ("u", IDENTITY, "another", {}, False),
        ("u", IDENTITY, "another", NEW_SET, False),
        ("u", IDENTITY, "retained", {}, True),
        ("u", {"more": "label"}, "retained", {}, False),
        ("u", IDENTITY, None, {}, False),
        ("u", IDENTITY, None, NEW_SET, False),
        ("u", IDENTITY, None, OLD_SET, True),
        ("u", None, None, OLD_SET, False),
        ("", None, None, {}, True),
    ],
)
def test_foreign_claims(uid: str, labels: dict[str, str] | None, mark: str | None, state: Any, ours: bool) -> None:
    """A claim is the cluster's by the UID that it has, or as the rest of an earlier cluster."""
    found = {
        "namespace": "shop",
        "name": "data-db-0",
        "labels": labels,
        "annotations": {OWNER_MARK: mark} if mark else None,
    }
    faults = filters.mysqlcluster_foreign_claims([{"metadata": found}], uid, OWNER_MARK, IDENTITY, state)
    assert (faults == []) is ours
    if not ours:
        assert faults[0].startswith(
            "PersistentVolumeClaim shop/data-db-0 exists and does not belong to this MySQLCluster"
        )
        assert (f"pvc data-db-0 {OWNER_MARK}=retained" in faults[0]) is (labels == IDENTITY)


NO_LABEL = (
    "has no label myapp.myorg.tld/mysql-login=allowed, by which MySQL servers may get its password:"
    " kubectl label --namespace=shop secret readers myapp.myorg.tld/mysql-login=allowed"
)
LABELS = {"myapp.myorg.tld/mysql-login": "allowed", "more": "label"}


def secret(data: dict[str, str] | None, labels: dict[str, str] | None = LABELS) -> dict[str, Any]:
    """Return the answer to the lookup of a Secret."""
    return {"resources": [{"metadata": {"labels": labels}, "data": data}]}


@pytest.mark.parametrize(
    ("lookup", "expected"),
    [
        (secret({"username": "cg==", "password": "cg=="}), []),
        (secret({"username": "cg=="}), ['has no key "password"']),
        (secret(None), ['has no key "username"', 'has no key "password"']),
        (secret({"username": "cg==", "password": "cg=="}, {}), [NO_LABEL]),
        (secret({"username": "cg==", "password": "cg=="}, {"myapp.myorg.tld/mysql-login": "true"}), [NO_LABEL]),
        (secret({"username": "cg=="}, None), [NO_LABEL, 'has no key "password"']),
        ({"resources": []}, ["does not exist"]),
        ({"msg": "Exception: (403)\nReason: Forbidden\nHTTP headers: …"}, ["cannot be read: Forbidden"]),
        ({"msg": "no route"}, ["cannot be read: no usable answer"]),
    ],
)
def test_secret_faults(lookup: dict[str, Any], expected: list[str]) -> None:
    """A fault names the Secret, the field and what is missing."""
    item = {"name": "readers", "field": "mysqlReadersSecret", "needs": ["username", "password"]}
    where = "Secret shop/readers, named by spec.mysqlReadersSecret, "
    faults = filters.mysqlcluster_secret_faults([{"item": item, **lookup}], "shop")
    assert faults == [where + fault for fault in expected]


MARK = "stopped-by"
NAMES = {"check": "db-1", "upgrade": "db-2", "clean": "db-3"}


def job(name: str, ended: str = "", stopped: str = "set/4", owner: str = "db") -> dict[str, Any]:
    """Return a Job that has ended by a condition, or is at work."""
    return {
        "metadata": {"name": name, "annotations": {MARK: stopped}, "ownerReferences": [{"uid": owner}]},
        "status": {
            "conditions": [{"type": ended, "status": "True", "reason": "Why", "message": "because"}] if ended else []
        },
    }


@pytest.mark.parametrize(
    ("found", "stopped", "outdated"),
    [
        (job("db-2"), "set/4", False),
        (job("db-2", "Complete"), "set/4", False),
        # Somebody has started the server since: what was written then is not in the copy.
        (job("db-2", "Complete"), "set/5", True),
        (job("db-2", "Complete"), "", True),
        (job("db-2"), "", True),
        (job("db-2", "Complete"), "another/4", True),
        # It has changed nothing, and says why.
        (job("db-2", "Failed"), "", False),
        (job("db-1", "Complete"), "", False),
        # Of another attempt.
        (job("db-9", "Failed"), "set/4", True),
        (job("db-3", "Complete"), "set/4", True),
    ],
)
def test_outdated(found: dict[str, Any], stopped: str, outdated: bool) -> None:
    """A Job counts only for the attempt and the data that it is of."""
    assert bool(filters.mysqlcluster_outdated([found], NAMES, MARK, stopped)) is outdated


def test_owned() -> None:
    """Labels prove nothing, owners do."""
    ours, theirs = job("db-2"), job("db-2", owner="another")
    assert filters.mysqlcluster_owned([ours, theirs], "db") == [ours]
    assert filters.mysqlcluster_owned([ours, theirs], "") == [ours, theirs], "where no operator sets owners"


@pytest.mark.parametrize(
    ("jobs", "state"),
    [([], "working"), ([job("a")], "working"), ([job("a", "Failed")], "failed"), ([job("a", "Complete")], "complete")],
)
def test_job_state(jobs: list[dict[str, Any]], state: str) -> None:
    """One that is gone, or has not ended, is at work."""
    assert filters.mysqlcluster_job_state(jobs) == state


def pod(at: int, init: dict[str, Any] | None = None, main: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return a pod whose containers have states."""
    statuses = {kind: [{"name": kind, "state": state}] for kind, state in {"init": init, "main": main}.items() if state}
    return {
        "metadata": {"creationTimestamp": f"2026-01-0{at}"},
        "status": {"initContainerStatuses": statuses.get("init"), "containerStatuses": statuses.get("main")},
    }


REFUSED = {"terminated": {"exitCode": 3, "message": "no room\n"}}
KILLED = {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}
DONE = {"terminated": {"exitCode": 0}}
NO_IMAGE = {"waiting": {"reason": "ErrImagePull", "message": "none"}}
BEGINS = {"waiting": {"reason": "PodInitializing"}}


@pytest.mark.parametrize(
    ("pods", "said"),
    [
        ([], "Why: because"),
        ([pod(1, REFUSED, BEGINS)], "no room"),
        ([pod(1, DONE, REFUSED)], "no room"),
        ([pod(1, DONE, KILLED)], "container main: OOMKilled, exit code 137"),
        ([pod(1, DONE, NO_IMAGE)], "ErrImagePull: none"),
        ([pod(1, REFUSED), pod(2, main=NO_IMAGE)], "ErrImagePull: none"),
    ],
)
def test_job_said(pods: list[dict[str, Any]], said: str) -> None:
    """The last pod tells, and where there is none, the Job."""
    assert filters.mysqlcluster_job_said([job("a", "Failed")], pods) == said


@pytest.mark.parametrize("directory", ["mysql", "mysql-9.7", "mysql-11.8"])
def test_directories(directory: str) -> None:
    """These are what upgrades make."""
    assert filters.mysqlcluster_directory_faults([marked(directory)], "where") == []


@pytest.mark.parametrize("directory", ["", "..", "mysql/..", "mysql-9.7\n", "mysql-9.7.1", "other", "mysql-"])
def test_other_directories(directory: str) -> None:
    """A server would begin there without data."""
    assert len(filters.mysqlcluster_directory_faults([marked(directory), {"kind": "A", "metadata": {}}], "where")) == 1


def marked(directory: str) -> dict[str, Any]:
    """Return an object that has the annotation."""
    return {"kind": "StatefulSet", "metadata": {"name": "db", "annotations": {"where": directory}}}
