"""A server goes on whatever its forks and its limits do, and ends with its manager."""

import contextlib
import json
import os
import resource
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import pytest
from conftest import SERVER, TIMEOUT

PROGRAM = """
import os, sys
from ensign_warm import main, run, stamps, wire

class Program(run.Run):
    def load(self):
        exec(os.environ["LOAD"])
        return []
    def admit(self, request):
        exec(request.arguments[0])
    def become(self, request):
        exec(request.arguments[1])
        os._exit(0)

stamps._PAUSE = 0
main.Run, main.trial.failing = Program, lambda *_: {}
sys.path.remove(os.environ["SERVER"])
main.run("", "")
"""
SLEEP = "import time; os.write(1, b'.'); time.sleep(600)"


class Server:
    """One that does what requests say."""

    def __init__(self, place: Path, load: str = "", ready: bool = True) -> None:
        os.utime(place, (1, 1))  # As what was there long ago.
        self.control, theirs = socket.socketpair()
        self.control.settimeout(TIMEOUT)
        environment = {"SERVER": str(SERVER), "PYTHONPATH": f"{SERVER}:{place}", "LOAD": load}
        self.process = subprocess.Popen(  # noqa: S603
            [sys.executable, "-c", PROGRAM, "room" * 100],
            env=environment | {"ENSIGN_WARM_ROOM": "." * 4096},
            stdin=theirs.fileno(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        theirs.close()
        if ready:
            assert line(self.control) == "ready"

    def ask(
        self, does: str = "", admit: str = "", directory: str = "/", job: str = "7", cut: int | None = None
    ) -> socket.socket:
        """Have it fork, and return the connection to the fork."""
        ours, theirs = socket.socketpair()
        ours.settimeout(TIMEOUT)
        socket.send_fds(self.control, [b"f"], [theirs.fileno()])
        theirs.close()
        payload = "\0".join([directory, "2", admit, does, f"JOB_ID={job}", "A=b=c", ""]).encode()
        with contextlib.suppress(BrokenPipeError):  # The answer says why.
            ours.sendall((struct.pack("<I", len(payload)) + payload)[:cut])
        return ours

    def run(self, does: str = "", **other: Any) -> tuple[str, str, str]:
        """Return how a run ends, or why it is refused, and what it prints."""
        with self.ask(does, **other) as connection, TemporaryFile() as out, TemporaryFile() as err:
            how = line(connection)
            if how.startswith("ready "):
                socket.send_fds(connection, [b"g"], [out.fileno(), err.fileno()])
                how = line(connection)
            return how, os.pread(out.fileno(), 9999, 0).decode(), os.pread(err.fileno(), 9999, 0).decode()

    def sleeping(self) -> tuple[socket.socket, int]:
        """Start a run that goes on until it is killed, and return its process too."""
        connection, (read, write) = self.ask(SLEEP), os.pipe()
        pid = int(line(connection).removeprefix("ready "))
        socket.send_fds(connection, [b"g"], [write, write])
        os.close(write)
        assert os.read(read, 1) == b"."
        os.close(read)
        return connection, pid

    def tell(self, order: bytes, answer: str) -> None:
        self.control.sendall(order)
        assert line(self.control) == answer

    def close(self) -> None:
        self.control.close()
        self.process.communicate(timeout=TIMEOUT)


def line(connection: socket.socket) -> str:
    said = b""
    with contextlib.suppress(ConnectionResetError):
        while not said.endswith(b"\n") and (part := connection.recv(1)):
            said += part
    return said.decode().rstrip("\n")


def await_that(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + TIMEOUT
    while not condition():
        assert time.monotonic() < deadline


def is_gone(pid: int) -> bool:
    """Report whether a process has ended; nobody may have waited for it."""
    try:
        return ") Z " in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return True


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Server]:
    """A server that the test may end."""
    with contextlib.closing(Server(tmp_path)) as served:
        yield served


@pytest.fixture(scope="module")
def lasting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with contextlib.closing(Server(tmp_path_factory.mktemp("place"))) as served:
        yield served


@pytest.fixture
def tough(lasting: Server) -> Iterator[Server]:
    """A server that gets over what the tests do."""
    yield lasting
    assert lasting.run("print(1, flush=True)") == ("exit 0", "1\n", "")
    lasting.tell(b"p", "alive")
    await_that(lambda: not Path(f"/proc/{lasting.process.pid}/task/{lasting.process.pid}/children").read_text())


def test_ends_when_it_is_outdated_and_no_fork_is_left(own: Server) -> None:
    connection, pid = own.sleeping()
    own.tell(b"rp", "alive")
    os.kill(pid, signal.SIGTERM)
    assert line(connection) == "signal 15"
    assert own.process.wait(TIMEOUT) == 0


def test_ends_at_once_if_there_is_nothing_to_wait_for(own: Server) -> None:
    own.control.sendall(b"r")
    assert own.process.wait(TIMEOUT) == 0


@pytest.mark.parametrize("order", [b"", b"r", b"p"])
def test_ends_with_its_manager_and_ends_its_forks(own: Server, order: bytes) -> None:
    connection, pid = own.sleeping()
    own.control.sendall(order)
    if order == b"p":  # A manager that is killed may leave something unread.
        own.control.recv(1, socket.MSG_PEEK)
    own.control.close()
    assert own.process.wait(TIMEOUT) == 0
    assert line(connection) == ""
    await_that(lambda: is_gone(pid))


REFUSALS = {
    "cold variable TZ": {"admit": "raise wire.Refused('variable TZ')"},
    "cold outdated ansible.cfg": {"admit": "raise wire.Outdated('ansible.cfg')"},
    "cold defect KeyError": {"admit": "{}[1]"},
    "cold working directory": {"directory": "/nowhere"},
    "cold marks": {"job": "7" * 5000},
}


@pytest.mark.parametrize("answer", REFUSALS)
def test_refuses(tough: Server, answer: str) -> None:
    assert tough.run("print(1)", **REFUSALS[answer]) == (answer, "", "")


def test_refuses_when_something_that_it_has_imported_has_changed(own: Server, tmp_path: Path) -> None:
    assert own.run()[0] == "exit 0"
    (tmp_path / "new.py").touch()
    assert own.run()[0] == own.run()[0] == "cold outdated imports"
    own.tell(b"p", "alive")


def test_refuses_when_it_can_not_fork(tmp_path: Path) -> None:
    with contextlib.closing(Server(tmp_path, load="def fork(): raise OSError\nos.fork = fork")) as served:
        assert served.run()[0] == "cold outdated fork"
        served.tell(b"p", "alive")


def test_ends_if_files_change_while_it_imports_them(tmp_path: Path) -> None:
    served = Server(tmp_path, load="open(sys.path[1] + '/new.py', 'w')", ready=False)
    assert served.process.communicate(timeout=TIMEOUT)[1] == "files changed while they were imported\n"
    assert served.process.returncode == 75
    served.control.close()


# None, too few, another word, and nobody any more.
@pytest.mark.parametrize(("go", "outputs"), [(b"g", 0), (b"g", 1), (b"x", 2), (b"", 0)])
def test_a_run_that_may_not_begin_does_not(tough: Server, go: bytes, outputs: int) -> None:
    with TemporaryFile() as out, tough.ask("print(1, flush=True)") as connection:
        assert line(connection).startswith("ready ")
        socket.send_fds(connection, [go], [out.fileno()] * outputs) if go else connection.shutdown(socket.SHUT_WR)
        assert line(connection) == "signal 9"
        assert os.pread(out.fileno(), 9, 0) == b""


@pytest.mark.parametrize("cut", [0, 1, 3, 4, 10, -1])
def test_a_request_that_is_cut_off_is_none(tough: Server, cut: int) -> None:
    with tough.ask("print(1)", cut=cut) as connection:
        connection.shutdown(socket.SHUT_WR)
        assert line(connection) == "exit 0"


ENDS = {"exit 3": "os._exit(3)", "exit 70": "{}[1]", "signal 15": "os.kill(os.getpid(), 15)"}


@pytest.mark.parametrize("how", ENDS)
def test_the_end_of_a_run_is_told(tough: Server, how: str) -> None:
    assert tough.run(ENDS[how])[0] == how


LOOK = """
import ctypes, gc, json, signal
print(json.dumps({
    "directory": os.getcwd(),
    "environment": dict(os.environ),
    "shown": open("/proc/self/environ").read().rstrip("\\0").split("\\0"),
    "descriptors": sorted(set(os.listdir("/proc/self/fd")) - {str(self._voice)})[:-1],
    "input": os.readlink("/proc/self/fd/0"),
    "inherited": [os.get_inheritable(n) for n in (1, 2, self._voice)],
    "leads": os.getsid(0) == os.getpid(),
    "visible": ctypes.CDLL(None).prctl(3, 0, 0, 0, 0),
    "signals": [signal.getsignal(n) == w for n, w in ((17, 0), (15, 0), (2, signal.default_int_handler))],
    "collects": gc.isenabled(),
}), flush=True)
sys.stderr.write("errors")
sys.stderr.flush()
self._tell("async")
"""


def test_a_run_has_nothing_of_the_server_or_another_run(tough: Server) -> None:
    other, pid = tough.sleeping()
    how, out, err = tough.run(LOOK, directory="/usr")
    assert (how, err) == ("exit 0", "errors")
    assert json.loads(out) == {
        "directory": "/usr",
        "environment": {"JOB_ID": "7", "A": "b=c"},
        "shown": ["JOB_ID=7", "A=b=c"],
        "descriptors": ["0", "1", "2"],
        "input": "/dev/null",
        "inherited": [True, True, False],
        "leads": True,
        "visible": 1,
        "signals": [True, True, True],
        "collects": True,
    }
    assert tough.process.stdout is not None
    assert tough.process.stdout.readline() == "module async\n"
    os.kill(pid, signal.SIGKILL)
    assert line(other) == "signal 9"


def test_goes_on_without_a_descriptor(tough: Server) -> None:
    _, hard = resource.prlimit(tough.process.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(tough.process.pid, resource.RLIMIT_NOFILE, (3, hard))
    for _ in range(3):
        assert tough.run()[0] == ""
    tough.tell(b"p", "alive")
    resource.prlimit(tough.process.pid, resource.RLIMIT_NOFILE, (hard, hard))
