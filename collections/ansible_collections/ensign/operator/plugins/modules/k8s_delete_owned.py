#!/usr/bin/python
# Copyright The Ensign authors
# SPDX-License-Identifier: Apache-2.0

"""Deletes objects that the owner owns, and no others."""

from __future__ import annotations

DOCUMENTATION = r"""
module: k8s_delete_owned
short_description: Delete objects that the owner owns, and no others
version_added: 1.1.0
author: The Ensign authors (@ensign-operator)
description:
  - Deletes the objects of these names or labels if they belong to the owner. Leaves all others as they are, and
    says in RV(kept) whose they are.
  - Each deletion has the UID and the resource version of the object as preconditions. So an object that
    somebody replaces or gives to another owner in between is not deleted.
options:
  api_version:
    description: API version of the objects.
    type: str
    default: v1
    aliases: [api, version]
  kind:
    description: Kind of the objects.
    type: str
    required: true
  name:
    description:
      - Names of the objects. An empty list deletes nothing.
      - One of O(name) and O(label_selectors) is required.
    type: list
    elements: str
  label_selectors:
    description: Labels, such as V(app=shop), which narrow the search. They never prove that an object is the owner's.
    type: list
    elements: str
  namespace:
    description: Namespace of the objects. Without meaning for kinds that are of no namespace.
    type: str
  propagation_policy:
    description:
      - What becomes of objects that belong to the deleted ones. With V(Foreground) an object is gone only when
        they are.
      - The API server decides if it is not given.
    type: str
    choices: [Background, Foreground, Orphan]
  grace_period_seconds:
    description: How long pods may take to end. The pod says it if it is not given.
    type: int
  wait:
    description: Whether to wait until the deleted objects are gone.
    type: bool
    default: false
  wait_timeout:
    description: After how many seconds of waiting the task fails.
    type: int
    default: 120
extends_documentation_fragment:
  - ensign.operator.ownership
  - ensign.operator.authentication
  - ensign.operator.attributes
attributes:
  check_mode:
    support: full
    details: RV(deleted) is what would be deleted.
  diff_mode:
    support: none
"""

EXAMPLES = r"""
- name: Delete the database, once its pods are gone
  ensign.operator.k8s_delete_owned:
    owner: "{{ _example_com_shop }}"
    api_version: apps/v1
    kind: StatefulSet
    name: "{{ ansible_operator_meta.name }}-database"
    namespace: "{{ ansible_operator_meta.namespace }}"
    propagation_policy: Foreground
    wait: true

- name: Delete the Jobs that are left
  ensign.operator.k8s_delete_owned:
    owner: "{{ _example_com_shop }}"
    api_version: batch/v1
    kind: Job
    label_selectors: ["shop={{ ansible_operator_meta.name }}"]
    namespace: "{{ ansible_operator_meta.namespace }}"
    propagation_policy: Background
"""

RETURN = r"""
deleted:
  description: Names of the objects that the module has deleted, or in check mode would delete.
  returned: success
  type: list
  elements: str
kept:
  description: For each object of someone else, a sentence that says whose it is. For objects that O(name) names, each
    is a warning too.
  returned: success
  type: list
  elements: str
"""

import time
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.ensign.operator.plugins.module_utils import api as apis
from ansible_collections.ensign.operator.plugins.module_utils.api import API, APIError, Object
from ansible_collections.ensign.operator.plugins.module_utils.ownership import Owner, argument_spec

# How often somebody else may write between this module's read and its deletion.
ATTEMPTS = 8


