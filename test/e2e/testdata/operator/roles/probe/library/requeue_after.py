"""A requeue_after of the operator's own: the bare name and the result are what counts."""
from ansible.module_utils.basic import AnsibleModule


def main() -> None:
    module = AnsibleModule(argument_spec={"time": {"type": "str", "required": True}})
    module.exit_json(changed=False, period=module.params["time"])


if __name__ == "__main__":
    main()
