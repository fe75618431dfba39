"""A module that has a secret argument and repeats it in what it returns."""

from ansible.module_utils.basic import AnsibleModule


def main() -> None:
    module = AnsibleModule(argument_spec={
        "password": {"type": "str", "no_log": True},
        "fail": {"type": "bool", "default": False},
    })
    password = module.params["password"]
    answer = {"msg": f"logged in with {password}", "deep": {"list": [password, {"key": f"a {password} b"}]}}
    if module.params["fail"]:
        module.fail_json(**answer)
    module.exit_json(**answer)


if __name__ == "__main__":
    main()
