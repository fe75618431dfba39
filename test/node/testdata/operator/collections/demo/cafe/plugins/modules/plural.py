"""A module that needs a package from pip."""

from __future__ import annotations

import sys

import inflection
from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = """
module: plural
short_description: Return the plural of a word
description: Return the plural of an English word, and the interpreter that the module runs on.
author: The Ensign authors
options:
  word:
    description: The word.
    type: str
    required: true
"""


def main() -> None:
    module = AnsibleModule({"word": {"type": "str", "required": True}}, supports_check_mode=True)
    plural = inflection.pluralize(module.params["word"])
    module.exit_json(changed=False, plural=plural, python=sys.executable)


if __name__ == "__main__":
    main()
