"""Tries, before a server serves, that a fork becomes a run that ends well, with each mechanism that is on.

A version of Ansible may take what it is passed and do something else. A run that begins as a fork cannot become
cold any more, and would fail each time. So a play is run first, by a fork as the manager asks for, which also
compares what it has made anew, and compiled ahead, with what Ansible itself makes.
"""

import contextlib
import json
import os
import select
import shutil
import signal
import socket
import tempfile
import time
from collections.abc import Callable
from typing import BinaryIO

from ensign_warm import process, wire
from ensign_warm.run import Run, temporary
from ensign_warm.templates import EXPRESSION, TEXTS

_ENOUGH = 300  # characters of what it says
_PATIENCE = 120  # seconds for all of it; internal/ansible/warm.startTimeout is longer
_PLAY = [
    {
        "hosts": "localhost",
        "gather_facts": False,
        "connection": "local",
        "become": False,
        "vars": {
            "numbers": [3, 1, 2],
            "ansible_pipelining": True,
            "ansible_python_interpreter": "{{ ansible_playbook_python }}",
        },
        "tasks": [
            {"ansible.builtin.ping": {}, "register": "got", "when": EXPRESSION},
            {"ansible.builtin.debug": {"msg": TEXTS}, "failed_when": "got.ping != 'pong'"},
        ],
    }
]


def failing(program: Run, begin: Callable[[socket.socket, Run], None]) -> dict[str, str]:
    """Return the mechanisms that must be off as well, each with what is wrong."""
    deadline, off = time.monotonic() + _PATIENCE, dict[str, str]()

    def wrong(without: dict[str, str]) -> str:
        return _wrong(program, begin, program.off | without, deadline)

    if "run" in program.off or not wrong({}) or not wrong({}):  # A machine may lack something for a moment.
        return off
    untried = {m: "" for m in program.mechanisms if m not in program.off}
    if why := wrong(untried):
        return {"run": why}
    for mechanism in list(untried):
        del untried[mechanism]
        if why := wrong(off | untried):
            off[mechanism] = why
    return off


def _wrong(program: Run, begin: Callable[[socket.socket, Run], None], off: dict[str, str], deadline: float) -> str:
    """Return what is wrong with a run that has only the other mechanisms; "" if it ends well."""
    place = tempfile.mkdtemp(dir=os.environ.get("ANSIBLE_LOCAL_TEMP"))
    try:
        request = _request(program, place)
        ours, theirs = socket.socketpair()
        taken, given = os.pipe()
        pid = os.fork()
        if pid == 0:
            ours.close()
            null = os.open(os.devnull, os.O_RDWR)
            os.dup2(null, 0)
            os.dup2(null, 1)  # That would tell the manager of its modules.
            for descriptor in (null, taken, given):
                os.close(descriptor)
            os.setsid()
            process.show(True)
            program.off, program.tried = off, True
            begin(theirs, program)
        theirs.close()
        with ours, open(taken, "rb", buffering=0) as output:
            said = _said(ours, request, output, given, deadline)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        left = os.listdir(os.path.join(place, "tmp"))
    finally:
        shutil.rmtree(place, ignore_errors=True)
    if said.startswith(b"cold "):
        return ""  # As each run, with this reason.
    if code == 0 and b'"playbook_on_stats"' in said and not left and os.path.isdir(temporary()):
        return ""
    return f"a trial ended with {code}, left {left} and said {_last_words(said)}"


def _last_words(said: bytes) -> str:
    """Return the last text that the run displayed before its statistics."""
    for line in reversed(said.splitlines()):
        with contextlib.suppress(ValueError):
            event = json.loads(line)
            if event["stdout"].strip() and event.get("event") != "playbook_on_stats":
                return str(event["stdout"])[-_ENOUGH:]
    return said[-_ENOUGH:].decode(errors="replace")


def _request(program: Run, place: str) -> bytes:
    """Lay out what a run has, and return what the manager would send."""
    for directory in ("inventory", "project", "tmp"):
        os.mkdir(os.path.join(place, directory))
    for name, content in (("inventory/hosts", "localhost\n"), ("project/play.json", json.dumps(_PLAY))):
        with open(os.path.join(place, name), "w", encoding="utf-8") as file:
            file.write(content)
    variables = program.environment | {b"ANSIBLE_LOCAL_TEMP": os.fsencode(os.path.join(place, "tmp"))}
    arguments = [program.path, "run", place, "--json", "--ident=trial", "-p", os.path.join(place, "project/play.json")]
    request = wire.Request(os.fsencode(place), [os.fsencode(a) for a in arguments], variables)
    return wire.pack(request)


def _said(ours: socket.socket, request: bytes, output: BinaryIO, given: int, deadline: float) -> bytes:
    """Have the fork begin, and return what it says up to its end, or why it does not begin."""
    ours.settimeout(max(deadline - time.monotonic(), 1))
    try:
        ours.sendall(request)
        line = ours.recv(4096)
        if not line.startswith(b"ready "):
            return line
        socket.send_fds(ours, [wire.GO], [given, given])
    except OSError as error:
        return str(error).encode()
    finally:
        os.close(given)
    said = list[bytes]()
    while select.select([output], [], [], max(deadline - time.monotonic(), 0))[0]:
        said.append(output.read(1 << 16))
        if not said[-1]:
            return b"".join(said)
    os.killpg(int(line.split()[1]), signal.SIGKILL)
    return b"no end"
