#!/usr/bin/python
# Copyright The Ensign authors
# SPDX-License-Identifier: Apache-2.0

"""Asks the manager for another run."""

from __future__ import annotations

DOCUMENTATION = r"""
module: requeue_after
short_description: Ask the operator to run again for the custom resource
version_added: 1.0.0
author: The Ensign authors (@ensign-operator)
description:
  - The run goes on to its end and its result is written to the status of the custom resource.
    Then, after the given time, the operator runs again for that custom resource.
  - If a run asks several times, the shortest counts. In a run that fails, the operator's pause after
    failures counts instead.
  - Outside of an operator's run the module does nothing, and RV(msg) says so.
options:
  time:
    description:
      - How long to wait, as a duration of Go such as V(90s), V(1h30m) or V(500ms). It has to be more than
        nothing; the operator waits for a second at least.
    type: str
    required: true
extends_documentation_fragment:
  - ensign.operator.attributes
attributes:
  check_mode:
    support: full
    details: The operator comes again then too. Nothing else would be changed.
  diff_mode:
    support: none
"""

EXAMPLES = r"""
- name: Look again in half a minute
  ensign.operator.requeue_after:
    time: 30s

- name: Look again soon while the database is not ready
  ensign.operator.requeue_after:
    time: 5s
  when: database.resources[0].status.readyReplicas | default(0) == 0
"""

RETURN = r"""
period:
  description: The time after which the operator comes again.
  returned: success
  type: str
  sample: 30s
msg:
  description: That nothing comes again.
  returned: outside of an operator's run
  type: str
"""

import os
import re

from ansible.module_utils.basic import AnsibleModule

# What Go's time.ParseDuration reads, each number with its unit.
UNITS = {"ns": 1, "us": 1e3, "µs": 1e3, "μs": 1e3, "ms": 1e6, "s": 1e9, "m": 60e9, "h": 3600e9}
NUMBER = r"(\d+\.?\d*|\.\d+)"
UNIT = "|".join(UNITS)
LONGEST = 2**63 - 1


def nanoseconds(text: str) -> float:
    """Return how long a duration of Go is; 0 for what is none, or longer than Go can count."""
    if not re.fullmatch(rf"\+?({NUMBER}({UNIT}))+", text, re.ASCII):
        return 0
    total = sum(float(number) * UNITS[unit] for number, unit in re.findall(rf"{NUMBER}({UNIT})", text, re.ASCII))
    return total if total <= LONGEST else 0


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec={"time": {"type": "str", "required": True}}, supports_check_mode=True)
    period: str = module.params["time"]
    if nanoseconds(period) < 1:
        module.fail_json(msg=f'time: invalid duration "{period}": write a positive one such as "90s" or "1h30m"')
    if "ENSIGN_MANAGER" in os.environ:
        module.exit_json(changed=False, period=period)
    note = f"outside of an operator's run: nothing runs again after {period}"
    module.exit_json(changed=False, period=period, msg=note)


if __name__ == "__main__":
    main()
