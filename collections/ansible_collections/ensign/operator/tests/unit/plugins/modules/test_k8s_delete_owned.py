"""Tests of k8s_delete_owned against an API server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from ansible_collections.ensign.operator.plugins.modules import k8s_delete_owned

Run = Callable[..., dict[str, Any]]
PODS = "/api/v1/namespaces/ns/pods"
SHOP = {"kind": "Shop", "metadata": {"name": "lobby", "namespace": "ns", "uid": "uid-of-the-shop"}}
OURS = {"apiVersion": "example.com/v1", "kind": "Shop", "name": "lobby", "uid": "uid-of-the-shop"}
GIVEN = {"kind": "Pod", "namespace": "ns", "owner": SHOP}
RELEASE = {"meta.helm.sh/release-name": "lobby", "meta.helm.sh/release-namespace": "ns"}


@pytest.fixture(autouse=True)
def _within_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENSIGN_MANAGER", "1")


def add(server: Any, name: str, *references: dict[str, Any], **metadata: Any) -> Any:
    there = server.add(f"{PODS}/{name}", kind="Pod", apiVersion="v1")
    there["metadata"].update(namespace="ns", ownerReferences=list(references), **metadata)
    return there


def test_what_the_owner_owns_is_deleted_if_it_is_still_the_same(run: Run, server: Any) -> None:
    add(server, "a", OURS)
    result = run(k8s_delete_owned.main, **GIVEN, name="a", propagation_policy="Foreground", grace_period_seconds=0)
    assert (result["changed"], result["deleted"], result["kept"]) == (True, ["a"], [])
    assert [(r.method, r.path, r.body) for r in server.written()] == [
        (
            "DELETE",
            f"{PODS}/a",
            {
                "apiVersion": "v1",
                "kind": "DeleteOptions",
                "preconditions": {"uid": "uid-of-a", "resourceVersion": "11"},
                "propagationPolicy": "Foreground",
                "gracePeriodSeconds": 0,
            },
        )
    ]
    assert not run(k8s_delete_owned.main, **GIVEN, name="a")["changed"]


@pytest.mark.parametrize(
    ("references", "annotations", "want"),
    [
        ([], {}, "Pod ns/a exists and has no owner, so it does not belong to Shop lobby"),
        ([], {"shop-uid": "uid-of-the-shop"}, "Pod ns/a exists and has no owner, so it does not belong to Shop lobby"),
        ([{**OURS, "name": "hall", "uid": "u"}], {}, "Pod ns/a exists and belongs to Shop hall, not to Shop lobby"),
        (
            [{**OURS, "uid": "u"}],
            {},
            "Pod ns/a exists and belongs to another Shop lobby, with the UID u, not to Shop lobby",
        ),
        (
            [OURS, {"kind": "ReplicaSet", "name": "r", "uid": "r", "controller": True}],
            {},
            "Pod ns/a exists and belongs to ReplicaSet r, not to Shop lobby",
        ),
        ([], RELEASE, "Pod ns/a exists and belongs to the Helm release ns/lobby, not to Shop lobby"),
        (
            [],
            {"operator-sdk/primary-resource": "other/shop", "operator-sdk/primary-resource-type": "Shop.example.com"},
            "Pod ns/a exists and belongs to Shop.example.com other/shop, not to Shop lobby",
        ),
    ],
)
def test_what_others_own_is_kept(
    run: Run, server: Any, references: list[dict[str, Any]], annotations: dict[str, str], want: str
) -> None:
    there = add(server, "a", *references, annotations=annotations, labels={"shop": "lobby"})
    server.objects[f"{PODS}?labelSelector=shop%3Dlobby"] = {"items": [there]}
    for given in ({"name": "a"}, {"label_selectors": ["shop=lobby"]}):
        result = run(k8s_delete_owned.main, **GIVEN, **given, wait=True)
        assert (result["changed"], result["deleted"], result["kept"]) == (False, [], [want])
    assert server.written() == []


def test_an_annotation_that_stands_for_the_reference(run: Run, server: Any) -> None:
    add(server, "ours", annotations={"shop-uid": "uid-of-the-shop"})
    add(server, "theirs", annotations={"shop-uid": "u"})
    result = run(k8s_delete_owned.main, **GIVEN, name=["ours", "theirs"], owner_annotation="shop-uid")
    assert result["deleted"] == ["ours"]
    assert result["kept"] == [
        'Pod ns/theirs exists and belongs to an owner with the UID "u" (annotation shop-uid), not to Shop lobby'
    ]


def test_by_label_only_what_is_owned(run: Run, server: Any) -> None:
    items = [add(server, "a", OURS), add(server, "b"), add(server, "c", OURS)]
    server.objects[f"{PODS}?labelSelector=x%3D1%2Cy"] = {"items": [{**there, "kind": None} for there in items]}
    result = run(k8s_delete_owned.main, **GIVEN, label_selectors=["x=1", "y"])
    assert result["deleted"] == ["a", "c"]
    assert result["kept"] == ["Pod ns/b exists and has no owner, so it does not belong to Shop lobby"]
    assert f"{PODS}/b" in server.objects


def test_one_of_several_owners(run: Run, server: Any) -> None:
    add(server, "a", {"kind": "Job", "name": "j", "uid": "j", "controller": True})
    owner = [SHOP, {"kind": "Job", "metadata": {"name": "j", "uid": "j"}}]
    assert run(k8s_delete_owned.main, **{**GIVEN, "owner": owner}, name="a")["changed"]
    add(server, "a", {"kind": "Job", "name": "j", "uid": "j", "controller": True})
    assert not run(k8s_delete_owned.main, **{**GIVEN, "owner": []}, name="a")["changed"]


def test_an_object_that_changes_in_between(run: Run, server: Any) -> None:
    there = add(server, "a", OURS)

    def touch(request: Any) -> None:
        if request.method == "DELETE" and len(server.written()) == 1:
            there["metadata"]["resourceVersion"] = "12"

    server.before = touch
    assert run(k8s_delete_owned.main, **GIVEN, name="a")["deleted"] == ["a"]
    assert [r.body["preconditions"]["resourceVersion"] for r in server.written()] == ["11", "12"]


def test_an_object_that_somebody_replaces_in_between(run: Run, server: Any) -> None:
    add(server, "a", OURS)

    def replace(request: Any) -> None:
        if request.method == "DELETE" and len(server.written()) == 1:
            add(server, "a")["metadata"]["uid"] = "another"

    server.before = replace
    result = run(k8s_delete_owned.main, **GIVEN, name="a")
    assert (result["changed"], len(result["kept"])) == (False, 1)
    assert f"{PODS}/a" in server.objects


def test_an_object_that_never_rests(run: Run, server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(k8s_delete_owned.time, "sleep", lambda _: None)
    add(server, "a", OURS)
    server.before = lambda request: (409, {"message": "conflict"}) if request.method == "DELETE" else None
    result = run(k8s_delete_owned.main, **GIVEN, name="a")
    assert (result["failed"], result["msg"], len(server.written())) == (True, "conflict", k8s_delete_owned.ATTEMPTS)


def test_an_object_that_is_gone_before(run: Run, server: Any) -> None:
    add(server, "a", OURS)
    server.before = lambda request: (404, {"message": "gone"}) if request.method == "DELETE" else None
    assert not run(k8s_delete_owned.main, **GIVEN, name="a")["changed"]


def test_an_object_that_is_being_deleted(run: Run, server: Any) -> None:
    add(server, "a", OURS, deletionTimestamp="2026-01-01T00:00:00Z", deletionGracePeriodSeconds=30)
    assert not run(k8s_delete_owned.main, **GIVEN, name="a")["changed"]
    assert run(k8s_delete_owned.main, **GIVEN, name="a", grace_period_seconds=0)["changed"]


def test_waiting(run: Run, server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    there = add(server, "a", OURS, finalizers=["foregroundDeletion"])

    def last(request: Any) -> tuple[int, Any] | None:
        if request.method == "DELETE":
            there["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
            return 200, there
        return None

    server.before = last
    result = run(k8s_delete_owned.main, **GIVEN, name="a", wait=True, wait_timeout=0)
    assert result["msg"] == "Pod a (its finalizers: foregroundDeletion) still exists after 0 s"
    # Another object that has got the name is none to wait for.
    monkeypatch.setattr(k8s_delete_owned.time, "sleep", lambda _: there["metadata"].update(uid="another"))
    assert not run(k8s_delete_owned.main, **GIVEN, name="a", wait=True)["changed"]


def test_check_mode(run: Run, server: Any) -> None:
    add(server, "a", OURS)
    assert run(k8s_delete_owned.main, **GIVEN, name="a", wait=True, check=True)["deleted"] == ["a"]
    assert server.written() == []


def test_nothing_to_delete(run: Run, server: Any) -> None:
    assert run(k8s_delete_owned.main, **GIVEN, name=[])["deleted"] == []
    assert server.written() == []


@pytest.mark.parametrize("owner", [{}, {"kind": "Shop", "metadata": {"name": "lobby"}}, "uid-of-the-shop", [SHOP, {}]])
def test_an_owner_without_a_uid_owns_nothing(run: Run, server: Any, owner: Any) -> None:
    add(server, "a", OURS)
    result = run(k8s_delete_owned.main, **{**GIVEN, "owner": owner}, name="a")
    assert result["failed"]
    assert result["msg"].startswith("owner: an object with metadata.uid is required")
    assert server.written() == []


def test_outside_of_a_run_what_has_no_owner(run: Run, server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ENSIGN_MANAGER")
    add(server, "a")
    add(server, "b", OURS)
    add(server, "c", annotations=RELEASE)
    result = run(k8s_delete_owned.main, **{**GIVEN, "owner": {}}, name=["a", "b", "c"])
    assert (result["deleted"], len(result["kept"])) == (["a"], 2)


@pytest.mark.parametrize(
    ("options", "want"),
    [
        ({}, "one of the following is required: name, label_selectors"),
        ({"name": "a", "label_selectors": ["x"]}, "mutually exclusive"),
        ({"name": "", "namespace": "ns"}, "name: "),
        ({"name": "../a"}, "name: "),
        ({"name": "a", "kind": "Nothing"}, "the API server has no kind Nothing in v1"),
    ],
)
def test_faults(run: Run, server: Any, options: dict[str, Any], want: str) -> None:
    result = run(k8s_delete_owned.main, **{**GIVEN, **options})
    assert result["failed"]
    assert want in result["msg"]
    assert server.written() == []
