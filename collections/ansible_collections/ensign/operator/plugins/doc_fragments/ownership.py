# Copyright The Ensign authors
# SPDX-License-Identifier: Apache-2.0

"""Documentation of the options that say who the owner is."""

from __future__ import annotations


class ModuleDocFragment:
    """What ansible-doc looks for."""

    DOCUMENTATION = r"""
notes:
  - An object belongs to the owner if one of its C(ownerReferences) has the owner's UID, and no other object is
    its controller. The operator adds this reference to everything that a run creates in the namespace of its
    custom resource.
  - Names and labels are no proof. A Helm release, or another custom resource, may use the same ones.
  - Outside of an operator's run, such as in Molecule, nothing has an owner. There O(owner) may be V({}), and an
    object belongs to it if it has no owner at all. The same holds for C(ensign run-once -f) of a custom resource
    that the cluster does not have.
options:
  owner:
    description:
      - The owner, with its C(kind), C(metadata.name) and C(metadata.uid). Most often the custom resource, from
        the variable C(_GROUP_KIND) of the run; for pods, the object that created them.
      - A list of objects stands for any of them.
    type: raw
    required: true
  owner_annotation:
    description:
      - An annotation that has the owner's UID, for objects that must outlive their owner and therefore have no
        owner reference, such as claims with data. It counts like an owner reference.
    type: str
"""
