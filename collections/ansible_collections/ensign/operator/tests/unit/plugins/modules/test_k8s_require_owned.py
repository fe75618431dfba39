"""Tests of k8s_require_owned against an API server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from ansible_collections.ensign.operator.plugins.modules import k8s_require_owned

Run = Callable[..., dict[str, Any]]
SHOP = {"kind": "Shop", "metadata": {"name": "lobby", "namespace": "ns", "uid": "uid-of-the-shop"}}
OURS = {"apiVersion": "example.com/v1", "kind": "Shop", "name": "lobby", "uid": "uid-of-the-shop"}
THEIRS = {**OURS, "name": "hall", "uid": "u"}
REMEDY = "Delete what nobody needs, or give Shop lobby another name"


@pytest.fixture(autouse=True)
def _within_a_run(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENSIGN_MANAGER", "1")
    server.objects["/api/v1"]["resources"].append({"name": "secrets", "kind": "Secret", "namespaced": True})


def add(server: Any, path: str, kind: str, *references: dict[str, Any], **metadata: Any) -> Any:
    there = server.add(path, kind=kind, data={"password": "c2VjcmV0"})
    there["metadata"].update(namespace="ns", ownerReferences=list(references), **metadata)
    return there


def definition(kind: str, name: str, **metadata: Any) -> dict[str, Any]:
    version = "test.io/v1" if kind == "Probe" else "v1"
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, **metadata}, "spec": {"replicas": 3}}


def test_what_is_there_is_the_owners(run: Run, server: Any) -> None:
    add(server, "/api/v1/namespaces/ns/secrets/a", "Secret", OURS)
    add(server, "/apis/test.io/v1/namespaces/other/probes/b", "Probe", OURS)
    given = [definition("Secret", "a"), definition("Probe", "b", namespace="other"), definition("Secret", "new")]
    result = run(k8s_require_owned.main, owner=SHOP, namespace="ns", definition=given)
    assert not result["changed"]
    assert [(there["kind"], there["metadata"]["name"]) for there in result["resources"]] == [
        ("Secret", "a"),
        ("Probe", "b"),
    ]
    assert ("data" in result["resources"][0], "data" in result["resources"][1]) == (False, True)
    roots = [request.path for request in server.requests if request.path in ("/api/v1", "/apis/test.io/v1")]
    assert len(roots) == 2, "each version is looked up once"
    assert server.written() == []


def test_what_is_there_is_others(run: Run, server: Any) -> None:
    add(server, "/api/v1/namespaces/ns/secrets/a", "Secret", THEIRS)
    add(server, "/api/v1/namespaces/ns/secrets/b", "Secret", OURS)
    add(server, "/api/v1/namespaces/ns/secrets/c", "Secret")
    result = run(k8s_require_owned.main, owner=SHOP, kind="Secret", name=["a", "b", "c"], namespace="ns")
    foreign = [
        "Secret ns/a exists and belongs to Shop hall, not to Shop lobby",
        "Secret ns/c exists and has no owner, so it does not belong to Shop lobby",
    ]
    assert (result["failed"], result["foreign"], result["msg"]) == (True, foreign, f"{'; '.join(foreign)}. {REMEDY}")


@pytest.mark.parametrize(
    ("references", "annotations", "allowed"),
    [([], {}, True), ([THEIRS], {}, False), ([], {"meta.helm.sh/release-name": "lobby"}, False), ([OURS], {}, True)],
)
def test_what_somebody_has_made_by_hand(
    run: Run, server: Any, references: list[dict[str, Any]], annotations: dict[str, str], allowed: bool
) -> None:
    add(server, "/api/v1/namespaces/ns/secrets/a", "Secret", *references, annotations=annotations)
    result = run(k8s_require_owned.main, owner=SHOP, kind="Secret", name="a", namespace="ns", allow_ownerless=True)
    assert ("failed" not in result) is allowed


def test_outside_of_a_run(run: Run, server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ENSIGN_MANAGER")
    add(server, "/api/v1/namespaces/ns/secrets/a", "Secret")
    given = {"owner": {}, "kind": "Secret", "namespace": "ns"}
    assert len(run(k8s_require_owned.main, **given, name="a")["resources"]) == 1
    add(server, "/api/v1/namespaces/ns/secrets/b", "Secret", OURS)
    assert run(k8s_require_owned.main, **given, name="b")["failed"]


def test_a_resource_that_is_not_stored(run: Run, server: Any) -> None:
    add(server, "/api/v1/namespaces/ns/secrets/a", "Secret")
    owner = {"kind": "Shop", "metadata": {"name": "lobby", "uid": "00000000-0000-0000-0000-000000000000"}}
    given = {"owner": owner, "kind": "Secret", "namespace": "ns"}
    assert len(run(k8s_require_owned.main, **given, name="a")["resources"]) == 1
    add(server, "/api/v1/namespaces/ns/secrets/b", "Secret", OURS)
    assert run(k8s_require_owned.main, **given, name="b")["failed"]


@pytest.mark.parametrize(
    ("options", "want"),
    [
        ({}, "one of the following is required: definition, kind"),
        ({"kind": "Secret"}, "parameters are required together: kind, name"),
        ({"definition": [{"kind": "Secret"}]}, "definition[0]: apiVersion, kind and metadata.name are required"),
        ({"kind": "Secret", "name": "a"}, "namespace: Secret is of a namespace, and none is given"),
        ({"kind": "Secret", "name": "a", "namespace": "ns", "owner": {}}, "owner: an object with metadata.uid"),
    ],
)
def test_faults(run: Run, server: Any, options: dict[str, Any], want: str) -> None:
    result = run(k8s_require_owned.main, **{"owner": SHOP, **options})
    assert result["failed"]
    assert want in result["msg"]
    assert server.written() == []
