"""A fork goes where its stand-in is, or says that it can't."""

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Server
from ensign_warm import process
from ensign_warm.wire import Refused

MOUNTS = {
    "version 2 alone": ("30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n", "/sys/fs/cgroup"),
    "both versions": (
        "30 23 0:26 / /sys/fs/cgroup ro - tmpfs tmpfs ro\n"
        "31 30 0:27 / /sys/fs/cgroup/unified rw shared:9 - cgroup2 cgroup2 rw\n"
        "32 30 0:28 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n",
        "/sys/fs/cgroup/unified",
    ),
    "a part of it, and all of it": (
        "30 23 0:26 /a /elsewhere rw - cgroup2 cgroup2 rw\n31 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
        "/sys/fs/cgroup",
    ),
    "a part of it": ("30 23 0:26 /a /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", ""),
    "version 1 alone": ("32 30 0:28 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n", ""),
    "none": ("", ""),
}


@pytest.mark.parametrize("name", MOUNTS)
def test_where_groups_are(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content, want = MOUNTS[name]
    table = tmp_path / "mountinfo"
    table.write_text(content)
    monkeypatch.setattr(process, "_CGROUPS", str(table))
    if want:
        assert process.mount_of_groups() == want
        return
    with pytest.raises(Refused, match="control group"):
        process.mount_of_groups()


def groups() -> Path | None:
    """Return where this user may make groups, if there is such a place."""
    try:
        parent = Path(process.mount_of_groups() + process.group_of("self"))
        place = parent / f"ensign-test-{os.getpid()}"
        place.mkdir()
    except (OSError, Refused):
        return None
    place.rmdir()
    return parent


def child(*statements: str) -> str:
    """Run statements in a new interpreter, and return what they print."""
    server = Path(process.__file__).parents[1]
    script = f"import sys; sys.path.insert(0, {str(server)!r}); from ensign_warm import process\n" + "\n".join(
        statements
    )
    return subprocess.run(  # noqa: S603
        [sys.executable, "-c", script], capture_output=True, check=True, text=True, env={"ROOM": "." * 200, "PATH": ""}
    ).stdout.strip()


def test_joins_the_group_of_its_standin() -> None:
    parent = groups()
    if parent is None:
        return  # Where no group can be made, all are in one.
    place = parent / f"ensign-test-{os.getpid()}"
    place.mkdir()
    with subprocess.Popen(["sleep", "600"]) as standin:  # noqa: S607
        try:
            (place / "cgroup.procs").write_text(str(standin.pid))
            moved = child(f"process.join_group({standin.pid}); print(process.group_of('self'))")
            assert moved == process.group_of(str(standin.pid))
            assert moved.endswith(place.name)
        finally:
            standin.kill()
    place.rmdir()


def test_stays_in_the_group_that_it_shares(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "_CGROUPS", "/nowhere")  # It is not looked for.
    process.join_group(os.getpid())


def test_refuses_when_its_standin_is_gone() -> None:
    with subprocess.Popen(["true"]) as standin:  # noqa: S607
        pass
    with pytest.raises(Refused, match="control group"):
        process.join_group(standin.pid)


def test_shows_marks_first() -> None:
    shown = child(
        "process.mark({b'A': b'1' * 300, b'JOB_ID': b'7', b'ENSIGN_MANAGER': b'm'})",
        "print(open('/proc/self/environ').read().split('\\0')[:2])",
    )
    assert shown == "['JOB_ID=7', 'ENSIGN_MANAGER=m']"


def test_refuses_marks_that_have_no_room() -> None:
    shown = child(
        "from ensign_warm.wire import Refused",
        "try: process.mark({b'JOB_ID': b'7' * 500})",
        "except Refused as error: print(error)",
    )
    assert shown == "marks"


def test_refuses_a_limit_that_it_may_not_have() -> None:
    shown = child(
        "from ensign_warm.wire import Refused",
        "try: process.set_limits([(5, 1)])",
        "except Refused as error: print(error)",
    )
    assert shown == "limits"


def test_a_server_is_hidden_and_its_forks_are_not(server: Server) -> None:
    assert server.run(stdin=b"import ctypes; print(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0))").out == b"1\n"
    if (pid := os.fork()) == 0:
        process.hide()
        os._exit(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0))
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_a_server_has_no_memory_that_others_could_write(server: Server) -> None:
    place = f"/proc/{server.process.pid}/fd"
    assert not [
        link for link in (os.readlink(os.path.join(place, name)) for name in os.listdir(place)) if "memfd" in link
    ]
