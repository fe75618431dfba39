# Copyright The Ensign authors
# SPDX-License-Identifier: Apache-2.0

"""Filters of the roles that change something on a MySQL or MariaDB server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Object = dict[str, Any]


def mysqlserver_grants(privileges: list[Object], wildcards: bool = True) -> dict[str, str]:
    """Return privileges by database as the modules take them: {"a\\_b.*": "INSERT,SELECT"}.

    In a GRANT, _ and % in the name of a database stand for other characters. They are
    escaped, so that the privileges hold for one database. A server with partial_revokes
    takes every name as it is: wildcards is false for it.
    """
    # Without global privileges: the modules revoke what is not named.
    grants = {"*.*": "USAGE"}
    for item in privileges:
        database = item["database"]
        if wildcards:
            database = database.replace("_", r"\_").replace("%", r"\%")
        grants[f"{database}.*"] = ",".join(sorted(item["privileges"]))
    return grants


def mysqlserver_owner(objects: list[Object], field: str, value: str, cluster: Object, allowed: list[str]) -> Object:
    """Return the oldest of the objects that claim the value on the cluster, or {}.

    The value of an object is spec.<field>, or else its name. Only objects that may use
    the cluster count: those of its own namespace, and of the allowed ones.
    """

    def claims(found: Object) -> bool:
        spec, namespace = found["spec"], found["metadata"]["namespace"]
        to = spec["cluster"]
        return (
            (spec.get(field) or found["metadata"]["name"]) == value
            and to["name"] == cluster["name"]
            and (to.get("namespace") or namespace) == cluster["namespace"]
            and (namespace == cluster["namespace"] or namespace in allowed or "*" in allowed)
        )

    def age(found: Object) -> tuple[str, str]:
        return found["metadata"]["creationTimestamp"], found["metadata"]["uid"]

    return min(filter(claims, objects), key=age, default={})


class FilterModule:
    """What Ansible loads."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters by their names."""
        return {"mysqlserver_grants": mysqlserver_grants, "mysqlserver_owner": mysqlserver_owner}
