#!/usr/bin/python
from ansible.module_utils.basic import AnsibleModule

module = AnsibleModule(argument_spec={"time": {"type": "str", "required": True}})
module.exit_json(period=module.params["time"])
