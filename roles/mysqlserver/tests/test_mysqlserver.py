# Copyright The Ensign authors
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import importlib.util
import inspect
from pathlib import Path

import pymysql
import pytest

_PATH = Path(__file__).parents[1] / "filter_plugins" / "mysqlserver.py"
_SPEC = importlib.util.spec_from_file_location("mysqlserver_filters", _PATH)
assert _SPEC is not None and _SPEC.loader is not None
filters = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(filters)


@pytest.mark.parametrize(
    ("privileges", "wildcards", "want"),
    [
        ([], True, {"*.*": "USAGE"}),
        ([{"database": "shop", "privileges": ["SELECT"]}], True, {"*.*": "USAGE", "shop.*": "SELECT"}),
        ([{"database": "a_b", "privileges": ["SELECT"]}], True, {"*.*": "USAGE", r"a\_b.*": "SELECT"}),
        ([{"database": "a%", "privileges": ["SELECT"]}], True, {"*.*": "USAGE", r"a\%.*": "SELECT"}),
        ([{"database": "a_b", "privileges": ["SELECT"]}], False, {"*.*": "USAGE", "a_b.*": "SELECT"}),
        (
            [{"database": "a", "privileges": ["UPDATE", "DELETE"]}, {"database": "b", "privileges": ["ALL"]}],
            True,
            {"*.*": "USAGE", "a.*": "DELETE,UPDATE", "b.*": "ALL"},
        ),
    ],
)
def test_grants(privileges, wildcards, want):
    assert filters.mysqlserver_grants(privileges, wildcards) == want


def claim(name, created="2026-01-01T00:00:00Z", uid="u", namespace="shop", cluster=None, **spec):
    return {
        "metadata": {"name": name, "namespace": namespace, "creationTimestamp": created, "uid": uid},
        "spec": {"cluster": cluster or {"name": "db", "namespace": "shop"}, **spec},
    }


OLD, NEW = "2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z"


@pytest.mark.parametrize(
    ("objects", "allowed", "want"),
    [
        ([], [], None),
        ([claim("app", uid="a")], [], "a"),
        ([claim("app", NEW, "a"), claim("other", OLD, "b", username="app")], [], "b"),
        ([claim("app", OLD, "b"), claim("other", OLD, "a", username="app")], [], "a"),
        ([claim("app", NEW, "a"), claim("app", OLD, "b", username="another")], [], "a"),
        ([claim("app", NEW, "a"), claim("app", OLD, "b", cluster={"name": "db2"})], [], "a"),
        ([claim("app", NEW, "a"), claim("app", OLD, "b", namespace="far")], [], "a"),
        ([claim("app", NEW, "a"), claim("app", OLD, "b", namespace="far")], ["far"], "b"),
        ([claim("app", NEW, "a"), claim("app", OLD, "b", namespace="far")], ["*"], "b"),
        # It names the cluster of its own namespace.
        ([claim("app", NEW, "a"), claim("app", OLD, "b", namespace="far", cluster={"name": "db"})], ["*"], "a"),
        ([claim("app", NEW, "a", cluster={"name": "db"})], [], "a"),
    ],
)
def test_owner(objects, allowed, want):
    owner = filters.mysqlserver_owner(objects, "username", "app", {"name": "db", "namespace": "shop"}, allowed)
    assert owner.get("metadata", {}).get("uid") == want


HOSTILE = ["", "a`b", "a'b", 'a"b', "a;b", "a.b", "a/b", "a:b", "a b", "a\\b", "a%b", "a\n", "ä", "{{ a }}", "--all"]
HOSTILE.append("a" * 65)


@pytest.mark.parametrize("name", [*HOSTILE, "mysql", "SYS", "Information_Schema", "performance_schema"])
def test_databases_that_are_refused(name):
    (fault,) = filters.mysqlserver_database_faults(["fine", name])
    assert repr(name) in fault or name in fault


@pytest.mark.parametrize("name", ["a", "A_b-c$1", "a" * 64, "mysql2"])
def test_databases_that_are_taken(name):
    assert filters.mysqlserver_database_faults([name]) == []
    assert filters.mysqlserver_account_faults("app", ["%"], [{"database": name, "privileges": ["CREATE VIEW"]}]) == []


@pytest.mark.parametrize(
    "name", [*(set(HOSTILE) - {"a.b"}), "a" * 33, "@a", "root", "Root", "mysql.sys", "mariadb.sys", "PUBLIC"]
)
def test_accounts_that_are_refused(name):
    assert len(filters.mysqlserver_account_faults(name, ["%"], [])) == 1


@pytest.mark.parametrize("name", ["a", "a" * 32, "_a.b@c+d-e", "mysql", "roots"])
def test_accounts_that_are_taken(name):
    hosts = ["%", "localhost", "10.0.0.0/255.0.0.0", "::1", "%.example.com", "a_b"]
    assert filters.mysqlserver_account_faults(name, hosts, []) == []


@pytest.mark.parametrize("host", ["", "a'b", "a`b", "a;b", "a b", "a\\", "A", "a\n", "ä", "a" * 61])
def test_hosts_that_are_refused(host):
    assert len(filters.mysqlserver_account_faults("app", ["%", host], [])) == 1


def test_privileges_by_the_escaped_name():
    for name, faults in {"_" * 32: 0, "a_" * 21: 0, "_" * 33: 1, "a" * 63 + "_": 1, "a" * 64: 0}.items():
        assert (
            len(filters.mysqlserver_account_faults("app", ["%"], [{"database": name, "privileges": ["ALL"]}])) == faults
        )


def test_privileges_that_are_refused():
    for word in ["", "select", "SELECT, DROP", "ALL ON *.*", "SELECT (a)", " SELECT", "SELECT\n"]:
        assert len(filters.mysqlserver_account_faults("app", ["%"], [{"database": "a", "privileges": [word]}])) == 1
    assert len(filters.mysqlserver_account_faults("app", ["%"], [{"database": "sys", "privileges": ["SELECT"]}])) == 1


def test_names_for_ansible():
    assert sorted(filters.FilterModule().filters()) == [
        "mysqlserver_account_faults",
        "mysqlserver_database_faults",
        "mysqlserver_grants",
        "mysqlserver_owner",
    ]


def test_no_other_driver_than_the_one_that_sends_no_file() -> None:
    """The modules have no option for it: it is PyMySQL's default, and their other driver's is the C library's."""
    assert inspect.signature(pymysql.Connection).parameters["local_infile"].default is False
    assert importlib.util.find_spec("MySQLdb") is None
    collections = Path(pymysql.__file__).parents[1] / "ansible_collections" / "ansible"
    modules = [*collections.glob("mysql/plugins/**/*.py"), *collections.glob("mariadb/plugins/**/*.py")]
    assert modules
    assert [str(module) for module in modules if "local_infile" in module.read_text(encoding="utf-8")] == []
