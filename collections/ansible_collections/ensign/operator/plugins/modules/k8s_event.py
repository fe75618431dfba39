#!/usr/bin/python
# Copyright The Ensign authors
# SPDX-License-Identifier: Apache-2.0

"""Writes an Event about an object."""

from __future__ import annotations

DOCUMENTATION = r"""
module: k8s_event
short_description: Write a Kubernetes Event about an object
version_added: 1.0.0
author: The Ensign authors (@ensign-operator)
description:
  - Writes an Event, which C(kubectl describe) shows with the object that it is about and C(kubectl get events)
    with all others.
  - When there is an Event of that name, it is counted once more, and says what is given now.
options:
  state:
    description: V(absent) deletes the Event of that name.
    type: str
    choices: [present, absent]
    default: present
  name:
    description: Name of the Event, or with O(appendTimestamp) what its name begins with.
    type: str
    required: true
  namespace:
    description: Namespace of the Event. It has to be the object's, or V(default) for an object that is of none.
    type: str
    required: true
  message:
    description: What people want to read. Required when O(state) is V(present).
    type: str
  reason:
    description: One word in CamelCase that programs can read. Required when O(state) is V(present).
    type: str
  type:
    description: Whether it is good news.
    type: str
    choices: [Normal, Warning]
    default: Normal
  reportingComponent:
    description: Who says so.
    type: str
    default: ensign
    aliases: [reporting_component, reportingController]
  source:
    description: Who says so, in the older words.
    type: dict
    suboptions:
      component:
        description: Without it, O(reportingComponent).
        type: str
      host:
        description: Name of a node.
        type: str
  involvedObject:
    description: The object that the Event is about. UID and resource version are looked up where they are not given.
    type: dict
    aliases: [involved_object]
    suboptions:
      apiVersion:
        description: API version of the object.
        type: str
        aliases: [api_version]
      kind:
        description: Kind of the object.
        type: str
      name:
        description: Name of the object.
        type: str
      namespace:
        description: Namespace of the object.
        type: str
      uid:
        description: UID of the object.
        type: str
      resourceVersion:
        description: Resource version of the object.
        type: str
        aliases: [resource_version]
      fieldPath:
        description: The part of the object that the Event is about.
        type: str
        aliases: [field_path]
  appendTimestamp:
    description: Whether the time is appended to the name, so that each is an Event of its own.
    type: bool
    default: true
    aliases: [append_timestamp]
  merge_type:
    description:
      - How an Event that is there is changed, as a JSON patch, a merge patch or a strategic merge patch. The
        first one is taken; what becomes of the Event is the same.
    type: list
    elements: str
    choices: [json, merge, strategic-merge]
extends_documentation_fragment:
  - ensign.operator.authentication
  - ensign.operator.attributes
attributes:
  check_mode:
    support: full
    details: Objects are read, and RV(result) is what would be written.
  diff_mode:
    support: none
"""

EXAMPLES = r"""
- name: Tell of a backup
  ensign.operator.k8s_event:
    name: "{{ ansible_operator_meta.name }}-backup"
    namespace: "{{ ansible_operator_meta.namespace }}"
    reason: BackupTaken
    message: The backup of today takes 12 GiB
    reportingComponent: memcached-operator
    involvedObject:
      apiVersion: cache.example.com/v1alpha1
      kind: Memcached
      name: "{{ ansible_operator_meta.name }}"
      namespace: "{{ ansible_operator_meta.namespace }}"

- name: Warn, and count how often
  ensign.operator.k8s_event:
    name: "{{ ansible_operator_meta.name }}-no-space"
    namespace: "{{ ansible_operator_meta.namespace }}"
    type: Warning
    reason: NoSpace
    message: There is no room for a backup
    appendTimestamp: false
    involvedObject:
      apiVersion: cache.example.com/v1alpha1
      kind: Memcached
      name: "{{ ansible_operator_meta.name }}"
      namespace: "{{ ansible_operator_meta.namespace }}"
"""

RETURN = r"""
result:
  description: The Event; empty when there is none any more.
  returned: success
  type: dict
"""

import time
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.ensign.operator.plugins.module_utils.api import API, APIError, Object, Resource, argument_spec

EVENTS = Resource("v1", "Event", "events", namespaced=True, has_status=False)

