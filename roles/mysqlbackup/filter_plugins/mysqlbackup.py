# Copyright The Ensign authors
# SPDX-License-Identifier: Apache-2.0

"""Filters of the role mysqlbackup: what is due, and what Jobs and other objects say."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

Object = dict[str, Any]
SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0}
UNITS = {
    **{suffix: 1000**power for power, suffix in enumerate(["", "k", "M", "G", "T", "P", "E"])},
    **{suffix: 1024**power for power, suffix in enumerate(["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"], start=1)},
}


def seconds(duration: str) -> float:
    """Return how long a duration such as 24h or 1h30m is."""
    if not re.fullmatch(r"(\d+(\.\d+)?[hms])+", duration, re.ASCII):
        raise ValueError(f'invalid duration "{duration}": use for example "24h" or "1h30m"')
    return sum(float(number) * SECONDS[unit] for number, unit in re.findall(r"([\d.]+)([hms])", duration))


def wait(last: Object, generation: int, interval: str, now: datetime | None = None) -> int:
    """Return the seconds until a dump is due; 0 where there is none, or none of this generation."""
    if not last.get("time") or last.get("generation") != generation:
        return 0
    age = (now or datetime.now(UTC)) - datetime.fromisoformat(last["time"])
    return max(0, math.ceil(seconds(interval) - age.total_seconds()))


def bytes_of(quantity: str) -> int:
    """Return the bytes of a Kubernetes quantity such as 10Gi, 1.5T or 1e9."""
    number = quantity.rstrip("KMGTPEik")
    return int(Decimal(number) * UNITS[quantity[len(number) :]])


def owned(objects: list[Object], owners: list[str]) -> list[Object]:
    """Return the objects that one of the owners has, by UID: whoever may create objects chooses their labels.

    The UID "none" stands for no owner, as objects have where no operator is at work.
    """

    def uids(found: Object) -> list[str]:
        return [reference["uid"] for reference in found["metadata"].get("ownerReferences") or []] or ["none"]

    return [found for found in objects if any(uid in owners for uid in uids(found))]


def condition(thing: Object, kind: str) -> Object:
    """Return a condition that is True, an empty one where it is not."""
    found: list[Object] = thing.get("status", {}).get("conditions") or []
    return next((c for c in found if c["type"] == kind and c["status"] == "True"), {})


def working(jobs: list[Object]) -> list[str]:
    """Return the names of the Jobs that have not ended."""
    return [j["metadata"]["name"] for j in jobs if not condition(j, "Complete") and not condition(j, "Failed")]


def for_turn(jobs: list[Object], turn: str, ended: str) -> Object:
    """Return the newest Job of a turn that ended as a condition says, an empty one where there is none."""
    found = [j for j in jobs if j["metadata"]["labels"].get("mysqlbackup-turn") == turn and condition(j, ended)]
    return max(found, key=lambda j: str(j["metadata"]["creationTimestamp"]), default={})


def says(pods: list[Object]) -> str:
    """Return what the last pod of a Job says of itself: its result, why it ended, or what it waits for."""
    if not pods:
        return ""
    status = max(pods, key=lambda p: str(p["metadata"]["creationTimestamp"])).get("status", {})
    for container in status.get("containerStatuses") or []:
        state: Object = container.get("state", {})
        ended, waiting = state.get("terminated") or {}, state.get("waiting") or {}
        if ended:
            return str(ended.get("message") or f"{ended.get('reason')}, exit code {ended.get('exitCode')}").strip()
        if waiting.get("reason") not in (None, "ContainerCreating", "PodInitializing"):
            return f"{waiting['reason']}: {waiting.get('message', '')}"
    refused = [c for c in status.get("conditions") or [] if c["type"] == "PodScheduled" and c["status"] == "False"]
    return "".join(f"{c.get('reason')}: {c.get('message', '')}" for c in refused) or str(status.get("message", ""))


def begun(restores: list[Object], cluster: str, before: Object | None = None) -> list[str]:
    """Return the MySQLRestores of a cluster that have begun and not ended; with before, those that go first."""

    def age(restore: Object) -> tuple[str, str]:
        return str(restore["metadata"]["creationTimestamp"]), restore["metadata"]["name"]

    return [
        r["metadata"]["name"]
        for r in restores
        if r["spec"]["cluster"]["name"] == cluster
        and r.get("status", {}).get("dump")
        and not r["status"].get("restored")
        and (before is None or age(r) < age(before))
    ]


def running(backups: list[Object], cluster: str) -> list[str]:
    """Return the MySQLBackups of a cluster whose run may make a dump."""
    return [b["metadata"]["name"] for b in backups if b["spec"]["cluster"]["name"] == cluster and busy(b)]


def busy(backup: Object) -> bool:
    return condition(backup, "Running").get("reason") == "Running"


class FilterModule:
    """What Ansible looks for."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {
            f"mysqlbackup_{f.__name__}": f for f in (wait, bytes_of, owned, working, for_turn, says, begun, running)
        }
