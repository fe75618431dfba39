# Copyright The Ensign authors
# SPDX-License-Identifier: Apache-2.0

"""Filters of the role etcdbackup: when a backup is due, which file it becomes, and what its Job printed."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import Any

Object = dict[str, Any]

NEVER = -1


def etcdbackup_wait(status: Object, generation: int, interval: int, now: str) -> int:
    """Return after how many seconds the next backup is due: 0 is now, and less is never.

    The status says it, not a clock of the operator: a restart makes no backup.
    """
    if not status.get("succeeded") or status.get("generation") != generation:
        return 0
    if not interval:
        return NEVER
    passed = (moment(now) - moment(status["lastSuccessDate"])).total_seconds()
    return max(0, int(interval - passed))


def moment(text: str) -> datetime:
    """Return a time of Kubernetes."""
    time = datetime.fromisoformat(text)
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def etcdbackup_file(status: Object, most: int) -> str:
    """Return the name of the next file: 0.db, 1.db and so on, or that of the oldest one where no more may be kept.

    etcdctl replaces a file in one step, when the new snapshot is whole. So the oldest one is lost only for a newer one.
    """
    paths = [old["path"] for old in status.get("backups") or []]
    numbers = [int(number[1]) for path in paths if (number := re.search(r"(\d+)\.db$", path))]
    return f"{numbers[-1] if most and len(numbers) >= most else max(numbers, default=-1) + 1}.db"


def etcdbackup_kept(status: Object, backup: Object, most: int) -> list[Object]:
    """Return what is kept with the new backup, the newest first."""
    others = [old for old in status.get("backups") or [] if old["path"] != backup["path"]]
    return [backup, *others][: most or 1000]


def etcdbackup_printed(log: str) -> Object:
    """Return the JSON that a container printed last; nothing where there is none."""
    for line in reversed(log.splitlines()):
        try:
            found = json.loads(line)
        except ValueError:
            continue
        found = found[0] if isinstance(found, list) and found else found
        return found if isinstance(found, dict) else {}
    return {}


def etcdbackup_over(jobs: list[Object], now: str = "", before: int = 0) -> bool:
    """Return whether the Job has ended or is gone; with a time, also whether so many seconds are left of its limit."""
    if not jobs:
        return True
    status = jobs[0].get("status") or {}
    if any(c["type"] in ("Complete", "Failed") and c["status"] == "True" for c in status.get("conditions") or []):
        return True
    limit = (jobs[0].get("spec") or {}).get("activeDeadlineSeconds")
    if not now or not limit or not status.get("startTime"):
        return False
    return (moment(now) - moment(status["startTime"])).total_seconds() >= limit - before


def etcdbackup_said(pods: list[Object]) -> str:
    """Return what a container of a failed Job said last, or what it waits for."""
    said = []
    for status in [pod.get("status") or {} for pod in pods]:
        for container in (status.get("initContainerStatuses") or []) + (status.get("containerStatuses") or []):
            state = container.get("state") or {}
            ended, waits = state.get("terminated") or {}, state.get("waiting") or {}
            text = ended.get("message") or ended.get("reason") if ended.get("exitCode") else waits.get("message")
            said += [f"{container['name']}: {text.strip()[-1000:]}"] if text else []
        conditions = [c for c in status.get("conditions") or [] if c.get("reason") == "Unschedulable"]
        said += [condition.get("message", "") for condition in conditions]
    return "; ".join(said)


class FilterModule:
    """What Ansible looks for in a file of filters."""

    def filters(self) -> dict[str, Any]:
        """Return them by name."""
        filters = (
            etcdbackup_wait,
            etcdbackup_file,
            etcdbackup_kept,
            etcdbackup_printed,
            etcdbackup_over,
            etcdbackup_said,
        )
        return {f.__name__: f for f in filters}
