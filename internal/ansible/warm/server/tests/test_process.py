"""A fork shows what the run has that it becomes."""

import json

import pytest
from conftest import execute

SCRIPT = """
import ctypes, json, os, sys
from ensign_warm import process, wire
def shown(name):
    with open(f"/proc/self/{name}") as file:
        return file.read().rstrip("\\0").split("\\0")
def visible():
    return ctypes.CDLL(None).prctl(3, 0, 0, 0, 0)
def marked(variables):
    try:
        process.mark(variables)
    except wire.Refused as refused:
        return str(refused)
    return shown("environ")
def told(show, arguments):
    show(arguments)
    return shown("cmdline")
def hidden():
    process.show(False)
    before = visible()
    process.show(True)
    return [before, visible()]
print(json.dumps(eval(sys.argv[1])))
"""
CASES = {
    "marks come first": (
        "marked({b'A': b'1', b'JOB_ID': b'7', b'B': b'', b'ENSIGN_MANAGER': b'm', b'ENSIGN_RUN_ROOT': b'/r'})",
        ["JOB_ID=7", "ENSIGN_RUN_ROOT=/r", "ENSIGN_MANAGER=m", "A=1", "B="],
    ),
    "what is no mark may have no room": ("marked({b'A': b'1' * 999, b'JOB_ID': b'7'})[0]", "JOB_ID=7"),
    "marks must have room": ("marked({b'A': b'1', b'JOB_ID': b'7' * 999})", "marks"),
    "arguments": ("told(process.show_arguments, [b'python', b'a b'])", ["python", "a b"]),
    "arguments without room": ("told(process.show_arguments, [b'x' * 9999])[0][:2]", "xx"),
    "a server is hidden, and a fork is not": ("hidden()", [0, 1]),
}


@pytest.mark.parametrize("name", CASES)
def test_what_others_see(name: str) -> None:
    script, wanted = CASES[name]
    assert json.loads(execute(SCRIPT, script, ROOM="." * 200)) == wanted
