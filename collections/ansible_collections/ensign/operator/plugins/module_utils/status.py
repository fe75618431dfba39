# Copyright The Ensign authors
# SPDX-License-Identifier: Apache-2.0

"""What becomes of an object's status: functions of values.

None in what is given removes a key, and within a status stands for a key that is not there.
"""

from __future__ import annotations

import re
from typing import Any

Status = dict[str, Any]

# What the API server accepts as the reason of a metav1.Condition.
REASON = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)")
TIMES = ("lastTransitionTime", "lastHeartbeatTime")


def checked(conditions: list[Status]) -> list[Status]:
    """Return conditions, without what is None, that hold to the conventions of the API, or raise ValueError."""
    found = [{key: value for key, value in condition.items() if value is not None} for condition in conditions]
    types = [condition["type"] for condition in found]
    for condition in found:
        kind = condition["type"]
        if not kind:
            raise ValueError("the type of a condition is empty")
        if types.count(kind) > 1:
            raise ValueError(f"there are {types.count(kind)} conditions of the type {kind}")
        if condition.get("reason") and not REASON.fullmatch(condition["reason"]):
            raise ValueError(f"the reason of {kind} has to be one word in CamelCase: {condition['reason']!r}")
        for key in TIMES:
            if key in condition and not TIME.fullmatch(condition[key]):
                raise ValueError(f"{key} of {kind} has to be a time as in RFC 3339: {condition[key]!r}")
    return found


def observing(given: Status, generation: Any) -> Status:
    """Return the status to be set, in which each condition that names no generation observes this one."""
    conditions = given.get("conditions")
    if not isinstance(conditions, list) or not isinstance(generation, int):
        return given
    observed = [{"observedGeneration": generation, **c} if is_condition(c) else c for c in conditions]
    return {**given, "conditions": observed}


def types(given: Status) -> list[str]:
    """Return the types of the conditions that are to be set."""
    conditions = given.get("conditions")
    return [str(c["type"]) for c in conditions if is_condition(c)] if isinstance(conditions, list) else []


def with_conditions(current: Any, given: list[Any], now: str, *, alone: bool) -> list[Any]:
    """Put the given conditions in the places of those of their types; others stay, unless these are to be alone."""
    there = current if isinstance(current, list) else []
    result = [] if alone else list(there)
    for condition in given:
        place = index_of(there, condition)
        after = timed(None if place is None else there[place], condition, now)
        if alone or place is None:
            result.append(after)
        else:
            result[place] = after
    return result


def index_of(conditions: list[Any], condition: Any) -> int | None:
    """Return where the condition of the same type stands."""
    if not is_condition(condition):
        return None
    there = [c["type"] if is_condition(c) else None for c in conditions]
    return there.index(condition["type"]) if condition["type"] in there else None


def is_condition(value: Any) -> bool:
    """Tell what has a type from whatever else a status may hold at that place."""
    return isinstance(value, dict) and value.get("type") is not None


def timed(before: dict[str, Any] | None, condition: Any, now: str) -> Any:
    """Give the condition the time of its last transition, which moves exactly when its status does."""
    if not is_condition(condition):
        return condition
    since = condition.get("lastTransitionTime") or now
    if before and before.get("status") == condition.get("status"):
        since = before.get("lastTransitionTime") or since
    return {**condition, "lastTransitionTime": since}


def merged(current: Any, given: Any, replace_lists: bool) -> Any:
    """Return what becomes of a value: dictionaries are merged at every depth.

    A list takes the place of the one that is there. Without replace_lists it does not where that one has
    all of its items.
    """
    if isinstance(given, dict):
        return merged_dict(current if isinstance(current, dict) else {}, given, replace_lists)
    if isinstance(given, list) and isinstance(current, list) and not replace_lists:
        return current if all(item in current for item in given) else given
    return given


def merged_dict(current: Status, given: Status, replace_lists: bool) -> Status:
    """Return what becomes of a dictionary: None removes a key."""
    after = dict(current)
    for key, value in given.items():
        if value is None:
            after.pop(key, None)
        else:
            after[key] = merged(current.get(key), value, replace_lists)
    return after


def wanted(current: Status, given: Status, now: str, *, replace: bool, replace_lists: bool) -> Status:
    """Return what the whole status becomes."""
    conditions = given.get("conditions")
    if not isinstance(conditions, list):
        return merged_dict({} if replace else current, given, replace_lists)
    rest = {key: value for key, value in given.items() if key != "conditions"}
    after = merged_dict({} if replace else current, rest, replace_lists)
    after["conditions"] = with_conditions(current.get("conditions"), conditions, now, alone=replace)
    return after


def merge_patch(before: Status, after: Status) -> Status:
    """Return the JSON merge patch that makes after of before; empty where they are equal."""
    patch: Status = {key: None for key in before if key not in after}
    for key, value in after.items():
        there = before.get(key)
        if isinstance(value, dict) and isinstance(there, dict):
            if inner := merge_patch(there, value):
                patch[key] = inner
        elif key not in before or there != value:
            patch[key] = value
    return patch


def lost(wanted_status: Status, kept: Status) -> list[str]:
    """Return the keys at the top of a status that the API server did not keep, or not whole."""
    return sorted(key for key, value in wanted_status.items() if not holds(kept.get(key), value))


def holds(there: Any, value: Any) -> bool:
    """Tell whether all of a value is there; a schema's defaults may stand beside it."""
    if isinstance(value, dict) and isinstance(there, dict):
        return all(holds(there.get(key), inner) for key, inner in value.items())
    if isinstance(value, list) and isinstance(there, list):
        return len(value) == len(there) and all(map(holds, there, value))
    return bool(there == value)
