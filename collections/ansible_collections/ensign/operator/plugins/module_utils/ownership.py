# Copyright The Ensign authors
# SPDX-License-Identifier: Apache-2.0

"""Whose an object is. The proof is a UID: names and labels are anybody's to choose."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from ansible_collections.ensign.operator.plugins.module_utils.api import APIError, Object

RELEASE, RELEASE_NAMESPACE = "meta.helm.sh/release-name", "meta.helm.sh/release-namespace"
# What the operator's proxy writes where Kubernetes allows no owner reference.
PRIMARY, PRIMARY_TYPE = "operator-sdk/primary-resource", "operator-sdk/primary-resource-type"
# The UID that `ensign run-once` gives a custom resource that the cluster does not have.
NOT_STORED = "00000000-0000-0000-0000-000000000000"


def argument_spec() -> dict[str, Any]:
    """Return the options that say who the owner is."""
    return {
        "owner": {"type": "raw", "required": True},
        "owner_annotation": {"type": "str"},
    }


@dataclass(frozen=True)
class Owner:
    """The objects of which one has to be the owner: most often one, the custom resource."""

    uids: tuple[str, ...]
    said: str
    annotation: str = ""
    # Whether it owns what has no owner, because nothing can have it as one.
    ownerless: bool = False

    @classmethod
    def given(cls, params: dict[str, Any]) -> Owner:
        """Return the owner that a module's options name, or raise APIError where they name none.

        Only outside of an operator's run may it have no UID.
        """
        given = params["owner"] if isinstance(params["owner"], list) else [params["owner"] or {}]
        metadata = [one.get("metadata") or {} for one in given if isinstance(one, dict)]
        uids = tuple(there["uid"] for there in metadata if there.get("uid"))
        if len(uids) < len(given) and ("ENSIGN_MANAGER" in os.environ or any(map(bool, given))):
            raise APIError(
                "owner: an object with metadata.uid is required, such as the custom resource:"
                ' owner: "{{ _example_com_shop }}"'
            )
        names = (f"{one.get('kind', 'object')} {one['metadata'].get('name', '')}".strip() for one in given if one)
        ownerless = uids == (NOT_STORED,) or (not uids and "ENSIGN_MANAGER" not in os.environ)
        return cls(uids, " or ".join(names) or "this resource", params["owner_annotation"] or "", ownerless)

    def owns(self, found: Object) -> bool:
        """Tell whether the object is the owner's.

        It is not where another one is its controller.
        """
        metadata = found["metadata"]
        references = metadata.get("ownerReferences") or []
        if any(r.get("controller") and r["uid"] not in self.uids for r in references):
            return False
        if self.ownerless:
            return ownerless(metadata)
        noted = (metadata.get("annotations") or {}).get(self.annotation) if self.annotation else None
        return noted in self.uids or any(r["uid"] in self.uids for r in references)

    def says_of(self, found: Object) -> str:
        """Return whose an object is that is not the owner's."""
        metadata, kind = found["metadata"], found["kind"]
        name = f"{metadata['namespace']}/{metadata['name']}" if metadata.get("namespace") else metadata["name"]
        theirs = self._theirs(metadata)
        if not theirs:
            return f"{kind} {name} exists and has no owner, so it does not belong to {self.said}"
        return f"{kind} {name} exists and belongs to {theirs}, not to {self.said}"

    def _theirs(self, metadata: Object) -> str:
        references = sorted(metadata.get("ownerReferences") or [], key=lambda r: not r.get("controller"))
        annotations = metadata.get("annotations") or {}
        if references:
            theirs = f"{references[0]['kind']} {references[0]['name']}"
            return f"another {theirs}, with the UID {references[0]['uid']}" if theirs == self.said else theirs
        if RELEASE in annotations:
            names = (annotations.get(RELEASE_NAMESPACE), annotations[RELEASE])
            return f"the Helm release {'/'.join(filter(None, names))}"
        if PRIMARY in annotations:
            return f"{annotations.get(PRIMARY_TYPE, '')} {annotations[PRIMARY]}".strip()
        if annotations.get(self.annotation):
            return f'an owner with the UID "{annotations[self.annotation]}" (annotation {self.annotation})'
        return ""


def ownerless(metadata: Object) -> bool:
    """Tell whether an object has no owner of any sort."""
    annotations = metadata.get("annotations") or {}
    return not metadata.get("ownerReferences") and RELEASE not in annotations and PRIMARY not in annotations
