# Copyright The Ensign authors
# SPDX-License-Identifier: Apache-2.0

"""Tests of the role's filters: for each state of a cluster the one step that a run takes."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

SOURCE = Path(__file__).parents[1] / "filter_plugins" / "etcdcluster.py"
SPEC = importlib.util.spec_from_file_location("etcdcluster_filters", SOURCE)
assert SPEC and SPEC.loader
filters = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(filters)

NOW, LONG_AGO, JUST_NOW = "2026-01-01T12:00:00", "2026-01-01T10:00:00Z", "2026-01-01T11:59:50Z"


def pod(name: str, ready: bool = True, since: str = LONG_AGO, **more: Any) -> dict[str, Any]:
    """Return a pod of the newest revision; more: revision, waits (a reason), deleted (a time)."""
    metadata: dict[str, Any] = {"name": name, "creationTimestamp": LONG_AGO}
    metadata["labels"] = {"controller-revision-hash": more.get("revision", "new")}
    if "deleted" in more:
        metadata["deletionTimestamp"] = more["deleted"]
    status: dict[str, Any] = {"conditions": [{"type": "Ready", "status": str(ready), "lastTransitionTime": since}]}
    if "waits" in more:
        status["containerStatuses"] = [{"state": {"waiting": {"reason": more["waits"], "message": "no such image"}}}]
    return {"kind": "Pod", "metadata": metadata, "status": status}


def member(name: str, **more: Any) -> dict[str, Any]:
    """Return what etcd says of a member."""
    return {"ID": str(100 + int(name[-1])), "name": name, "peerURLs": [f"http://{name}.db.shop.svc:2380"], **more}


def seen(count: int = 3, **more: Any) -> dict[str, Any]:
    """Return what a run sees of a cluster that is well, with some of it changed."""
    names = [f"db-{number}" for number in range(count)]
    state: dict[str, Any] = {
        "name": "db",
        "size": count,
        "version": "3.6.8",
        "peer_url": "http://POD.db.shop.svc:2380",
        "pods": [pod(name) for name in names],
        "claims": [{"metadata": {"name": f"data-{name}", "uid": f"uid-{name}"}} for name in names],
        "set": {"metadata": {"generation": 2}, "status": {"observedGeneration": 2, "updateRevision": "new"}},
        "members": [member(name) for name in names],
        "statuses": {name: {"version": "3.6.8", "leader": "100", "header": {}} for name in names},
        "silent": {},
        "memory": {
            "formed": "true",
            "size": str(count),
            "replicas": str(count),
            "version": "3.6.8",
            "volumes": {name: f"uid-{name}" for name in names},
        },
        "backup": {"succeeded": True},
        "dead_after": 300,
        "quorum_grace": 30,
        "available_since": "",
        "now": NOW,
    }
    changes = {key: value(state[key]) if callable(value) else value for key, value in more.items()}
    return {**state, **changes}


def but(name: str, other: dict[str, Any] | None) -> Any:
    """Return what puts another object in the place of the one with the name, or takes it away."""

    def change(objects: list[dict[str, Any]]) -> list[dict[str, Any]]:
        kept = [item for item in objects if (item.get("metadata") or item)["name"] != name]
        return kept + ([other] if other else [])

    return change


def without(*names: str) -> Any:
    """Return what takes entries away."""
    return lambda there: {key: value for key, value in there.items() if key not in names}


def versions(**of: str) -> Any:
    """Return what gives members other versions: db_0="3.7.0"."""
    return lambda there: {
        name: {**status, "version": of.get(name.replace("-", "_"), status["version"])} for name, status in there.items()
    }


def set_of(version: str) -> dict[str, Any]:
    """Return a StatefulSet whose pods start in the version."""
    spec = {"template": {"spec": {"containers": [{"image": f"registry:5000/etcd:v{version}"}]}}}
    return {"metadata": {"generation": 2}, "spec": spec, "status": {"observedGeneration": 2, "updateRevision": "new"}}


LEARNER = {"isLearner": True}
BLOCKED = pod("db-0", False, waits="ImagePullBackOff")
OLD = pod("db-0", revision="old")["metadata"]
CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "nothing is done while all is well": (seen(), {"step": "rest", "phase": "Running"}),
    "the first member starts alone": (
        seen(members=[], pods=[], claims=[], set={}, statuses={}, memory={}),
        {"step": "wait", "phase": "Creating", "initial_cluster": "db-0=http://db-0.db.shop.svc:2380", "replicas": 1},
    ),
    "a member that is ready and does not answer is told of": (
        seen(1, members=[], statuses={}, memory={}, silent={"db-0": "bad certificate"}),
        {"step": "wait", "why": "the first member starts (db-0: bad certificate)"},
    ),
    "members are added one by one": (
        seen(1, size=3),
        {
            "step": "add",
            "path": "cluster/member/add",
            "body": {"peerURLs": ["http://db-1.db.shop.svc:2380"], "isLearner": True},
            "phase": "Scaling",
        },
    ),
    "only the one that joins is listed by its name": (
        seen(1, size=3),
        {"initial_cluster": "p0=http://db-0.db.shop.svc:2380,db-1=http://db-1.db.shop.svc:2380"},
    ),
    "none is added while another one is down": (
        seen(3, size=5, pods=but("db-2", pod("db-2", False, JUST_NOW))),
        {"step": "wait"},
    ),
    "a learner that has not started is awaited": (
        seen(members=but("db-2", member("db-2", **LEARNER) | {"name": ""})),
        {"step": "wait", "joining": "db-2", "pause": "2s"},
    ),
    "a learner that runs gets a vote": (
        seen(members=but("db-2", member("db-2", **LEARNER)), pods=but("db-2", pod("db-2", False))),
        {"step": "promote", "body": {"ID": "102"}},
    ),
    "a learner does not start on a volume of before": (
        seen(
            members=but("db-2", member("db-2", **LEARNER)),
            memory=lambda m: {**m, "joining": "db-2", "stale": "uid-db-2"},
        ),
        {"step": "clear", "member": "db-2", "stale": "uid-db-2"},
    ),
    "a learner that cannot start as it was starts as the spec says now": (
        seen(
            members=but("db-2", member("db-2", **LEARNER) | {"name": ""}),
            pods=but("db-2", pod("db-2", False, revision="old")),
        ),
        {"step": "roll", "member": "db-2"},
    ),
    "a pod that is down starts as the spec says now": (
        seen(pods=but("db-1", pod("db-1", False, JUST_NOW, revision="old"))),
        {"step": "roll", "member": "db-1"},
    ),
    "a learner that is not wanted any more is removed": (
        seen(4, size=3, members=but("db-3", member("db-3", **LEARNER))),
        {"step": "remove", "body": {"ID": "103"}},
    ),
    "a pod that starts again is awaited": (
        seen(pods=but("db-1", pod("db-1", False, JUST_NOW))),
        {"step": "wait", "phase": "Recovering"},
    ),
    "a pod that is gone is awaited": (seen(pods=but("db-1", None)), {"step": "wait", "unready": ["db-1"]}),
    "a member that lost its volume is removed at once": (
        seen(
            pods=but("db-1", pod("db-1", False, JUST_NOW)),
            claims=but("data-db-1", {"metadata": {"name": "data-db-1", "uid": "another"}}),
        ),
        {"step": "remove", "body": {"ID": "101"}},
    ),
    "a member that has been down for long is removed": (seen(pods=but("db-1", pod("db-1", False))), {"step": "remove"}),
    "a pod that ends was ready until now": (
        seen(pods=but("db-1", pod("db-1", deleted="2026-01-01T12:00:20Z"))),
        {"step": "wait"},
    ),
    "a pod that does not end is given up": (
        seen(pods=but("db-1", pod("db-1", deleted="2026-01-01T11:00:20Z"))),
        {"step": "remove"},
    ),
    "no data are thrown away for an image that is missing": (
        seen(pods=but("db-1", pod("db-1", False, waits="ImagePullBackOff"))),
        {"step": "refuse", "phase": "Failed"},
    ),
    "a pod of a version that is taken back is replaced": (
        seen(pods=but("db-1", pod("db-1", False, waits="ImagePullBackOff", revision="old"))),
        {"step": "roll", "member": "db-1"},
    ),
    "a member is removed for the size only while others are well": (
        seen(5, size=3, pods=but("db-0", pod("db-0", False, JUST_NOW))),
        {"step": "wait"},
    ),
    "the last member goes first": (seen(5, size=3), {"step": "remove", "body": {"ID": "104"}, "phase": "Scaling"}),
    "a member that comes back is no reason to keep a dead one": (
        seen(5, pods=lambda pods: [*pods[:3], pod("db-3", False), pod("db-4", False, JUST_NOW)]),
        {"step": "remove", "body": {"ID": "103"}},
    ),
    "without a quorum members get some time": (
        seen(members=[], available_since=JUST_NOW),
        {"step": "wait", "phase": "Recovering"},
    ),
    "without a quorum nothing is changed": (
        seen(members=[], available_since=LONG_AGO),
        {"step": "lost", "phase": "Failed", "replicas": 3},
    ),
    "without a quorum a pod that runs is left alone": (
        seen(members=[], available_since=LONG_AGO, pods=but("db-1", pod("db-1", False, revision="old"))),
        {"step": "lost"},
    ),
    "an image that is missing is told of, where no other member is": (
        seen(1, version="3.6.999", members=[], statuses={}, available_since=LONG_AGO, pods=[BLOCKED]),
        {"step": "refuse", "phase": "Failed"},
    ),
    "a version that is taken back is the next that starts": (
        seen(1, members=[], statuses={}, available_since=LONG_AGO, pods=[BLOCKED], set=set_of("3.6.999")),
        {"step": "refuse", "starts": "3.6.8"},
    ),
    "and its pod is replaced": (
        seen(1, members=[], statuses={}, available_since=LONG_AGO, pods=[{**BLOCKED, "metadata": OLD}]),
        {"step": "roll", "member": "db-0"},
    ),
    "no pod starts in another version while no member says what it runs": (
        seen(version="3.7.0", members=[], statuses={}, backup={}, set=set_of("3.6.8")),
        {"step": "wait", "starts": "3.6.8"},
    ),
    "what is noted of volumes outlives the quorum": (
        seen(members=[]),
        {"volumes": {f"db-{n}": f"uid-db-{n}" for n in range(3)}},
    ),
    "a cluster with strangers is left alone": (
        seen(size=5, members=lambda members: [*members, member("x-9")]),
        {"step": "refuse", "phase": "Failed"},
    ),
    "the follower with the highest number is restarted first": (
        seen(pods=lambda pods: [pod(p["metadata"]["name"], revision="old") for p in pods]),
        {"step": "roll", "member": "db-2", "phase": "Upgrading"},
    ),
    "the leader is restarted last": (
        seen(pods=but("db-0", pod("db-0", revision="old"))),
        {"step": "roll", "member": "db-0"},
    ),
    "none is restarted while another one is down": (
        seen(pods=lambda pods: [pod("db-0", revision="old"), pod("db-1", False, JUST_NOW), pods[2]]),
        {"step": "wait", "phase": "Upgrading"},
    ),
    "none is restarted before the controller knows what is wanted": (
        seen(set={"metadata": {"generation": 3}, "status": {"observedGeneration": 2, "updateRevision": "old"}}),
        {"step": "wait"},
    ),
    "a backup comes before another version": (
        seen(version="3.7.0", backup={}),
        {"step": "backup", "starts": "3.6.8"},
    ),
    "a backup that fails stops it": (
        seen(version="3.7.0", backup={"succeeded": False, "reason": "full"}),
        {"step": "refuse", "starts": "3.6.8"},
    ),
    "none is made for anything else": (seen(backup={}), {"step": "rest"}),
    "two minor versions at once are refused": (seen(version="3.8.0"), {"step": "refuse"}),
    "a downgrade by two minor versions is refused": (
        seen(version="3.6.8", statuses=versions(db_0="3.8.0", db_1="3.8.0", db_2="3.8.0")),
        {"step": "refuse"},
    ),
    "etcd is told of a downgrade first": (
        seen(version="3.6.8", statuses=versions(db_0="3.7.0", db_1="3.7.0", db_2="3.7.0")),
        {"step": "downgrade", "body": {"action": "ENABLE", "version": "3.6"}, "starts": "3.7.0"},
    ),
    "a downgrade waits for the form of the data": (
        seen(
            statuses={
                f"db-{n}": {
                    "version": "3.7.0",
                    "storageVersion": "3.7.0",
                    "leader": "100",
                    "downgradeInfo": {"enabled": True},
                }
                for n in range(3)
            }
        ),
        {"step": "wait", "starts": "3.7.0"},
    ),
    "a downgrade then goes as any change of version": (
        seen(
            statuses={
                f"db-{n}": {
                    "version": "3.7.0",
                    "storageVersion": "3.6.0",
                    "leader": "100",
                    "downgradeInfo": {"enabled": True},
                }
                for n in range(3)
            },
            pods=lambda pods: [pod(p["metadata"]["name"], revision="old") for p in pods],
        ),
        {"step": "roll", "member": "db-2", "starts": "3.6.8"},
    ),
    "a downgrade that is taken back is called off": (
        seen(
            version="3.7.0",
            statuses={
                f"db-{n}": {"version": "3.7.0", "leader": "100", "downgradeInfo": {"enabled": True}} for n in range(3)
            },
        ),
        {"step": "downgrade", "body": {"action": "CANCEL"}},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_step(case: str) -> None:
    """The step is the one that the case wants, with all that it says of it."""
    state, want = CASES[case]
    step = filters.etcdcluster_step(state)
    assert {key: step.get(key) for key in want} == want, step["why"]


def test_a_quorum_is_kept() -> None:
    """No member is removed if the others that are ready would be no majority."""
    state = seen(3, pods=lambda pods: [pods[0], pod("db-1", False), pod("db-2", False)])
    assert filters.etcdcluster_step(state)["step"] != "remove"


def test_owned_objects() -> None:
    """Count what has the custom resource's UID as an owner, once."""
    own = {"metadata": {"name": "a", "uid": "a", "ownerReferences": [{"uid": "x"}, {"uid": "u"}]}}
    others = [{"metadata": {"name": "b", "uid": "b"}}, {"metadata": {"uid": "c", "ownerReferences": [{"uid": "y"}]}}]
    assert filters.etcdcluster_owned([own, *others, own], "u") == [own]


