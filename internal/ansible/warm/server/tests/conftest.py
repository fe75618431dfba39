"""A server of modules, and a stand-in to talk to it."""

import contextlib
import os
import resource
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

SERVE = Path(__file__).parents[1] / "serve.py"
PATIENCE = 60
_OFTEN_IGNORED = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)  # by who starts tests in the background


@dataclass
class Answer:
    """What came of a program: how it ended, as "exit CODE", and what it printed."""

    how: str
    out: bytes
    err: bytes


class Server:
    """A server for scripts that are run by this interpreter."""

    def __init__(self, directory: Path, extra: dict[bytes, bytes] | None = None) -> None:
        self.socket = directory / "python.sock"
        self.environment = {k: v for k, v in os.environb.items() if not k.startswith(b"PYTEST")} | (extra or {})
        self.complaints = directory / "complaints"
        self._life, self._manager = os.pipe()
        self._closed = False
        self.process = subprocess.Popen(  # noqa: S603
            [sys.executable, str(SERVE), "module", f"socket={self.socket}", f"temporary={directory}"],
            env=self.environment | {b"ENSIGN_WARM_ROOM": b"." * 65536},
            stdin=self._life,
            stdout=subprocess.PIPE,
            stderr=self.complaints.open("ab"),
            text=True,
        )
        self.await_line("ready")

    def await_line(self, wanted: str) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith(wanted):
                return
        raise AssertionError(f"the server ended before it said {wanted!r}")

    def connect(self) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(str(self.socket))
        connection.settimeout(PATIENCE)
        return connection

    def run(
        self, *arguments: str, stdin: bytes = b"", extra: dict[bytes, bytes] | None = None, directory: str = "/"
    ) -> Answer:
        """Run a program warm, or say why it is refused."""
        with contextlib.ExitStack() as files:
            inputs, outputs, errors = (
                files.enter_context(open(os.memfd_create(n), "w+b")) for n in ("in", "out", "err")
            )
            inputs.write(stdin)
            inputs.seek(0)
            connection = files.enter_context(self.connect())
            ask(connection, arguments, self.environment | (extra or {}), directory)
            how = line_of(connection)
            if how.startswith("ready "):
                socket.send_fds(connection, [b"g"], [inputs.fileno(), outputs.fileno(), errors.fileno()])
                how = line_of(connection)
            outputs.seek(0)
            errors.seek(0)
            return Answer(how, outputs.read(), errors.read())

    def run_cold(
        self, *arguments: str, stdin: bytes = b"", extra: dict[bytes, bytes] | None = None, directory: str = "/"
    ) -> Answer:
        done = subprocess.run(  # noqa: S603
            [sys.executable, *arguments],
            input=stdin,
            env=self.environment | (extra or {}),
            cwd=directory,
            capture_output=True,
            check=False,
        )
        how = f"exit {done.returncode}" if done.returncode >= 0 else f"signal {-done.returncode}"
        return Answer(how, done.stdout, done.stderr)

    def tell(self, order: bytes) -> None:
        """Say what a manager says."""
        os.write(self._manager, order)

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        os.close(self._manager)
        self.process.wait(PATIENCE)
        os.close(self._life)


def ask(
    connection: socket.socket,
    arguments: tuple[str, ...],
    environment: dict[bytes, bytes],
    directory: str,
    limited: list[tuple[int, int]] | None = None,
) -> None:
    limits = " ".join(f"{a % (1 << 64)}:{b % (1 << 64)}" for a, b in limited or map(resource.getrlimit, range(16)))
    ignored = " ".join(str(int(s)) for s in _OFTEN_IGNORED if signal.getsignal(s) is signal.SIG_IGN)
    fields = [b"2", b"18", directory.encode(), ignored.encode(), limits.encode(), b"1", str(len(arguments)).encode()]
    fields += [a.encode() for a in arguments] + [k + b"=" + v for k, v in environment.items()]
    payload = b"".join(field + b"\0" for field in fields)
    with contextlib.suppress(BrokenPipeError):  # Why it does not read on is in its answer.
        connection.sendall(struct.pack("<I", len(payload)) + payload)


def line_of(connection: socket.socket) -> str:
    line = b""
    while not line.endswith(b"\n"):
        part = connection.recv(1)
        if not part:
            return "lost"
        line += part
    return line.decode().strip()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    served = Server(tmp_path_factory.mktemp("s"))
    yield served
    served.close()
