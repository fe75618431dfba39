# Copyright The Ensign authors
# SPDX-License-Identifier: Apache-2.0

"""Tests of the role's filters."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

_PATH = Path(__file__).parents[1] / "filter_plugins" / "mysqlcluster.py"
_SPEC = importlib.util.spec_from_file_location("mysqlcluster_filters", _PATH)
assert _SPEC is not None and _SPEC.loader is not None
filters = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(filters)

IDENTITY = {"managed-by": "ensign", "mysql-cluster": "db"}
NOT_OURS = "Service shop/db-writer exists and does not belong to this MySQLCluster"


@pytest.mark.parametrize(
    ("quantity", "expected"),
    [
        ("20Gi", 20 * 2**30),
        ("20480Mi", 20 * 2**30),
        ("1Ti", 2**40),
        ("1.5Gi", 3 * 2**29),
        ("20G", 20 * 10**9),
        ("100k", 10**5),
        ("2E", 2 * 10**18),
        ("1e9", 10**9),
        ("21474836480", 20 * 2**30),
        ("1.5", 2),
    ],
)
def test_bytes(quantity: str, expected: int) -> None:
    """Quantities are compared whatever their units."""
    assert filters.mysqlcluster_bytes(quantity) == expected


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (IDENTITY | {"more": "label"}, []),
        ({"managed-by": "ensign", "mysql-cluster": "another"}, [NOT_OURS]),
        ({"mysql-cluster": "db"}, [NOT_OURS]),
        (None, [NOT_OURS]),
    ],
)
def test_foreign(labels: dict[str, str] | None, expected: list[str]) -> None:
    """An object is the cluster's own if it has every label of it."""
    found = {"kind": "Service", "metadata": {"namespace": "shop", "name": "db-writer", "labels": labels}}
    assert filters.mysqlcluster_foreign([found], IDENTITY) == expected


NO_LABEL = (
    "has no label myapp.myorg.tld/mysql-login=allowed, by which MySQL servers may get its password:"
    " kubectl label --namespace=shop secret readers myapp.myorg.tld/mysql-login=allowed"
)
LABELS = {"myapp.myorg.tld/mysql-login": "allowed", "more": "label"}


def secret(data: dict[str, str] | None, labels: dict[str, str] | None = LABELS) -> dict[str, object]:
    """Return the answer to the lookup of a Secret."""
    return {"resources": [{"metadata": {"labels": labels}, "data": data}]}


@pytest.mark.parametrize(
    ("lookup", "expected"),
    [
        (secret({"username": "cg==", "password": "cg=="}), []),
        (secret({"username": "cg=="}), ['has no key "password"']),
        (secret(None), ['has no key "username"', 'has no key "password"']),
        (secret({"username": "cg==", "password": "cg=="}, {}), [NO_LABEL]),
        (secret({"username": "cg==", "password": "cg=="}, {"myapp.myorg.tld/mysql-login": "true"}), [NO_LABEL]),
        (secret({"username": "cg=="}, None), [NO_LABEL, 'has no key "password"']),
        ({"resources": []}, ["does not exist"]),
        ({"msg": "Exception: (403)\nReason: Forbidden\nHTTP headers: …"}, ["cannot be read: Forbidden"]),
        ({"msg": "no route"}, ["cannot be read: no usable answer"]),
    ],
)
def test_secret_faults(lookup: dict[str, object], expected: list[str]) -> None:
    """A fault names the Secret, the field and what is missing."""
    item = {"name": "readers", "field": "mysqlReadersSecret", "needs": ["username", "password"]}
    where = "Secret shop/readers, named by spec.mysqlReadersSecret, "
    faults = filters.mysqlcluster_secret_faults([{"item": item, **lookup}], "shop")
    assert faults == [where + fault for fault in expected]
