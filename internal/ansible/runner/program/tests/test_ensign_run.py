"""Which events and which text ensign_run.py writes."""

import datetime
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ensign_events
import pytest
from ensign_events import BoundedCopy, bounded_counts, bounded_event, encode_json, truncate
from ensign_run import EventFilter, bypass_proxy

CUT = "… [cut]"
Reports = Callable[[], list[dict[str, Any]]]


@pytest.fixture
def stream() -> Any:
    """An EventFilter, and a function that returns what it wrote since the last call."""
    reading, writing = os.pipe()
    os.set_blocking(reading, False)

    def reports() -> list[dict[str, Any]]:
        with open(reading, encoding="utf-8", closefd=False) as lines:
            return [json.loads(line) for line in lines]

    yield EventFilter(writing, None), reports
    os.close(reading)
    os.close(writing)


def event(kind: str, **data: Any) -> dict[str, Any]:
    return {"event": kind, "uuid": "u", "created": "2026-01-02T03:04:05+00:00", "pid": 7, "event_data": data}


def test_an_event_is_output_with_its_text(stream: tuple[EventFilter, Reports]) -> None:
    events, reports = stream
    events.begin(event("runner_on_ok", host="h", res={"msg": "m"}))
    events.write("ok: [h]\r\n")
    assert reports() == []
    events.end()
    [got] = reports()
    assert got == {
        "event": "runner_on_ok",
        "uuid": "u",
        "created": "2026-01-02T03:04:05+00:00",
        "event_data": {"host": "h", "res": {"msg": "m"}},
        "stdout": "ok: [h]\r\n",
    }


def test_text_outside_of_events_comes_by_lines_and_the_rest_at_the_end(stream: tuple[EventFilter, Reports]) -> None:
    events, reports = stream
    events.write("a\nb\nc")
    assert reports() == [{"stdout": "a"}, {"stdout": "b"}]
    events.write("d")
    assert reports() == []
    events.close()
    assert reports() == [{"stdout": "cd"}]


def test_text_before_an_event_is_no_part_of_it(stream: tuple[EventFilter, Reports]) -> None:
    events, reports = stream
    events.write("loose")
    events.begin(event("verbose"))
    events.write("own")
    events.begin(event("error"))
    events.close()
    assert [(r.get("event"), r["stdout"]) for r in reports()] == [(None, "loose"), ("verbose", "own"), ("error", "")]


def test_a_later_change_of_a_result_is_no_part_of_its_event() -> None:
    result = {"list": [1]}
    got = bounded_event(event("runner_on_ok", res=result))
    result["list"].append(2)
    assert got["event_data"]["res"] == {"list": [1]}


def test_what_nobody_reads_is_not_reported() -> None:
    got = bounded_event(
        event("runner_on_ok", task="t", play_uuid="u", task_args="secret", ignore_errors=None, duration=1.5)
    )
    assert got["event_data"] == {"task": "t", "duration": 1.5}


def test_a_hidden_result_says_whether_something_changed() -> None:
    hidden = {"censored": "hidden"}
    changed = bounded_event(event("runner_on_ok", res=hidden, changed_under_no_log=True))
    same = bounded_event(event("runner_on_ok", res=hidden))
    assert changed["event_data"] == {"res": {"censored": "hidden", "changed": True}}
    assert same["event_data"] == {"res": hidden}


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("x" * 8, "x" * 8),  # And two quotation marks.
        ("x" * 9, "x" * 8 + CUT),
        ("ä" * 4, "ä" * 4),
        ("ä" * 5, "ä" * 4 + CUT),
        ("\0\0", "\0" + CUT),
        ("\ud800", "\ud800"),
        ("", ""),
        (None, ""),
        (7, ""),
    ],
)
def test_truncate(text: object, want: str) -> None:
    assert truncate(text, 10) == want


class Tagged(str):
    """A str whose __str__ returns another text, as Ansible has them."""

    def __str__(self) -> str:
        return "decrypted"


class Vaulted:
    """A value whose text is a secret."""

    def __str__(self) -> str:
        return "decrypted"


@pytest.mark.parametrize(
    ("value", "want"),
    [
        ({"a": [1, 2.5, True, None, "x"]}, {"a": [1, 2.5, True, None, "x"]}),
        ((1, (2,)), [1, [2]]),
        ({1: "a", None: "b"}, {"1": "a", "null": "b"}),
        (float("nan"), "nan"),
        (float("-inf"), "-inf"),
        (2**70, 2**70),
        pytest.param(10**5000, "(int)", id="too many digits"),
        (datetime.date(2026, 1, 2), "2026-01-02"),
        (Tagged("encrypted"), "encrypted"),
        ([Vaulted(), b"bytes"], ["(Vaulted)", "(bytes)"]),
    ],
)
def test_copies(value: object, want: object) -> None:
    assert BoundedCopy().copy(value) == want