INVOLVED_OBJECT: dict[str, Any] = {
    "apiVersion": {"type": "str", "aliases": ["api_version"]},
    "kind": {"type": "str"},
    "name": {"type": "str"},
    "namespace": {"type": "str"},
    "uid": {"type": "str"},
    "resourceVersion": {"type": "str", "aliases": ["resource_version"]},
    "fieldPath": {"type": "str", "aliases": ["field_path"]},
}

PATCHES = {
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic-merge": "application/strategic-merge-patch+json",
}


def involved(api: API, given: dict[str, Any] | None) -> Object:
    """Return the reference to the object, with what can be looked up of it."""
    # Without the other names of options, which are in there too.
    reference = {key: given[key] for key in INVOLVED_OBJECT if given and given[key] is not None}
    named = all(key in reference for key in ("apiVersion", "kind", "name"))
    if not named or "uid" in reference:
        return reference
    try:
        resource = api.resource(reference["apiVersion"], reference["kind"])
        found = api.request("GET", resource.path(reference.get("namespace"), reference["name"]))
    except APIError as error:
        if error.status in (HTTPStatus.NOT_FOUND, HTTPStatus.FORBIDDEN):
            return reference  # The Event may be about what is gone.
        raise
    known = {key: found["metadata"][key] for key in ("uid", "resourceVersion")}
    return {**known, **reference}


def event(params: dict[str, Any], reference: Object, before: Object | None) -> Object:
    """Return what of an Event is written, given the one of the same name that is there."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    source = {key: value for key, value in (params["source"] or {}).items() if value is not None}
    return {
        "involvedObject": reference,
        "reason": params["reason"],
        "message": params["message"],
        "type": params["type"],
        "reportingComponent": params["reportingComponent"],
        "source": {"component": params["reportingComponent"], **source},
        "count": (before or {}).get("count", 0) + 1,
        "firstTimestamp": (before or {}).get("firstTimestamp") or now,
        "lastTimestamp": now,
    }


def delete(module: AnsibleModule, api: API) -> dict[str, Any]:
    """Delete the Event, and return the module's result."""
    path = EVENTS.path(module.params["namespace"], module.params["name"])
    there = api.read(path)
    if there and not module.check_mode:
        api.request("DELETE", path)
    return {"changed": there is not None, "result": {}}


def write(module: AnsibleModule, api: API) -> dict[str, Any]:
    """Write the Event, and return the module's result."""
    params = module.params
    name, before = params["name"], None
    path = EVENTS.path(params["namespace"], name)  # Refuses a name that is none, even where a time is appended to it.
    if params["appendTimestamp"]:
        name = f"{name}.{time.time_ns():x}"
    else:
        before = api.read(path)
    body = event(params, involved(api, params["involvedObject"]), before)
    whole = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": params["namespace"]},
        **body,
    }
    if module.check_mode:
        return {"changed": True, "result": whole}
    if before is None:
        return {"changed": True, "result": api.request("POST", EVENTS.collection(params["namespace"]), whole)}
    merge_type = (params["merge_type"] or ["merge"])[0]
    patch: Any = body
    if merge_type == "json":
        patch = [{"op": "add", "path": f"/{key}", "value": value} for key, value in body.items()]
    result = api.request("PATCH", path, patch, PATCHES[merge_type])
    return {"changed": True, "result": result}


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "name": {"type": "str", "required": True},
            "namespace": {"type": "str", "required": True},
            "message": {"type": "str"},
            "reason": {"type": "str"},
            "type": {"type": "str", "choices": ["Normal", "Warning"], "default": "Normal"},
            "reportingComponent": {
                "type": "str",
                "default": "ensign",
                "aliases": ["reporting_component", "reportingController"],
            },
            "source": {"type": "dict", "options": {"component": {"type": "str"}, "host": {"type": "str"}}},
            "involvedObject": {
                "type": "dict",
                "aliases": ["involved_object"],
                "options": INVOLVED_OBJECT,
            },
            "appendTimestamp": {"type": "bool", "default": True, "aliases": ["append_timestamp"]},
            "merge_type": {"type": "list", "elements": "str", "choices": list(PATCHES)},
            **argument_spec(),
        },
        required_if=[("state", "present", ("message", "reason"))],
        supports_check_mode=True,
    )
    try:
        api = API(module)
        result = delete(module, api) if module.params["state"] == "absent" else write(module, api)
    except APIError as error:
        module.fail_json(**error.result())
    module.exit_json(**result)


if __name__ == "__main__":
    main()
