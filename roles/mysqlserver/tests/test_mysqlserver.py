# Copyright The Ensign authors
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import importlib.util
from pathlib import Path

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


def test_names_for_ansible():
    assert set(filters.FilterModule().filters()) == {"mysqlserver_grants", "mysqlserver_owner"}