@pytest.fixture(scope="module")
def floods() -> list[Any]:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    wide = {str(number): number for number in range(2_000_000)}
    beyond: Any = [[]] * 1_000_000
    for _ in range(62):
        beyond = [beyond]
    texts = [
        "y" * 20_000_000,
        "\0" * 20_000_000,
        ["x"] * 5_000_000,
        ["\U0001f600" * 300_000] * 9,
        {"\n" * 300_000: ["d" * 300_000] * 9},
    ]
    return [*texts, wide, deep, beyond, {f"{number} {'k' * 2000}": None for number in range(10_000)}]


def test_a_copy_is_bounded_and_says_so(floods: list[Any]) -> None:
    for value in floods:
        line = encode_json(BoundedCopy().copy(value))
        assert len(line) < ensign_events._MAX_RESULT + 1024
        assert CUT in line.decode()


def test_a_line_is_shorter_than_the_longest_that_is_read(floods: list[Any]) -> None:
    source = (Path(ensign_events.__file__).parents[2] / "jobevent" / "decode.go").read_text()
    [longest] = re.findall(r"maxLineBytes = (\d+) << 10", source)
    names = dict.fromkeys(ensign_events._NAME_FIELDS, "\0" * 5000)
    hosts = {name: {f"{'h' * 300}{number}": 1 for number in range(5000)} for name in ensign_events._COUNT_FIELDS}
    for data in [*({**names, "res": {"a": value}} for value in floods), {**names, **hosts}]:
        line = encode_json(
            {**bounded_event(event("e", **data)), "stdout": truncate("\0" * 1_000_000, ensign_events._MAX_TEXT)}
        )
        assert len(line) < int(longest) << 10


def test_what_comes_before_the_cut_is_kept() -> None:
    got = BoundedCopy().copy({"failed": True, "rc": 1, "stdout_lines": ["x"] * 100_000, "msg": "later"})
    assert (got["failed"], got["rc"], got["…"]) == (True, 1, CUT)
    assert got["stdout_lines"][-1] == CUT


def test_no_count_is_lost_among_many_hosts() -> None:
    got = bounded_counts({f"h{number}": 1 for number in range(5000)} | {"last": 7})
    assert sum(got.values()) == 5007
    assert got["h0"] == 1
    assert len(encode_json(got)) < ensign_events._MAX_COUNTS + 1024


@pytest.mark.parametrize(
    ("own", "want"),
    [
        ({}, {}),
        ({"LANG": "C"}, {"LANG": "C"}),
        (
            {"HTTPS_PROXY": "p"},
            {"HTTPS_PROXY": "p", "NO_PROXY": ".run,127.0.0.1,localhost", "no_proxy": ".run,127.0.0.1,localhost"},
        ),
        (
            {"http_proxy": "p"},
            {"http_proxy": "p", "NO_PROXY": ".run,127.0.0.1,localhost", "no_proxy": ".run,127.0.0.1,localhost"},
        ),
        ({"NO_PROXY": ""}, {"NO_PROXY": "127.0.0.1,localhost", "no_proxy": "127.0.0.1,localhost"}),
        ({"no_proxy": ".svc"}, {"no_proxy": ".svc,127.0.0.1,localhost", "NO_PROXY": ".svc,127.0.0.1,localhost"}),
        (
            {"no_proxy": "a", "NO_PROXY": "b"},
            {"no_proxy": "a,127.0.0.1,localhost", "NO_PROXY": "b,127.0.0.1,localhost"},
        ),
        (
            {"NO_PROXY": "localhost, 127.0.0.1"},
            {"NO_PROXY": "localhost, 127.0.0.1", "no_proxy": "localhost, 127.0.0.1"},
        ),
        ({"ALL_PROXY": "p", "NO_PROXY": "*"}, {"ALL_PROXY": "p", "NO_PROXY": "*", "no_proxy": "*"}),
    ],
)
def test_a_task_with_a_proxy_reaches_the_api_proxy(
    own: dict[str, str], want: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", ".run,127.0.0.1,localhost")
    assert bypass_proxy(own) == want
