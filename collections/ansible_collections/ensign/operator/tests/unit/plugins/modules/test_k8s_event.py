"""Tests of k8s_event against an API server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from ansible_collections.ensign.operator.plugins.modules import k8s_event

Run = Callable[..., dict[str, Any]]
EVENTS = "/api/v1/namespaces/ns/events"
REFERENCE = {"apiVersion": "test.io/v1", "kind": "Probe", "name": "sample", "namespace": "ns"}
GIVEN = {"name": "e", "namespace": "ns", "reason": "Saved", "message": "All is well"}


def test_an_event_of_its_own_each_time(run: Run, server: Any) -> None:
    server.add("/apis/test.io/v1/namespaces/ns/probes/sample")
    for _time in range(2):
        result = run(k8s_event.main, **GIVEN, involvedObject=REFERENCE, type="Warning", reportingComponent="me")
        assert result["changed"]
    first, second = server.written()
    assert (first.method, first.path) == ("POST", EVENTS)
    assert first.body["metadata"]["name"].startswith("e.")
    assert first.body["metadata"]["name"] != second.body["metadata"]["name"]
    event = first.body
    assert event["involvedObject"] == {**REFERENCE, "uid": "uid-of-sample", "resourceVersion": "11"}
    assert (event["reason"], event["message"], event["type"], event["count"]) == ("Saved", "All is well", "Warning", 1)
    assert (event["reportingComponent"], event["source"]) == ("me", {"component": "me"})
    assert event["firstTimestamp"] == event["lastTimestamp"]


@pytest.mark.parametrize("merge_type", [None, ["merge"], ["strategic-merge", "json"], ["json"]])
def test_an_event_that_is_counted(run: Run, server: Any, merge_type: list[str] | None) -> None:
    options = {**GIVEN, "appendTimestamp": False, "merge_type": merge_type}
    run(k8s_event.main, **options)
    there = server.objects[EVENTS + "/e"]
    there["firstTimestamp"] = "2020-01-01T00:00:00Z"
    result = run(k8s_event.main, **{**options, "message": "Again"})
    assert result["changed"]
    assert (there["count"], there["message"], there["firstTimestamp"]) == (2, "Again", "2020-01-01T00:00:00Z")
    assert there["lastTimestamp"] > there["firstTimestamp"]
    assert [request.content_type for request in server.written()] == [
        "application/json",
        k8s_event.PATCHES[(merge_type or ["merge"])[0]],
    ]


def test_other_spellings_and_a_reference_as_it_is_given(run: Run, server: Any) -> None:
    reference = {"api_version": "test.io/v1", "kind": "Probe", "name": "sample", "uid": "u", "field_path": "spec"}
    given = {"involved_object": reference, "reporting_component": "me", "append_timestamp": False}
    run(k8s_event.main, **GIVEN, **given, source={"component": "old", "host": "node"})
    event = server.objects[EVENTS + "/e"]
    assert event["involvedObject"] == {
        "apiVersion": "test.io/v1",
        "kind": "Probe",
        "name": "sample",
        "uid": "u",
        "fieldPath": "spec",
    }
    assert event["source"] == {"component": "old", "host": "node"}
    assert [request.method for request in server.requests] == ["GET", "POST"]


@pytest.mark.parametrize("reference", [{**REFERENCE, "name": "gone"}, {**REFERENCE, "kind": "Unknown"}])
def test_an_event_about_what_is_gone(run: Run, server: Any, reference: dict[str, str]) -> None:
    assert run(k8s_event.main, **GIVEN, involvedObject=reference)["changed"]
    assert server.written()[0].body["involvedObject"] == reference


def test_absent(run: Run, server: Any) -> None:
    server.add(EVENTS + "/e")
    absent = {"name": "e", "namespace": "ns", "state": "absent"}
    assert run(k8s_event.main, **absent, check=True)["changed"]
    assert EVENTS + "/e" in server.objects
    assert run(k8s_event.main, **absent)["changed"]
    assert EVENTS + "/e" not in server.objects
    assert not run(k8s_event.main, **absent)["changed"]


def test_check_mode_writes_nothing(run: Run, server: Any) -> None:
    result = run(k8s_event.main, **GIVEN, check=True)
    assert result["changed"]
    assert result["result"]["message"] == "All is well"
    assert server.written() == []


@pytest.mark.parametrize(
    ("options", "want"),
    [
        ({"message": None}, "message"),
        ({"reason": None}, "reason"),
        ({"namespace": None}, "namespace"),
        ({"type": "Good"}, "must be one of"),
    ],
)
def test_faults(run: Run, server: Any, options: dict[str, Any], want: str) -> None:
    result = run(k8s_event.main, **{**GIVEN, **options})
    assert result["failed"]
    assert want in result["msg"]
    assert server.requests == []


# What an HTTP library, or a server, would make another path of; with "" the path is that of all Events.
STRAY = ["", ".", "..", "../../pods", "a/b", "a%2Fb", "%2e%2e"]


@pytest.mark.parametrize("state", ["present", "absent"])
@pytest.mark.parametrize("option", ["name", "namespace"])
@pytest.mark.parametrize("stray", STRAY)
def test_no_request_for_another_path(run: Run, server: Any, stray: str, option: str, state: str) -> None:
    server.add(EVENTS + "/e")
    for append in (True, False):
        result = run(k8s_event.main, **{**GIVEN, "state": state, "appendTimestamp": append, option: stray})
        assert result["failed"]
        assert result["msg"].startswith(f"{option}: ")
    assert server.requests == []


@pytest.mark.parametrize(
    "reference",
    [
        *({**REFERENCE, option: stray} for option in ("name", "namespace") for stray in STRAY),
        *({**REFERENCE, "apiVersion": stray} for stray in ["..", "test.io/..", "test.io/v1/namespaces/ns"]),
    ],
)
def test_a_reference_to_another_path_is_not_looked_up(run: Run, server: Any, reference: dict[str, str]) -> None:
    result = run(k8s_event.main, **GIVEN, involvedObject=reference)
    assert result["failed"]
    assert [request.path for request in server.requests if request.path != "/apis/test.io/v1"] == []


def test_a_refusal_is_passed_on(run: Run, server: Any) -> None:
    server.before = lambda request: (403, {"message": "you may not"}) if request.method == "POST" else None
    assert run(k8s_event.main, **GIVEN)["msg"] == "you may not"
