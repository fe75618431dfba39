"""What the local connection of a fork starts."""

import shlex
import sys

import pytest
from ensign_warm.local import Modules

PYTHON = sys.executable
VALUE = 'it\'s\nwith $blanks and "quotes"'
# The command of Ansible's shell plugin, and whether it runs a module that a fork can be.
COMMANDS = {
    "with pipelining": (f"/bin/sh -c {PYTHON}", True),
    "with pipelining, in quotes": (f"/bin/sh -c '{PYTHON}'", True),
    "with pipelining and variables": (f"/bin/sh -c 'LANG=C K=/k/c {PYTHON}'", True),
    "with a file": (f"/bin/sh -c '{PYTHON} /r/tmp/AnsiballZ_ping.py'", True),
    "with an end that is not the module's": (f"/bin/sh -c '{PYTHON} /r/tmp/AnsiballZ_ping.py && sleep 0'", True),
    "only one quote": (f"/bin/sh -c '{PYTHON}", False),
    "a module without its name": (f"/bin/sh -c '{PYTHON} /r/tmp/ping.py'", False),
    "another interpreter": ("/bin/sh -c /usr/bin/other", False),
    "an interpreter with arguments": (f"/bin/sh -c '{PYTHON} -c pass'", False),
    "become": (f"/bin/sh -c 'sudo -H -S -n -u root /bin/sh -c {PYTHON}'", False),
    "another shell": (f"/bin/bash -c {PYTHON}", False),
    "a variable with blanks": (f"""/bin/sh -c 'A='"'"'b c'"'"' {PYTHON}'""", True),
    "an empty one": (f"""/bin/sh -c 'A='"'"''"'"' {PYTHON}'""", True),
    "one with a quote and lines": (
        f"/bin/sh -c {shlex.quote(f'A={shlex.quote(VALUE)} {PYTHON} /t/AnsiballZ_x.py && sleep 0')}",
        True,
    ),
    "one that is not quoted": (f"/bin/sh -c 'A=$B {PYTHON}'", False),
    "a quote that has an end only": (f"""/bin/sh -c 'A=b'"'"' {PYTHON}'""", False),
    "a quote of another kind": (f"""/bin/sh -c 'A="b c" {PYTHON}'""", False),
    "a command before it": (f"/bin/sh -c 'true; {PYTHON}'", False),
    "more than one word": (f"/bin/sh -c '{PYTHON}' '{PYTHON}'", False),
    "in the background": (f"/bin/sh -c '{PYTHON} /r/async_wrapper.py j1 60 false /r/tmp/AnsiballZ_ping.py'", False),
}


@pytest.mark.parametrize(("command", "warm"), COMMANDS.values(), ids=COMMANDS.keys())
def test_modules_of_this_interpreter_start_by_the_stand_in(command: str, warm: bool) -> None:
    started = Modules("/w/python").command(command)
    assert started == (command.replace(PYTHON, "/w/python", 1) if warm else command)


def test_other_commands_are_left_alone() -> None:
    words = ["/bin/sh", "-c", PYTHON]
    assert Modules("/w/python").command(words) is words
