"""Events as bounded JSON: what the operator reads of them, cut where it is long."""

import datetime
import json
import math
from typing import Any

# Limits of an event in bytes of JSON: a name, a text, a result, what each of its values counts in addition to its
# text, and the counts by host. All of them together are less than jobevent's maxLineBytes. And the depth of a result.
_MAX_NAME, _MAX_TEXT, _MAX_RESULT, _VALUE_OVERHEAD, _MAX_COUNTS = 1 << 10, 64 << 10, 256 << 10, 16, 24 << 10
_MAX_DEPTH = 64
_MAX_CHARACTER_BYTES = 6  # in JSON
_MAX_INTEGER_BITS = 256
_CUT, _CUT_KEY = "… [cut]", "…"  # jobevent.CutMark and jobevent.CutKey.
_NAME_FIELDS = ("play", "task", "role", "host", "task_path", "task_action", "resolved_action")
_COUNT_FIELDS = ("ok", "changed", "failures", "dark", "skipped", "rescued", "ignored", "processed", "lost")

# What ensign_run.py adds to the event of a result that is hidden, where the task changed something.
CHANGED_UNDER_NO_LOG = "changed_under_no_log"

_encode = json.JSONEncoder(ensure_ascii=False).encode


def encode_json(value: object) -> bytes:
    return _encode(value).encode("utf-8", "replace")


def bounded_event(event: dict[str, Any]) -> dict[str, Any]:
    """Return a copy of the fields of an event that the operator reads, bounded in size."""
    data = event.get("event_data", {})
    kept: dict[str, Any] = {name: truncate(data[name], _MAX_NAME) for name in _NAME_FIELDS if name in data}
    kept.update({name: bounded_counts(data[name]) for name in _COUNT_FIELDS if isinstance(data.get(name), dict)})
    if isinstance(data.get("duration"), float):
        kept["duration"] = data["duration"]
    if data.get("ignore_errors") is True:
        kept["ignore_errors"] = True
    if isinstance(data.get("res"), dict):
        kept["res"] = BoundedCopy().copy(data["res"])
        if data.get(CHANGED_UNDER_NO_LOG) is True:
            kept["res"]["changed"] = True
    return {"event": event["event"], "uuid": event["uuid"], "created": event["created"], "event_data": kept}


def truncate(text: object, limit: int) -> str:
    """Return the part of a text that is within the limit, marked if it was truncated; "" for other types."""
    if not isinstance(text, str):
        return ""
    text = str.__str__(text)  # Ansible has subclasses of str whose __str__ returns another text.
    if len(text) * _MAX_CHARACTER_BYTES + 2 <= limit:
        return text
    kept = text[:limit]
    while kept and (size := len(encode_json(kept))) > limit:
        kept = kept[: len(kept) * limit // size]
    return kept if len(kept) == len(text) else kept + _CUT


def truncate_text(text: str) -> str:
    """Return what an event may have of displayed text."""
    return truncate(text, _MAX_TEXT)


def bounded_counts(by_host: dict[str, int]) -> dict[str, int]:
    """Return the counts by host. The counts of hosts beyond the limit are added up under _CUT_KEY."""
    kept: dict[str, int] = {}
    remaining = _MAX_COUNTS
    for host, number in by_host.items():
        key = truncate(host, _MAX_NAME)
        remaining -= len(encode_json(key)) + _VALUE_OVERHEAD
        key = key if remaining > 0 else _CUT_KEY
        kept[key] = kept.get(key, 0) + number
    return kept


def json_scalar(value: object) -> Any:
    """Return a value other than text and containers for JSON."""
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, datetime.date):
        return value.isoformat()
    if value is None or (isinstance(value, int) and value.bit_length() <= _MAX_INTEGER_BITS):
        return value
    return f"({type(value).__name__})"  # Not str(value): Ansible decrypts vault values there.


class BoundedCopy:
    """Copies a value for JSON up to a maximum size. The copy shows what was left out."""

    def __init__(self) -> None:
        self._remaining = _MAX_RESULT

    def copy(self, value: object, depth: int = 0) -> Any:
        self._remaining -= _VALUE_OVERHEAD
        is_container = isinstance(value, (dict, list, tuple))
        if self._remaining <= 0 or (is_container and depth == _MAX_DEPTH):
            return _CUT
        if isinstance(value, dict):
            return self._members(value, depth)
        if isinstance(value, (list, tuple)):
            return self._elements(value, depth)
        return self._text(value, _MAX_TEXT) if isinstance(value, str) else json_scalar(value)

    def _text(self, value: str, limit: int) -> str:
        text = truncate(value, min(limit, self._remaining))
        self._remaining -= len(encode_json(text))
        return text

    def _members(self, value: dict[Any, Any], depth: int) -> dict[str, Any]:
        kept: dict[str, Any] = {}
        for key, member in value.items():
            if self._remaining <= 0:
                kept[_CUT_KEY] = _CUT
                break
            name = self._text(key if isinstance(key, str) else json.dumps(key, default=repr), _MAX_NAME)
            kept[name] = self.copy(member, depth + 1)
        return kept

    def _elements(self, value: list[Any] | tuple[Any, ...], depth: int) -> list[Any]:
        kept: list[Any] = []
        for element in value:
            if self._remaining <= 0:
                kept.append(_CUT)
                break
            kept.append(self.copy(element, depth + 1))
        return kept
