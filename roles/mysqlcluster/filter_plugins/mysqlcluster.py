# Copyright The Ensign authors
# SPDX-License-Identifier: Apache-2.0

"""Filters of the role mysqlcluster: what would be a program if it stood in a task."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

Object = dict[str, Any]

# Lets the password of a Secret be used at MySQL servers. The role mysqlserver asks for it too.
ALLOWED = {"myapp.myorg.tld/mysql-login": "allowed"}

DECIMAL = {suffix: Decimal(1000) ** power for power, suffix in enumerate(["", "k", "M", "G", "T", "P", "E"])}
BINARY = {suffix: Decimal(1024) ** power for power, suffix in enumerate(["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"], start=1)}
UNITS = {**DECIMAL, **BINARY}


def mysqlcluster_bytes(quantity: str) -> int:
    """Return the bytes of a Kubernetes quantity, rounded up: 20Gi, 20480Mi, 1.5T, 1e9."""
    text = str(quantity).strip()
    number = text.rstrip("KMGTPEik")
    return int((Decimal(number) * UNITS[text[len(number) :]]).to_integral_value(rounding="ROUND_CEILING"))


def mysqlcluster_foreign_claims(
    claims: list[Object], uid: str, mark: str, identity: dict[str, str], state: Object
) -> list[str]:
    """Say of each claim that is not the cluster's that it is someone else's, and how it can become the cluster's.

    The annotation has the UID of the owner. A deleted cluster of the name may have retained it; and an earlier version
    of this role wrote none, so there the cluster's own StatefulSet, which had the claim made, is the proof.
    """

    def fault(metadata: Object) -> str:
        said = (metadata.get("annotations") or {}).get(mark)
        if not uid or said == uid:
            return ""
        labelled = has_labels(metadata, identity)
        if labelled and (said == "retained" or (not said and state and not marks_claims(state, mark))):
            return ""
        name = f"{metadata['namespace']}/{metadata['name']}"
        command = (
            f"kubectl annotate --overwrite --namespace={metadata['namespace']} pvc {metadata['name']} {mark}=retained"
        )
        remedy = f". If the data are those of an earlier MySQLCluster of this name: {command}" if labelled else ""
        return f"PersistentVolumeClaim {name} exists and does not belong to this MySQLCluster{remedy}"

    return [text for claim in claims if (text := fault(claim["metadata"]))]


def marks_claims(state: Object, mark: str) -> bool:
    """Tell whether a StatefulSet gives its claims the annotation."""
    templates = state["spec"].get("volumeClaimTemplates") or []
    return any(mark in (template["metadata"].get("annotations") or {}) for template in templates)


def mysqlcluster_directory_faults(objects: list[Object], mark: str) -> list[str]:
    """Say which object has a data directory that no upgrade has made: a server would begin there with no data."""
    return [
        f'the annotation {mark} of {found["kind"]} {found["metadata"]["name"]} is "{said}":'
        " use the data directory of a server, for example mysql or mysql-9.7"
        for found in objects
        if (said := (found["metadata"].get("annotations") or {}).get(mark)) is not None
        and not re.fullmatch(r"mysql(-[0-9]{1,4}\.[0-9]{1,4})?", said)
    ]


def has_labels(metadata: Object, labels: dict[str, str]) -> bool:
    """Tell whether metadata has all of the labels. (Ansible's dictionaries have no views to compare.)"""
    there = metadata.get("labels") or {}
    return all(there.get(key) == value for key, value in labels.items())


def mysqlcluster_secret_faults(lookups: list[Object], namespace: str) -> list[str]:
    """Say which Secrets cannot be read, and which lack a key: names only, nothing that a Secret holds.

    A lookup is the result of k8s_info for one item {name, field, needs}, which may have failed.
    """
    faults = []
    for lookup in lookups:
        item = lookup["item"]
        secret = f"Secret {namespace}/{item['name']}, named by spec.{item['field']},"
        if "resources" not in lookup:
            faults.append(f"{secret} cannot be read: {reason(lookup.get('msg', ''))}")
        elif not lookup["resources"]:
            faults.append(f"{secret} does not exist")
        else:
            label = "=".join(*ALLOWED.items())
            command = f"kubectl label --namespace={namespace} secret {item['name']} {label}"
            if not has_labels(lookup["resources"][0]["metadata"], ALLOWED):
                faults.append(f"{secret} has no label {label}, by which MySQL servers may get its password: {command}")
            keys = lookup["resources"][0].get("data") or {}
            faults += [f'{secret} has no key "{key}"' for key in item["needs"] if key not in keys]
    return faults


def reason(message: str) -> str:
    """Return the line of a client's message that has the API server's reason."""
    _, _, rest = message.partition("Reason: ")
    return rest.partition("\n")[0] or "no usable answer"


def mysqlcluster_short(text: str) -> str:
    """Return ten letters that stand for a text, for a name that must be short."""
    return hashlib.sha256(text.encode()).hexdigest()[:10]


def mysqlcluster_state(metadata: Object) -> str:
    """Return what stands for the present spec of an object."""
    return f"{metadata['uid']}/{metadata['generation']}"


def mysqlcluster_owned(objects: list[Object], uid: str) -> list[Object]:
    """Return the objects whose owner has a UID; all where no operator is at work, which sets owners."""

    def owners(found: Object) -> list[str]:
        return [reference["uid"] for reference in found["metadata"].get("ownerReferences") or []]

    return [found for found in objects if not uid or uid in owners(found)]


def mysqlcluster_outdated(jobs: list[Object], names: dict[str, str], mark: str, stopped: str) -> list[Object]:
    """Return the Jobs of an upgrade that do not count any more.

    Those of another attempt; and one whose copy is not of the data as they are: the server was not stopped
    all the time since, as the mark on the Job tells. What has failed changes nothing any more, and stays.
    """

    def outdated(job: Object) -> bool:
        name = job["metadata"]["name"]
        if name == names["upgrade"]:
            since = (job["metadata"].get("annotations") or {}).get(mark, "")
            return mysqlcluster_job_state([job]) != "failed" and (not stopped or since != stopped)
        return bool(name != names["check"])

    return [job for job in jobs if outdated(job)]


def mysqlcluster_job_state(jobs: list[Object]) -> str:
    """Return how a Job, the only one of a list, has ended: complete, failed, or working."""
    conditions = (jobs[0].get("status", {}).get("conditions") or []) if jobs else []
    true = {c["type"] for c in conditions if c["status"] == "True"}
    return "complete" if "Complete" in true else "failed" if "Failed" in true else "working"


def mysqlcluster_job_said(jobs: list[Object], pods: list[Object]) -> str:
    """Return what the last pod of a Job says of itself: its result, why it failed, or what it waits for."""
    status: Object = max(pods, key=lambda p: str(p["metadata"]["creationTimestamp"]), default={}).get("status", {})
    containers = [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]
    for container in reversed(containers):
        ended = container.get("state", {}).get("terminated") or {}
        if ended.get("message"):
            return str(ended["message"]).strip()
        if ended.get("exitCode"):
            return f"container {container['name']}: {ended.get('reason')}, exit code {ended['exitCode']}"
    for container in containers:
        waiting = container.get("state", {}).get("waiting") or {}
        if waiting.get("reason") not in (None, "ContainerCreating", "PodInitializing"):
            return f"{waiting['reason']}: {waiting.get('message', '')}"
    told = [c for c in status.get("conditions") or [] if c["type"] == "PodScheduled" and c["status"] == "False"]
    told += [c for j in jobs for c in j.get("status", {}).get("conditions") or [] if c["type"] == "Failed"]
    return "; ".join(f"{c.get('reason')}: {c.get('message', '')}" for c in told)


class FilterModule:
    """What Ansible looks for in a file of filters."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return them by name."""
        filters = (
            mysqlcluster_bytes,
            mysqlcluster_directory_faults,
            mysqlcluster_foreign_claims,
            mysqlcluster_job_said,
            mysqlcluster_job_state,
            mysqlcluster_outdated,
            mysqlcluster_owned,
            mysqlcluster_secret_faults,
            mysqlcluster_short,
            mysqlcluster_state,
        )
        return {function.__name__: function for function in filters}
