# Copyright The Ensign authors
# SPDX-License-Identifier: Apache-2.0

"""Filters of the roles that change something on a MySQL or MariaDB server."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

Object = dict[str, Any]

SYSTEM_DATABASES = ("mysql", "sys", "information_schema", "performance_schema")
MAX_NAME = 64  # of a database, and of one in mysql.db, where a _ is escaped
SYSTEM_ACCOUNTS = ("root", "public", "mariadb.sys")


def mysqlserver_database_faults(databases: list[str]) -> list[str]:
    """Return what is wrong with names of databases.

    The custom resource definitions say the same. A role also runs without them, and what
    it lets through reaches statements of SQL.
    """
    faults = []
    for name in databases:
        if not re.fullmatch(r"[A-Za-z0-9_$][A-Za-z0-9_$-]{0,63}", name):
            faults.append(f"database {name!r} must have up to 64 letters, digits, _, $ and, not first, hyphens")
        elif name.lower() in SYSTEM_DATABASES:
            faults.append(f"database {name} belongs to the server")
    return faults


def mysqlserver_account_faults(name: str, hosts: list[str], privileges: list[Object]) -> list[str]:
    """Return what is wrong with the name, the hosts and the privileges of an account."""
    faults = []
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.@+-]{0,31}", name):
        faults.append(f"username {name!r} must have up to 32 letters, digits and the characters _ . @ + -")
    elif name.lower() in SYSTEM_ACCOUNTS or name.lower().startswith("mysql."):
        faults.append(f"username {name} belongs to the server")
    faults += [
        f"host {host!r} must have lower case letters, digits and the characters _ . : % / - only"
        for host in hosts
        if not re.fullmatch(r"[a-z0-9_.:%/-]{1,60}", host)
    ]
    faults += mysqlserver_database_faults([item["database"] for item in privileges])
    faults += [
        f"database {item['database']} is too long for privileges: with a backslash before each _ 64 characters fit"
        for item in privileges
        if len(item["database"]) <= MAX_NAME < len(item["database"].replace("_", r"\_"))
    ]
    faults += [
        f"privilege {word!r} must be words in capitals, such as SELECT or CREATE VIEW"
        for item in privileges
        for word in item["privileges"]
        if not re.fullmatch(r"[A-Z]+( [A-Z]+)*", word)
    ]
    return faults


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
        filters = (mysqlserver_account_faults, mysqlserver_database_faults, mysqlserver_grants, mysqlserver_owner)
        return {function.__name__: function for function in filters}
