"""What Ansible says against the variables of a role, by the role's argument specs."""

from __future__ import annotations

from typing import Any

from ansible.module_utils.common.arg_spec import ArgumentSpecValidator


def refused(spec: dict[str, Any], values: dict[str, Any]) -> list[str]:
    """Return the messages of the validation with which a role begins."""
    given = {name: value for name, value in values.items() if name in spec}
    try:
        return [str(message) for message in ArgumentSpecValidator(spec).validate(given).error_messages]
    except Exception as error:  # The specs themselves have a fault, and Ansible raises what it likes.
        return [f"the argument specs can't be used: {error}"]
