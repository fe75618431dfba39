"""Tests of k8s_status against an API server."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from ansible_collections.ensign.operator.plugins.modules import k8s_status

Run = Callable[..., dict[str, Any]]
PLACE = "/apis/test.io/v1/namespaces/ns/probes/sample"
SAMPLE = {"api_version": "test.io/v1", "kind": "Probe", "name": "sample", "namespace": "ns"}
THEN = "2020-01-01T00:00:00Z"
RUNNING = {
    "type": "Running",
    "status": "True",
    "reason": "Running",
    "lastTransitionTime": THEN,
    "ansibleResult": {"ok": 1},
}


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(k8s_status.time, "sleep", lambda _: None)


@pytest.fixture
def probe(server: Any) -> dict[str, Any]:
    status = {"conditions": [copy.deepcopy(RUNNING)], "observedGeneration": 1}
    found: dict[str, Any] = server.add(PLACE, kind="Probe", apiVersion="test.io/v1", spec={"size": 1}, status=status)
    return found


@pytest.mark.usefixtures("probe")
@pytest.mark.parametrize("check", [True, False])
@pytest.mark.parametrize("stray", ["", ".", "..", "../x", "sample/status", "a%2Fb", "%2e%2e"])
@pytest.mark.parametrize("option", ["name", "namespace", "api_version"])
def test_no_request_for_another_path(run: Run, server: Any, option: str, stray: str, check: bool) -> None:
    if (option, stray) == ("api_version", "sample/status"):
        stray = "test.io/v1/namespaces/ns"
    result = run(k8s_status.main, **{**SAMPLE, option: stray}, status={"nodes": ["a"]}, check=check)
    assert result["failed"]
    assert result["msg"].startswith(f"{option}: ")
    assert [request.path for request in server.requests if request.path != "/apis/test.io/v1"] == []


def test_a_status_is_merged(run: Run, server: Any, probe: dict[str, Any]) -> None:
    version = probe["metadata"]["resourceVersion"]
    result = run(k8s_status.main, **SAMPLE, status={"nodes": ["a"], "observedGeneration": None})
    assert result["changed"]
    assert result["result"]["status"] == {"conditions": [RUNNING], "nodes": ["a"]}
    [request] = server.written()
    assert (request.method, request.path, request.content_type) == (
        "PATCH",
        PLACE + "/status",
        "application/merge-patch+json",
    )
    assert request.body == {
        "metadata": {"resourceVersion": version},
        "status": {"nodes": ["a"], "observedGeneration": None},
    }
    assert request.authorization == "Bearer a-token-of-a-run"


def test_the_same_again_writes_nothing(run: Run, server: Any, probe: dict[str, Any]) -> None:
    given = {
        "status": {"nodes": ["a"]},
        "conditions": [{"type": "Mine", "status": True, "reason": "Good", "message": "m"}],
    }
    first = run(k8s_status.main, **SAMPLE, **given)
    again = run(k8s_status.main, **SAMPLE, **given)
    assert (first["changed"], again["changed"], len(server.written())) == (True, False, 1)
    assert again["result"] == first["result"] == probe


def test_a_condition_is_added_beside_others(run: Run, probe: dict[str, Any]) -> None:
    run(k8s_status.main, **SAMPLE, conditions=[{"type": "Mine", "status": "Unknown"}])
    running, mine = probe["status"]["conditions"]
    assert running == RUNNING
    assert (mine["type"], mine["status"], mine["lastTransitionTime"] > THEN) == ("Mine", "Unknown", True)
    assert set(mine) == {"type", "status", "lastTransitionTime"}


def test_replacing(run: Run, server: Any, probe: dict[str, Any]) -> None:
    assert run(k8s_status.main, **SAMPLE, status={"nodes": ["a"]}, force=True)["changed"]
    assert probe["status"] == {"nodes": ["a"]}
    assert not run(k8s_status.main, **SAMPLE, status={"nodes": ["a"]}, replace=True)["changed"]
    assert probe["spec"] == {"size": 1}
    assert len(server.written()) == 1


@pytest.mark.parametrize(("replace_lists", "want"), [(False, ["a", "b"]), (True, ["b"])])
def test_a_shorter_list(run: Run, probe: dict[str, Any], replace_lists: bool, want: list[str]) -> None:
    probe["status"]["nodes"] = ["a", "b"]
    result = run(k8s_status.main, **SAMPLE, status={"nodes": ["b"]}, replace_lists=replace_lists)
    assert (probe["status"]["nodes"], result["changed"]) == (want, replace_lists)


def test_who_was_faster_is_not_overwritten(run: Run, server: Any, probe: dict[str, Any]) -> None:
    def somebody_else(request: Any) -> None:
        if request.method == "PATCH" and len(server.written()) <= 3:
            server.version += 1
            probe["metadata"]["resourceVersion"] = str(server.version)
            probe["status"]["theirs"] = server.version

    server.before = somebody_else
    assert run(k8s_status.main, **SAMPLE, status={"mine": 1})["changed"]
    assert probe["status"] == {
        "conditions": [RUNNING],
        "observedGeneration": 1,
        "mine": 1,
        "theirs": probe["status"]["theirs"],
    }
    assert len(server.written()) == 4


@pytest.mark.usefixtures("probe")
def test_it_gives_up_when_somebody_is_always_faster(run: Run, server: Any) -> None:
    server.before = lambda request: (409, {"message": "modified"}) if request.method == "PATCH" else None
    result = run(k8s_status.main, **SAMPLE, status={"mine": 1})
    assert (result["failed"], result["status"], len(server.written())) == (True, 409, k8s_status.ATTEMPTS)


def test_check_mode_and_diff(run: Run, server: Any, probe: dict[str, Any]) -> None:
    result = run(k8s_status.main, **SAMPLE, status={"mine": 1}, check=True, diff=True)
    before = {"conditions": [RUNNING], "observedGeneration": 1}
    assert (result["changed"], result["result"]["status"]) == (True, {**before, "mine": 1})
    assert result["diff"] == {"before": before, "after": {**before, "mine": 1}}
    assert (server.written(), probe["status"]) == ([], before)


def test_what_the_schema_drops_is_told_and_changes_nothing(run: Run, server: Any, probe: dict[str, Any]) -> None:
    server.before = lambda request: (200, probe) if request.method == "PATCH" else None
    result = run(k8s_status.main, **SAMPLE, status={"unknown": 1})
    assert not result["changed"]
    assert "does not keep all of status: unknown" in str(result["warnings"])


@pytest.mark.parametrize("kind", ["Probe", "probe", "probes", "pb"])
def test_the_kind_by_any_of_its_names(run: Run, probe: dict[str, Any], kind: str) -> None:
    assert run(k8s_status.main, **{**SAMPLE, "kind": kind}, status={"x": 1})["changed"]
    assert probe["status"]["x"] == 1


def test_a_kind_without_namespace(run: Run, server: Any) -> None:
    wide = server.add("/apis/test.io/v1/wides/w", kind="Wide", apiVersion="test.io/v1")
    assert run(k8s_status.main, api="test.io/v1", kind="Wide", name="w", namespace="", status={"x": 1})["changed"]
    assert wide["status"] == {"x": 1}


def test_without_an_api_version_it_is_v1(run: Run, server: Any) -> None:
    server.objects["/api/v1"]["resources"].append({"name": "pods/status", "kind": "Pod", "namespaced": True})
    pod = server.add("/api/v1/namespaces/ns/pods/p", kind="Pod", apiVersion="v1")
    assert run(k8s_status.main, kind="Pod", name="p", namespace="ns", status={"x": 1})["changed"]
    assert pod["status"] == {"x": 1}


FAULTS: dict[str, tuple[dict[str, Any], str]] = {
    "nothing to write": ({}, "status, conditions"),
    "conditions twice": ({"status": {"conditions": []}, "conditions": []}, "in status too"),
    "a bad reason": ({"conditions": [{"type": "A", "status": "True", "reason": "not one"}]}, "CamelCase"),
    "a bad status": ({"conditions": [{"type": "A", "status": "maybe"}]}, "must be one of"),
    "no type": ({"conditions": [{"status": "True"}]}, "type"),
    "an unknown field": ({"conditions": [{"type": "A", "status": "True", "severity": "x"}]}, "severity"),
    "no such object": ({"name": "other", "status": {}}, "other not found"),
    "no such kind": ({"kind": "Nothing", "status": {}}, "no kind Nothing in test.io/v1"),
    "no such group": ({"api_version": "none.io/v1", "status": {}}, "no kind Probe in none.io/v1"),
    "no status subresource": ({"kind": "Plain", "status": {}}, "no status subresource"),
    "no namespace": ({"namespace": None, "status": {}}, "namespace"),
}


@pytest.mark.parametrize("why", FAULTS)
def test_faults(run: Run, server: Any, probe: dict[str, Any], why: str) -> None:
    options, want = FAULTS[why]
    result = run(k8s_status.main, **{**SAMPLE, **options})
    assert result["failed"]
    assert want in result["msg"]
    assert server.written() == []
    assert probe["status"] == {"conditions": [RUNNING], "observedGeneration": 1}


def test_a_refusal_is_passed_on(run: Run, server: Any, probe: dict[str, Any]) -> None:
    server.before = lambda request: (403, {"message": "you may not"}) if request.method == "PATCH" else None
    result = run(k8s_status.main, **SAMPLE, status={"x": 1})
    assert (result["msg"], result["status"], probe["status"]["observedGeneration"]) == ("you may not", 403, 1)


@pytest.mark.parametrize(("headers", "want"), [({}, 7), ({"Ensign-Generation": "6"}, 6)])
def test_conditions_observe_the_generation_of_the_run(
    run: Run, server: Any, probe: dict[str, Any], headers: dict[str, str], want: int
) -> None:
    probe["metadata"]["generation"], server.headers = 7, headers
    mine = {"type": "Mine", "status": "True"}
    run(k8s_status.main, **SAMPLE, conditions=[mine, {"type": "Old", "status": "True", "observedGeneration": 2}])
    run(k8s_status.main, **SAMPLE, status={"conditions": [{"type": "Ready", "status": "True"}]})
    observed = {c["type"]: c.get("observedGeneration") for c in probe["status"]["conditions"]}
    assert observed == {"Running": None, "Mine": want, "Old": 2, "Ready": want}


def test_the_operator_learns_which_conditions_are_set(run: Run, server: Any, probe: dict[str, Any]) -> None:
    conditions = [{"type": "Ready", "status": "True"}, {"type": "Mine", "status": "True"}]
    for _ in range(2):  # The second time there is nothing to write.
        run(k8s_status.main, **SAMPLE, conditions=conditions)
        assert [r.types for r in server.requests if r.path == PLACE][-1] == "Ready,Mine"
    assert len(server.written()) == 1
    run(k8s_status.main, **SAMPLE, status={"nodes": []})
    assert server.requests[-2].types == ""
    assert probe["status"]["nodes"] == []
