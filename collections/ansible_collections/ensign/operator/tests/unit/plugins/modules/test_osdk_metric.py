"""Tests of osdk_metric against an endpoint."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.ensign.operator.plugins.modules import osdk_metric

Run = Callable[..., dict[str, Any]]
METRIC = {"name": "backups", "description": "Backups made"}
TOKEN = "Bearer a-token-of-a-run"  # noqa: S105


@pytest.fixture(autouse=True)
def endpoint(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    server.before = lambda request: (200, {}) if request.path == "/metrics" else None
    monkeypatch.setenv("ENSIGN_USER_METRICS", server.url + "/metrics")


POSTED: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"counter": {"increment": True}}, {"counter": {"increment": True}}),
    ({"counter": {"increment": "yes", "add": "2.5"}}, {"counter": {"increment": True, "add": 2.5}}),
    ({"counter": {}}, {"counter": {}}),
    ({"gauge": {"set": 0}}, {"gauge": {"set": 0.0}}),
    ({"gauge": {"increment": True, "decrement": False}}, {"gauge": {"increment": True}}),
    ({"gauge": {"add": 1, "sub": 2}}, {"gauge": {"add": 1.0, "subtract": 2.0}}),
    (
        {"gauge": {"subtract": 2, "set_to_current_time": True}},
        {"gauge": {"subtract": 2.0, "set_to_current_time": True}},
    ),
    ({"histogram": {"observe": 0.3}}, {"histogram": {"observe": 0.3}}),
    ({"summary": {"observe": -1}}, {"summary": {"observe": -1.0}}),
    ({"histogram": {}}, {"histogram": {}}),
    ({"summary": {"observe": None}}, {"summary": {}}),
]


@pytest.mark.parametrize(("given", "want"), POSTED)
def test_what_is_posted(run: Run, server: Any, given: dict[str, Any], want: dict[str, Any]) -> None:
    result = run(osdk_metric.main, **METRIC, **given)
    assert (result.get("failed"), result["changed"], result["metric"]) == (None, False, {**METRIC, **want})
    [request] = server.requests
    assert (request.method, request.path, request.content_type) == ("POST", "/metrics", "application/json")
    assert (request.body, request.authorization) == ({**METRIC, **want}, TOKEN)


def test_check_mode_posts_nothing(run: Run, server: Any) -> None:
    assert run(osdk_metric.main, **METRIC, counter={"add": 1}, check=True)["metric"]["counter"] == {"add": 1}
    assert server.requests == []


@pytest.mark.parametrize(
    "kubeconfig",
    ["", "/nowhere", "not: [a kubeconfig", "[]", "users: 1", "current-context: none\nusers: []\ncontexts: []\n"],
)
def test_without_a_token(
    run: Run, server: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kubeconfig: str
) -> None:
    if ":" in kubeconfig or kubeconfig == "[]":
        (tmp_path / "other").write_text(kubeconfig, encoding="utf-8")
        kubeconfig = str(tmp_path / "other")
    monkeypatch.setenv("K8S_AUTH_KUBECONFIG", kubeconfig)
    run(osdk_metric.main, **METRIC, counter={})
    assert server.requests[0].authorization == ""


def test_the_token_stays_on_this_host(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = []
    monkeypatch.setattr(osdk_metric, "post", lambda url, _, bearer: sent.append((url, bearer)))
    for endpoint in (
        "http://198.51.100.1/metrics",
        "http://127.0.0.1.example.com/",
        "http://[::1]:1/metrics",
        "http://localhost:1/",
    ):
        run(osdk_metric.main, **METRIC, counter={}, endpoint=endpoint)
    assert [bool(bearer) for _url, bearer in sent] == [False, False, True, True]


def test_outside_of_a_run_nothing_is_posted(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = []
    monkeypatch.setattr(osdk_metric, "post", lambda *posted: sent.append(posted))
    monkeypatch.delenv("ENSIGN_USER_METRICS")
    result = run(osdk_metric.main, **METRIC, counter={"increment": True})
    assert (result.get("failed"), result["changed"]) == (None, False)
    assert result["metric"] == {**METRIC, "counter": {"increment": True}}
    assert result["msg"].startswith("nothing was posted: ")
    assert sent == []


@pytest.mark.parametrize(
    ("address", "want"),
    [
        ("{url}", "/metrics"),
        ("{url}/", "/metrics"),
        ("{url}/metrics", "/metrics"),
        ("{url}/elsewhere", "/elsewhere"),
        ("{host}", "/metrics"),
        ("{host}/metrics", "/metrics"),
    ],
)
def test_an_address_that_is_given_is_used_outside_of_a_run_too(
    run: Run, server: Any, monkeypatch: pytest.MonkeyPatch, address: str, want: str
) -> None:
    server.before = lambda _: (200, {})
    monkeypatch.delenv("ENSIGN_USER_METRICS")
    address = address.format(url=server.url, host=server.url.removeprefix("http://"))
    result = run(osdk_metric.main, **METRIC, counter={}, address=address)
    assert "msg" not in result
    assert [request.path for request in server.requests] == [want]


@pytest.mark.parametrize(
    "address", ["file:///etc/passwd", "ftp://127.0.0.1/x", "data://x", "http://", "http:///metrics"]
)
def test_an_address_that_is_none_of_http_is_refused(run: Run, server: Any, address: str) -> None:
    result = run(osdk_metric.main, **METRIC, counter={}, address=address)
    assert result["failed"]
    assert "is neither host:port nor a URL of http or https" in result["msg"]
    assert server.requests == []


def test_a_refusal_says_why(run: Run, server: Any) -> None:
    server.before = lambda _: (400, {"message": "counter: add is -1"})
    result = run(osdk_metric.main, **METRIC, counter={"add": -1})
    assert result["failed"]
    assert "backups: the endpoint for metrics refuses it: " in result["msg"]
    assert "add is -1" in result["msg"]


def test_nobody_listens(run: Run) -> None:
    result = run(osdk_metric.main, **METRIC, counter={}, endpoint="http://127.0.0.1:1/metrics")
    assert "could not reach the endpoint for metrics at http://127.0.0.1:1/metrics" in result["msg"]


@pytest.mark.parametrize(
    ("options", "want"),
    [
        ({}, "counter, gauge, histogram, summary"),
        ({"counter": {}, "gauge": {}}, "mutually exclusive"),
        ({"counter": {"set": 1}}, "set"),
        ({"gauge": {"set": "much"}}, "set"),
    ],
)
def test_faults(run: Run, server: Any, options: dict[str, Any], want: str) -> None:
    result = run(osdk_metric.main, **METRIC, **options)
    assert result["failed"]
    assert want in result["msg"]
    assert server.requests == []