class Deletion:
    """Deletes what a module's parameters say."""

    def __init__(self, module: AnsibleModule, api: API) -> None:
        self._check_mode, self._params, self._api = module.check_mode, module.params, api
        self._owner = Owner.given(module.params)
        self._resource = api.resource(self._params["api_version"], self._params["kind"])
        self._kept: list[str] = []

    def run(self) -> dict[str, Any]:
        """Delete, wait, and return the module's result."""
        found = [(there, self._delete(there)) for there in list(self._found())]
        if self._params["wait"] and not self._check_mode:
            self._wait({there["metadata"]["uid"] for there, owned in found if owned is not None})
        deleted = [there["metadata"]["name"] for there, owned in found if owned]
        return {"changed": bool(deleted), "deleted": deleted, "kept": self._kept}

    def _found(self) -> Iterator[Object]:
        """Return what there is now of the names or labels."""
        if self._params["name"] is None:
            yield from self._api.select(self._resource, self._params["namespace"], self._params["label_selectors"])
            return
        for name in self._params["name"]:
            if found := self._api.read(self._resource.path(self._params["namespace"], name)):
                yield found

    def _delete(self, found: Object) -> bool | None:
        """Delete an object, and return whether something changed; None for an object of someone else."""
        there: Object | None = found
        for attempt in range(ATTEMPTS):
            if there is None:
                return False
            if not self._owner.owns(there):
                self._kept.append(self._owner.says_of(there))
                return None
            if self._ends(there["metadata"]):
                return False
            if self._check_mode:
                return True
            path = self._resource.path(self._params["namespace"], there["metadata"]["name"])
            try:
                self._api.request("DELETE", path, self._options(there["metadata"]))
            except APIError as error:
                if error.status == HTTPStatus.NOT_FOUND:
                    return False
                if error.status != HTTPStatus.CONFLICT or attempt == ATTEMPTS - 1:
                    raise
                time.sleep(0.05 * 2**attempt)
                there = self._api.read(path)
            else:
                return True
        raise AssertionError("the last attempt returns or raises")

    def _ends(self, metadata: Object) -> bool:
        """Tell whether an object is being deleted, as fast as it is to be."""
        grace = self._params["grace_period_seconds"]
        left = metadata.get("deletionGracePeriodSeconds") or 0
        return bool(metadata.get("deletionTimestamp")) and (grace is None or left <= grace)

    def _options(self, metadata: Object) -> Object:
        given = {
            "propagationPolicy": self._params["propagation_policy"],
            "gracePeriodSeconds": self._params["grace_period_seconds"],
        }
        return {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": {key: metadata[key] for key in ("uid", "resourceVersion")},
            **{key: value for key, value in given.items() if value is not None},
        }

    def _wait(self, uids: set[str]) -> None:
        """Wait until the objects are gone."""
        end = time.monotonic() + self._params["wait_timeout"]
        while left := [there for there in self._found() if there["metadata"]["uid"] in uids]:
            if time.monotonic() > end:
                names = ", ".join(f"{there['metadata']['name']}{finalizers(there)}" for there in left)
                raise APIError(f"{self._resource.kind} {names} still exists after {self._params['wait_timeout']} s")
            time.sleep(0.5)


def finalizers(found: Object) -> str:
    """Return what an object that is being deleted waits for."""
    names = found["metadata"].get("finalizers") or []
    return f" (its finalizers: {', '.join(names)})" if names else ""


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "api_version": {"type": "str", "default": "v1", "aliases": ["api", "version"]},
            "kind": {"type": "str", "required": True},
            "name": {"type": "list", "elements": "str"},
            "label_selectors": {"type": "list", "elements": "str"},
            "namespace": {"type": "str"},
            "propagation_policy": {"type": "str", "choices": ["Background", "Foreground", "Orphan"]},
            "grace_period_seconds": {"type": "int"},
            "wait": {"type": "bool", "default": False},
            "wait_timeout": {"type": "int", "default": 120},
            **argument_spec(),
            **apis.argument_spec(),
        },
        required_one_of=[("name", "label_selectors")],
        mutually_exclusive=[("name", "label_selectors")],
        supports_check_mode=True,
    )
    try:
        result = Deletion(module, API(module)).run()
    except APIError as error:
        module.fail_json(**error.result())
    if module.params["name"]:  # Labels are anybody's, so that objects of others are no surprise.
        for sentence in result["kept"]:
            module.warn(f"Not deleted: {sentence}")
    module.exit_json(**result)


if __name__ == "__main__":
    main()
