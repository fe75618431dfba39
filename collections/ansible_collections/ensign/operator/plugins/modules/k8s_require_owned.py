#!/usr/bin/python
# Copyright The Ensign authors
# SPDX-License-Identifier: Apache-2.0

"""Fails where an object exists that belongs to someone else."""

from __future__ import annotations

DOCUMENTATION = r"""
module: k8s_require_owned
short_description: Require that objects are the owner's, or do not exist
version_added: 1.1.0
author: The Ensign authors (@ensign-operator)
description:
  - Looks objects up by name. Fails if one of them exists and is not the owner's; the message names all of these
    objects, and whose they are.
  - A role calls it before it writes. Otherwise everybody who may create a custom resource could overwrite, or
    use, objects of others by choosing a name.
options:
  definition:
    description:
      - The objects, with C(apiVersion), C(kind), C(metadata.name) and C(metadata.namespace). The definitions
        that the role writes afterwards can be given as they are; the rest of them is not read.
      - One of O(definition) and O(kind) is required.
    type: list
    elements: dict
    aliases: [resource_definition, inline]
  api_version:
    description: API version of the objects that O(kind) and O(name) stand for.
    type: str
    default: v1
    aliases: [api, version]
  kind:
    description: Kind of the objects that O(name) names.
    type: str
  name:
    description: Names of the objects of O(kind).
    type: list
    elements: str
  namespace:
    description: Namespace of objects that do not name theirs.
    type: str
  allow_ownerless:
    description:
      - Whether an object without any owner is allowed too. Such an object was created by hand, for example a
        Secret that a person has restored.
    type: bool
    default: false
extends_documentation_fragment:
  - ensign.operator.ownership
  - ensign.operator.authentication
  - ensign.operator.attributes
attributes:
  check_mode:
    support: full
    details: Nothing is ever written.
  diff_mode:
    support: none
"""

EXAMPLES = r"""
- name: Require that the names are free, or this Shop's
  ensign.operator.k8s_require_owned:
    owner: "{{ _example_com_shop }}"
    definition:
      - "{{ shop_service }}"
      - "{{ shop_stateful_set }}"
  register: shop_found

- name: Require that the claim is free, or this Shop's
  ensign.operator.k8s_require_owned:
    owner: "{{ _example_com_shop }}"
    kind: PersistentVolumeClaim
    name: ["data-{{ ansible_operator_meta.name }}-0"]
    namespace: "{{ ansible_operator_meta.namespace }}"
"""

RETURN = r"""
resources:
  description: The objects that exist, in the order in which they were given. The values in Secrets are left out.
  returned: success
  type: list
  elements: dict
foreign:
  description: For each object of someone else, a sentence that says whose it is.
  returned: failure
  type: list
  elements: str
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.ensign.operator.plugins.module_utils import api as apis
from ansible_collections.ensign.operator.plugins.module_utils.api import API, APIError, Object
from ansible_collections.ensign.operator.plugins.module_utils.ownership import Owner, argument_spec, ownerless


def asked(params: dict[str, Any]) -> list[tuple[str, str, str | None, str]]:
    """Return API version, kind, namespace and name of the objects, or raise APIError."""
    found = [(params["api_version"], params["kind"], params["namespace"], name) for name in params["name"] or []]
    for number, definition in enumerate(params["definition"] or []):
        metadata = definition.get("metadata") or {}
        values = (definition.get("apiVersion"), definition.get("kind"), metadata.get("name"))
        if not all(isinstance(value, str) and value for value in values):
            raise APIError(f"definition[{number}]: apiVersion, kind and metadata.name are required")
        found.append((values[0], values[1], metadata.get("namespace") or params["namespace"], values[2]))
    return found


def shown(found: Object) -> Object:
    """Return an object without the values of a Secret."""
    return {
        key: value for key, value in found.items() if found["kind"] != "Secret" or key not in ("data", "stringData")
    }


def look(params: dict[str, Any], api: API, owner: Owner) -> tuple[list[Object], list[str]]:
    """Return the objects that are there, and what there is to say of those of others."""
    places = [(api.resource(version, kind), namespace, name) for version, kind, namespace, name in asked(params)]
    found = [there for resource, namespace, name in places if (there := api.read(resource.path(namespace, name)))]
    allowed = [there for there in found if params["allow_ownerless"] and ownerless(there["metadata"])]
    foreign = [owner.says_of(there) for there in found if there not in allowed and not owner.owns(there)]
    return [shown(there) for there in found], foreign


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "definition": {"type": "list", "elements": "dict", "aliases": ["resource_definition", "inline"]},
            "api_version": {"type": "str", "default": "v1", "aliases": ["api", "version"]},
            "kind": {"type": "str"},
            "name": {"type": "list", "elements": "str"},
            "namespace": {"type": "str"},
            "allow_ownerless": {"type": "bool", "default": False},
            **argument_spec(),
            **apis.argument_spec(),
        },
        required_one_of=[("definition", "kind")],
        required_together=[("kind", "name")],
        supports_check_mode=True,
    )
    try:
        owner = Owner.given(module.params)
        resources, foreign = look(module.params, API(module), owner)
    except APIError as error:
        module.fail_json(**error.result())
    if foreign:
        remedy = f"Delete what nobody needs, or give {owner.said} another name"
        module.fail_json(msg=f"{'; '.join(foreign)}. {remedy}", foreign=foreign)
    module.exit_json(changed=False, resources=resources)


if __name__ == "__main__":
    main()
