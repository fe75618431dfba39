#!/usr/bin/python
# Copyright The Ensign authors
# SPDX-License-Identifier: Apache-2.0

"""Writes to the status of an object."""

from __future__ import annotations

DOCUMENTATION = r"""
module: k8s_status
short_description: Write to the status of a Kubernetes object
version_added: 1.0.0
author: The Ensign authors (@ensign-operator)
description:
  - Writes to the status of an object, above all of the custom resource that the operator runs for, and to
    nothing else of it. What others have written to the status stays, the operator's own conditions included.
  - Nothing is written when the status says it already. When somebody else writes at the same time, the
    module reads again and tries again.
  - An operator that leaves the whole status to its roles sets C(manageStatus) to V(false) in C(watches.yaml).
options:
  api_version:
    description: API version of the object, such as V(v1) or V(cache.example.com/v1alpha1).
    type: str
    default: v1
    aliases: [api, version]
  kind:
    description: Kind of the object.
    type: str
    required: true
  name:
    description: Name of the object.
    type: str
    required: true
  namespace:
    description: Namespace of the object. Without meaning for kinds that are of no namespace.
    type: str
  status:
    description:
      - What to set of the status. Dictionaries are merged with what is there, at every depth. A key whose
        value is V(null) is removed.
      - Its C(conditions), if it has any, are merged by their type as those of O(conditions), but not checked.
      - One of O(status) and O(conditions) is required.
    type: dict
  conditions:
    description:
      - Conditions to set. One takes the place of the condition of the same type; those of other types stay.
      - The time of the last transition is the condition's own as long as its status does not change. When it
        does, it is C(lastTransitionTime) if that is given, or else the time of the change.
      - One of O(status) and O(conditions) is required.
    type: list
    elements: dict
    suboptions:
      type:
        description: Type of the condition.
        type: str
        required: true
      status:
        description: The words V(true) and V(false) of YAML are taken too.
        type: str
        choices: ["True", "False", "Unknown"]
        required: true
      reason:
        description: One word in CamelCase that programs can read.
        type: str
      message:
        description: What people want to read.
        type: str
      observedGeneration:
        description:
          - The C(metadata.generation) of which the condition speaks. The default is the one for which the role
            runs, and for other objects the one that they have.
        type: int
      lastTransitionTime:
        description: When the status changed, as in RFC 3339.
        type: str
      lastHeartbeatTime:
        description: When the condition was last looked at, as in RFC 3339.
        type: str
  replace:
    description: Whether the status becomes what is given and nothing else.
    type: bool
    default: false
    aliases: [force]
  replace_lists:
    description:
      - What becomes of a list in O(status). V(true) puts the given list in the place of the one that is there.
      - V(false) does so too, except where the one that is there has all items of the given one; it stays
        as it is then.
      - Conditions are always merged by their type.
    type: bool
    default: false
extends_documentation_fragment:
  - ensign.operator.authentication
  - ensign.operator.attributes
attributes:
  check_mode:
    support: full
    details: The object is read, and RV(result) is what it would be.
  diff_mode:
    support: full
"""

EXAMPLES = r"""
- name: Say how many replicas are ready
  ensign.operator.k8s_status:
    api_version: cache.example.com/v1alpha1
    kind: Memcached
    name: "{{ ansible_operator_meta.name }}"
    namespace: "{{ ansible_operator_meta.namespace }}"
    status:
      readyReplicas: "{{ deployment.resources[0].status.readyReplicas | default(0) }}"
      nodes: "{{ pods.resources | map(attribute='metadata.name') | sort }}"
    replace_lists: true

- name: Set a condition of the role's own
  ensign.operator.k8s_status:
    api_version: cache.example.com/v1alpha1
    kind: Memcached
    name: "{{ ansible_operator_meta.name }}"
    namespace: "{{ ansible_operator_meta.namespace }}"
    conditions:
      - type: Available
        status: "{{ 'True' if ready else 'False' }}"
        reason: "{{ 'EnoughReplicas' if ready else 'TooFewReplicas' }}"
        message: "{{ count }} of {{ size }} replicas are ready"
"""

RETURN = r"""
result:
  description: The object as it is now.
  returned: success
  type: dict
  contains:
    apiVersion:
      description: API version of the object.
      returned: success
      type: str
    kind:
      description: Kind of the object.
      returned: success
      type: str
    metadata:
      description: Name, namespace, labels and more.
      returned: success
      type: dict
    spec:
      description: What is wanted of the object.
      returned: when the object has one
      type: dict
    status:
      description: What is known of the object.
      returned: when the object has one
      type: dict
"""

