"""A server tries its mechanisms, and does without those that another Ansible would break."""

import importlib
import itertools
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import SERVER, TIMEOUT
from ensign_warm import trial

PROGRAM = SERVER.parents[1] / "runner" / "program" / "ensign_run.py"
# Of another Ansible: a file, what stands there, and what stands there instead; and what is off with it.
OTHERS = {
    "nothing else": ("release.py", "", "", {}),
    "streams are made safe once": (
        "utils/display.py",
        "    buffer = tio.buffer\n",
        "    if getattr(os, '_once', 2) == 0:\n        return\n    os._once = getattr(os, '_once', 2) - 1\n    buffer = tio.buffer\n",
        {"run": "_replacing_warning_handler"},
    ),
    "unique names from another number": (
        "utils/vars.py",
        "def get_unique_id():",
        "_other = random_int\ndef get_unique_id():\n    global cur_id\n    cur_id += 1\n    return f'{_other}-{cur_id}'\ndef _former():",
        {"run": "a fork has names of the server's"},
    ),
    "a file for each process that stays": (
        "utils/path.py",
        "def cleanup_tmp_file(path, warn=False):",
        "def cleanup_tmp_file(path, warn=False):\n    return\ndef _former(path, warn=False):",
        {"run": "ansible-local"},
    ),
    "other code for templates that roles have": (
        "_internal/_templating/_jinja_bits.py",
        "self.write(repr(value))",
        "self.write(repr(value) + ('' if type(self.environment.filters).__name__ == 'SimpleNamespace' else ' if [1] else 0'))",
        {"templates": "a template is compiled otherwise"},
    ),
    "routing that is parsed by keywords": (
        "utils/collection_loader/_collection_finder.py",
        "_meta_yml_to_dict(raw_routing, (collection_name, 'runtime.yml'))",
        "_meta_yml_to_dict(yaml_string_data=raw_routing, content_id=(collection_name, 'runtime.yml'))",
        {"parsed": "a trial ended with 250"},
    ),
    "directories that are made otherwise": (
        "plugins/action/__init__.py",
        "    def _make_tmp_path(self,",
        "    def _make_tmp_path( self,",
        {"directories": "_make_tmp_path"},
    ),
}


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a copy of Ansible, of links."""
    ansible = Path(str(importlib.import_module("ansible").__file__)).parent
    place = tmp_path_factory.mktemp("other")
    shutil.copytree(
        ansible, place / "ansible", copy_function=os.symlink, ignore=shutil.ignore_patterns("__pycache__", "galaxy")
    )
    return place


@pytest.fixture
def other(copy: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """The copy, with one text in one file replaced by another."""
    name, text, instead, _ = OTHERS[request.param]
    file = copy / "ansible" / name
    original = file.readlink()
    source = original.read_text()
    assert text in source
    file.unlink()
    file.write_text(source.replace(text, instead))
    os.utime(file, (1, 1))
    yield copy
    file.unlink()
    file.symlink_to(original)


UNSETTLED = 75  # the exit code that has the manager start another server


def off(path: Path, place: Path) -> dict[str, str]:
    """Return what a server says to be off that finds this path first.

    One ends at once whose files were changed a moment before. Like the manager, start another one.
    """
    end = time.monotonic() + TIMEOUT
    for attempt in itertools.count():
        said = serve(path, place / str(attempt))
        if said is not None:
            return said
        assert time.monotonic() < end, "the files do not settle"
    raise AssertionError


def serve(path: Path, place: Path) -> dict[str, str] | None:
    """Return what one server says to be off; None if its files have not settled."""
    for name in ("home", "tmp"):
        (place / name).mkdir(parents=True)
    (place / "templates.json").write_text("[]")
    ours, theirs = socket.socketpair()
    ours.settimeout(5 * TIMEOUT)  # It may try seven times.
    served = subprocess.Popen(  # noqa: S603
        [sys.executable, str(SERVER / "serve.py"), str(PROGRAM), str(place / "templates.json"), "room" * 1000],
        env={"PATH": os.path.dirname(sys.executable), "ANSIBLE_LOCAL_TEMP": str(place / "tmp"), "HOME": str(place)}
        | {"PYTHONPATH": str(path), "LC_ALL": "C.UTF-8", "ENSIGN_WARM_ROOM": "." * (64 << 10)},
        cwd=place / "home",
        stdin=theirs.fileno(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    theirs.close()
    with ours, ours.makefile() as said:
        lines = []
        for line in said:
            lines.append(line.rstrip("\n"))
            if lines[-1] == "ready":
                break
    out, err = served.communicate(timeout=TIMEOUT)
    if served.returncode == UNSETTLED:
        return None
    assert (lines[-1:], out, err) == (["ready"], b"", b"")
    assert len(os.listdir(place / "tmp")) == 1  # The server's own, which the manager removes.
    return dict(line.removeprefix("off ").split(" ", 1) for line in lines[:-1])


@pytest.mark.parametrize("other", OTHERS, indirect=True)
def test_what_another_ansible_turns_off(other: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    wanted = OTHERS[request.node.callspec.params["other"]][3]
    found = off(other, tmp_path)
    assert found.keys() == wanted.keys(), found
    assert all(wanted[mechanism] in why for mechanism, why in found.items()), found


def test_white_space_is_no_cause() -> None:
    events = [
        ("runner_on_failed", "the cause"),
        ("verbose", "\r"),
        ("verbose", " \n"),
        ("playbook_on_stats", "PLAY RECAP"),
    ]
    said = b"".join(json.dumps({"event": event, "stdout": text}).encode() + b"\n" for event, text in events)
    assert trial._last_words(said) == "the cause"
