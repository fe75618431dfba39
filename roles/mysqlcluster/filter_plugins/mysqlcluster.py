# Copyright The Ensign authors
# SPDX-License-Identifier: Apache-2.0

"""Filters of the role mysqlcluster: what would be a program if it stood in a task."""

from __future__ import annotations

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


def mysqlcluster_foreign(objects: list[Object], identity: dict[str, str]) -> list[str]:
    """Say of each object that lacks a label of the identity that it is someone else's."""
    return [
        f"{found['kind']} {there['namespace']}/{there['name']} exists and does not belong to this MySQLCluster"
        for found in objects
        if not has_labels(there := found["metadata"], identity)
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


class FilterModule:
    """What Ansible looks for in a file of filters."""

    def filters(self) -> dict[str, Any]:
        """Return them by name."""
        return {f.__name__: f for f in (mysqlcluster_bytes, mysqlcluster_foreign, mysqlcluster_secret_faults)}
