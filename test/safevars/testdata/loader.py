"""Reads extra-vars files with Ansible's own functions, as ansible-playbook does.

Usage: loader.py [libyaml | pure]

The argument says which YAML parser PyYAML uses. Each line of standard input is
{"text": base64, "mode": ...}; each line of standard output tells what Ansible
made of it: {"value": tree} or {"error": name of the exception, "said": what
ansible-playbook prints about it}. In mode "yaml" the JSON decoder gives up on
everything, as it would on a file that it cannot read.
"""

import base64
import contextlib
import io
import json
import struct
import sys
import tempfile
from typing import Any, NoReturn

if sys.argv[1] == "pure":
    sys.modules["yaml.cyaml"] = None  # type: ignore[assignment]

import yaml
from ansible import context
from ansible._internal._datatag._tags import TrustedAsTemplate
from ansible.module_utils.common.collections import ImmutableDict
from ansible.parsing.dataloader import DataLoader
from ansible.parsing.utils import yaml as ansible_yaml
from ansible.utils.display import Display
from ansible.utils.vars import load_extra_vars

real_json = ansible_yaml.json


class GivesUp:
    """Stands in for the json module of Ansible's loader."""

    @staticmethod
    def loads(*args: object, **kwargs: object) -> NoReturn:
        raise ValueError("forced")


def tree(value: object) -> dict[str, Any]:
    """The value with the type and the trust of each of its parts."""
    if value is None:
        return {"null": True}
    if isinstance(value, bool):
        return {"bool": value}
    if isinstance(value, int):
        return {"int": str(value)}
    if isinstance(value, float):
        return {"float": str(struct.unpack("<Q", struct.pack("<d", value))[0])}
    if isinstance(value, str):
        return {"str": str.__str__(value), "trusted": TrustedAsTemplate.is_tagged_on(value)}
    if isinstance(value, list):
        return {"list": [tree(v) for v in value]}
    if isinstance(value, dict):
        answer: dict[str, Any] = {"map": {str.__str__(k): tree(v) for k, v in value.items()}}
        if any(TrustedAsTemplate.is_tagged_on(key) for key in value):
            answer["trusted keys"] = True
        return answer
    return {"unexpected type": repr(type(value))}


def read(name: str) -> dict[str, Any]:
    """What the command line's own function makes of `-e @name`."""
    context.CLIARGS = ImmutableDict(extra_vars=(f"@{name}",), verbosity=4)
    load_extra_vars.extra_vars = None
    try:
        return {"value": tree(load_extra_vars(DataLoader()))}
    except Exception as error:
        said = io.StringIO()
        Display()._errors.clear()  # It says everything once.
        with contextlib.redirect_stderr(said):
            Display().error(error)
        return {"error": type(error).__name__, "said": said.getvalue()}


def main() -> None:
    if yaml.__with_libyaml__ != (sys.argv[1] == "libyaml"):
        sys.exit(f"PyYAML does not use the parser {sys.argv[1]}")
    with tempfile.NamedTemporaryFile(suffix="extravars") as file:
        for line in sys.stdin:
            request = json.loads(line)
            file.seek(0)
            file.truncate()
            file.write(base64.b64decode(request["text"]))
            file.flush()
            ansible_yaml.json = GivesUp if request["mode"] == "yaml" else real_json
            print(json.dumps(read(file.name)), flush=True)


main()