def controlled(kind: str = "StatefulSet", name: str = "db", uid: str = "set") -> dict[str, Any]:
    """Return what says who the controller of a pod is."""
    return {"ownerReferences": [{"kind": kind, "name": name, "uid": uid, "controller": True}]}


@pytest.mark.parametrize(
    ("name", "metadata", "claim", "is_member"),
    [
        ("db-0", controlled(), "", True),
        ("db-0", {}, "", False),
        ("stranger", {}, "", False),
        ("stranger", controlled(), "data-db-0", False),
        ("db-0", controlled("ReplicaSet", "db", "other"), "", False),
        ("db-0", controlled("ReplicaSet", "db", "other"), "data-db-0", False),
        ("db-0", controlled(name="other", uid="other"), "data-db-0", False),
        ("db-0", controlled(uid="deleted"), "data-db-0", True),
        ("db-0", {}, "data-db-0", True),
        ("db-0", {}, "data-db-1", False),
        ("db-1", {}, "data-db-1", False),
        ("db-10", controlled(), "", True),
        ("dbx-0", controlled(), "", False),
    ],
)
def test_pods_of_members(name: str, metadata: dict[str, Any], claim: str, is_member: bool) -> None:
    """Know a pod by its StatefulSet, or by the cluster's own claim."""
    volumes = [{"name": "tmp", "emptyDir": {}}, {"name": "data", "persistentVolumeClaim": {"claimName": claim}}]
    found = {"metadata": {"name": name, **metadata}, "spec": {"volumes": volumes}}
    claims = [{"metadata": {"name": "data-db-0"}}]
    state = {"metadata": {"uid": "set"}}
    assert (filters.etcdcluster_members_pods([found], "db", state, claims) == [found]) is is_member


def test_a_pod_without_a_node_says_why() -> None:
    """Pass the scheduler's words on."""
    down = pod("db-1", ready=False, since=JUST_NOW)
    down["status"]["conditions"].append(
        {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": "0/1 nodes: Insufficient cpu.",
        }
    )
    step = filters.etcdcluster_step(seen(pods=but("db-1", down)))
    assert step["why"] == "db-1 is not ready (db-1: 0/1 nodes: Insufficient cpu.)"


def test_secret_faults() -> None:
    """Names of Secrets and keys are told, and nothing that they hold."""
    item = {"name": "tls", "field": "TLS.static.operatorSecret", "needs": ["a", "b"]}
    faults = filters.etcdcluster_secret_faults(
        [{"item": item, "resources": []}, {"item": item, "resources": [{"data": {"a": "c2VjcmV0"}}]}, {"item": item}],
        "shop",
    )
    assert [fault.rsplit(",", 1)[1].strip() for fault in faults] == [
        "does not exist",
        'has no key "b"',
        "cannot be read",
    ]
    assert "c2VjcmV0" not in str(faults)