import time
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.ensign.operator.plugins.module_utils.api import API, APIError, Object, Resource, argument_spec
from ansible_collections.ensign.operator.plugins.module_utils.status import (
    checked,
    lost,
    merge_patch,
    observing,
    types,
    wanted,
)

# How often somebody else may write between this module's read and write.
ATTEMPTS = 8

TYPES, GENERATION = "Ensign-Condition-Types", "Ensign-Generation"

CONDITION = {
    "type": {"type": "str", "required": True},
    "status": {"type": "str", "choices": ["True", "False", "Unknown"], "required": True},
    "reason": {"type": "str"},
    "message": {"type": "str"},
    "observedGeneration": {"type": "int"},
    "lastTransitionTime": {"type": "str"},
    "lastHeartbeatTime": {"type": "str"},
}


class Writer:
    """Writes what a module's parameters say."""

    def __init__(self, module: AnsibleModule, api: API, resource: Resource) -> None:
        self._module = module
        self._api = api
        self._params = module.params
        self._place = resource.path(self._params["namespace"], self._params["name"])
        self._status_place = resource.path(self._params["namespace"], self._params["name"], "status")

    def write(self, given: dict[str, Any]) -> dict[str, Any]:
        """Bring the status about, and return the module's result."""
        for attempt in range(ATTEMPTS):
            try:
                return self._try(given)
            except APIError as error:
                if error.status != HTTPStatus.CONFLICT or attempt == ATTEMPTS - 1:
                    raise
                time.sleep(0.05 * 2**attempt)
        raise AssertionError("the last attempt returns or raises")

    def _try(self, given: dict[str, Any]) -> dict[str, Any]:
        # The operator's proxy learns which conditions are the content's, and answers for which generation it runs.
        current = self._api.request("GET", self._place, headers={TYPES: ",".join(types(given))})
        generation = int(self._api.answered.get(GENERATION) or 0) or current["metadata"].get("generation")
        before = current.get("status") or {}
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        replace, replace_lists = self._params["replace"], self._params["replace_lists"]
        after = wanted(before, observing(given, generation), now, replace=replace, replace_lists=replace_lists)
        patch = merge_patch(before, after)
        if not patch:
            return self._result(current, current)
        if self._module.check_mode:
            return self._result(current, {**current, "status": after})
        # The resource version makes it a conflict when somebody else was faster.
        body = {"metadata": {"resourceVersion": current["metadata"]["resourceVersion"]}, "status": patch}
        written = self._api.request("PATCH", self._status_place, body, "application/merge-patch+json")
        plain = wanted(before, given, now, replace=replace, replace_lists=replace_lists)
        if keys := lost(plain, written.get("status") or {}):
            self._module.warn(f"the schema of {current['kind']} does not keep all of status: {', '.join(keys)}")
        return self._result(current, written)

    def _result(self, before: Object, after: Object) -> dict[str, Any]:
        statuses = {"before": before.get("status") or {}, "after": after.get("status") or {}}
        result: dict[str, Any] = {"changed": statuses["before"] != statuses["after"], "result": after}
        if self._module._diff:
            result["diff"] = statuses
        return result


def given_status(params: dict[str, Any]) -> dict[str, Any]:
    """Return status and conditions in one, or raise ValueError."""
    status: dict[str, Any] = dict(params["status"] or {})
    if params["conditions"] is not None:
        if "conditions" in status:
            raise ValueError("conditions: they are in status too; give them once")
        status["conditions"] = checked(params["conditions"])
    return status


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "api_version": {"type": "str", "default": "v1", "aliases": ["api", "version"]},
            "kind": {"type": "str", "required": True},
            "name": {"type": "str", "required": True},
            "namespace": {"type": "str"},
            "status": {"type": "dict"},
            "conditions": {"type": "list", "elements": "dict", "options": CONDITION},
            "replace": {"type": "bool", "default": False, "aliases": ["force"]},
            "replace_lists": {"type": "bool", "default": False},
            **argument_spec(),
        },
        required_one_of=[("status", "conditions")],
        supports_check_mode=True,
    )
    try:
        given = given_status(module.params)
    except ValueError as error:
        module.fail_json(msg=str(error))
    try:
        api = API(module)
        resource = api.resource(module.params["api_version"], module.params["kind"])
        if not resource.has_status:
            raise APIError(f"{resource.kind} in {resource.api_version} has no status subresource")
        result = Writer(module, api, resource).write(given)
    except APIError as error:
        module.fail_json(**error.result())
    module.exit_json(**result)


if __name__ == "__main__":
    main()
