# Copyright The Ensign authors
# SPDX-License-Identifier: Apache-2.0

"""Documentation of attributes that the modules share."""

from __future__ import annotations


class ModuleDocFragment:
    """What ansible-doc looks for."""

    DOCUMENTATION = r"""
options: {}
attributes:
  check_mode:
    description: Can run in check mode and say what it would change without changing it.
  diff_mode:
    description: Says in diff mode what has changed, or in check mode would change.
"""
