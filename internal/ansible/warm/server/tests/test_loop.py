"""A server goes on whatever its stand-ins and its limits do, and ends with its manager."""

import contextlib
import os
import resource
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import PATIENCE, Server, ask, line_of
from ensign_warm.wire import PING

Served = Iterator[Server]


@pytest.fixture
def own(tmp_path: Path) -> Served:
    """A server that the test may end."""
    served = Server(tmp_path)
    yield served
    served.close()


@pytest.fixture(scope="module")
def lasting(tmp_path_factory: pytest.TempPathFactory) -> Served:
    served = Server(tmp_path_factory.mktemp("s"))
    yield served
    served.close()


@pytest.fixture
def tough(lasting: Server) -> Server:
    """A server that gets over what the tests do, and has nothing to complain of yet."""
    assert works(lasting)
    os.truncate(lasting.complaints, 0)
    return lasting


def descriptors(server: Server) -> int:
    return len(os.listdir(f"/proc/{server.process.pid}/fd"))


def forks(server: Server) -> list[int]:
    pid = server.process.pid
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def sleeping(server: Server, directory: Path) -> socket.socket:
    """Return the connection of a program that runs until it is killed."""
    script = directory / "AnsiballZ_sleep.py"
    script.write_text("import os, time\nos.write(1, b'begun')\ntime.sleep(600)\n")
    connection = server.connect()
    ask(connection, (str(script),), server.environment, "/")
    assert line_of(connection).startswith("ready ")
    read, write = os.pipe()
    socket.send_fds(connection, [b"g"], [write] * 3)
    os.close(write)
    assert os.read(read, 5) == b"begun"
    os.close(read)
    return connection


def await_that(condition: object) -> None:
    assert callable(condition)
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline


def works(server: Server) -> bool:
    return server.run(stdin=b"print(1)").out == b"1\n"


def rests(server: Server) -> bool:
    """Tell whether it works and has closed what the program's end was told by: it answers its manager afterwards."""
    worked = works(server)
    server.tell(b"p")
    server.await_line("alive")
    return worked


def test_says_that_it_works(tough: Server) -> None:
    tough.tell(b"p")
    tough.await_line("alive")


def test_ends_at_once_if_there_is_nothing_to_wait_for(own: Server) -> None:
    own.tell(b"r")
    assert own.process.wait(PATIENCE) == 0


def test_waits_for_its_forks(own: Server, tmp_path: Path) -> None:
    connection = sleeping(own, tmp_path)
    own.tell(b"rp")
    own.await_line("alive")
    assert own.process.poll() is None
    os.kill(forks(own)[0], signal.SIGTERM)
    assert line_of(connection) == "signal 15"
    assert own.process.wait(PATIENCE) == 0


@pytest.mark.parametrize("order", [b"", b"r"])
def test_ends_with_its_manager_and_ends_its_forks(own: Server, tmp_path: Path, order: bytes) -> None:
    connection = sleeping(own, tmp_path)
    (fork,) = forks(own)
    own.tell(order)
    own.close()
    assert line_of(connection) == "lost"
    await_that(lambda: not os.path.exists(f"/proc/{fork}"))


def test_ends_what_it_may_not_signal_without_ending_itself(tough: Server, tmp_path: Path) -> None:
    connection = sleeping(tough, tmp_path)
    (fork,) = forks(tough)
    os.kill(fork, signal.SIGKILL)
    connection.close()
    assert works(tough)


def test_refuses_without_a_descriptor(tough: Server) -> None:
    pid = tough.process.pid
    _, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    assert rests(tough)
    most = max(int(number) for number in os.listdir(f"/proc/{pid}/fd"))
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (most + 1, hard))
    for _ in range(3):
        assert tough.run(stdin=b"print(1)").how == "cold descriptors"
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (hard, hard))
    assert works(tough)


def test_does_not_spin_when_it_can_not_even_refuse(tough: Server) -> None:
    _, hard = resource.prlimit(tough.process.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(tough.process.pid, resource.RLIMIT_NOFILE, (4, hard))
    with tough.connect():
        ticks = spent(tough)
        time.sleep(1)
        assert spent(tough) - ticks < os.sysconf("SC_CLK_TCK") / 2
    resource.prlimit(tough.process.pid, resource.RLIMIT_NOFILE, (hard, hard))
    assert works(tough)


def spent(server: Server) -> int:
    """Return the processor time of the server."""
    fields = Path(f"/proc/{server.process.pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def test_refuses_a_program_that_may_not_have_descriptors(tough: Server) -> None:
    limits = [resource.getrlimit(number) for number in range(16)]
    limits[resource.RLIMIT_NOFILE] = (4, limits[resource.RLIMIT_NOFILE][1])
    connection = tough.connect()
    ask(connection, (), tough.environment, "/", limits)
    assert line_of(connection).startswith("cold ")
    connection.close()
    assert works(tough)


def test_survives_that_it_has_no_memory(tough: Server) -> None:
    _, hard = resource.prlimit(tough.process.pid, resource.RLIMIT_AS)
    resource.prlimit(tough.process.pid, resource.RLIMIT_AS, (1, hard))
    # It may have what it needs, and a fork has the limits of its stand-in.
    answers = {tough.run(stdin=b"print(1)").how for _ in range(5)}
    assert answers <= {"exit 0", "cold fork", "cold defect MemoryError"}
    resource.prlimit(tough.process.pid, resource.RLIMIT_AS, (hard, hard))
    assert works(tough)


def test_tells_its_manager_that_it_has_no_memory(tough: Server) -> None:
    _, hard = resource.prlimit(tough.process.pid, resource.RLIMIT_AS)
    resource.prlimit(tough.process.pid, resource.RLIMIT_AS, (1, hard))
    assert pinged(tough) == "cold defect MemoryError"
    resource.prlimit(tough.process.pid, resource.RLIMIT_AS, (hard, hard))
    assert pinged(tough) == "cold ping"


def pinged(server: Server) -> str:
    with server.connect() as connection:
        connection.sendall(PING)
        return line_of(connection)


def test_a_slow_standin_holds_nobody(tough: Server) -> None:
    with tough.connect() as slow, tough.connect() as silent, tough.connect() as large:
        slow.sendall(b"\x01")
        large.sendall(struct.pack("<I", 16 << 20) + b"x" * 1000)
        assert works(tough)
        assert silent.fileno() >= 0


def test_a_flood_of_connections_passes(tough: Server) -> None:
    assert rests(tough)
    before = descriptors(tough)
    with contextlib.ExitStack() as flood:
        for _ in range(400):
            flood.enter_context(tough.connect())
        assert works(tough)
    await_that(lambda: not forks(tough) and descriptors(tough) == before)
    assert works(tough)


@pytest.mark.parametrize("when", ["at once", "when it is ready"])
def test_nothing_is_said_of_a_standin_that_is_gone(tough: Server, when: str) -> None:
    for _ in range(5):
        with tough.connect() as connection:
            ask(connection, (), tough.environment, "/")
            if when == "when it is ready":
                line_of(connection)
    await_that(lambda: not forks(tough))
    assert works(tough)
    assert tough.complaints.read_bytes() == b""


# A connection that is closed with something to read is reset, which is another error.
def test_nothing_is_said_of_a_standin_that_did_not_listen(tough: Server) -> None:
    for _ in range(5):
        connection = tough.connect()
        ask(connection, (), tough.environment, "/")
        await_that(lambda: forks(tough))
        connection.recv(1, socket.MSG_PEEK)
        connection.close()
    await_that(lambda: not forks(tough))
    assert tough.complaints.read_bytes() == b""


@pytest.mark.parametrize("cut", [0, 1, 3, 4, 5, 100, -1])
def test_a_request_that_is_cut_off_is_none(tough: Server, cut: int) -> None:
    ours, theirs = socket.socketpair()
    ask(theirs, (), tough.environment, "/")
    whole = ours.recv(1 << 20)
    with tough.connect() as connection:
        connection.sendall(whole[:cut])
        connection.shutdown(socket.SHUT_WR)
        assert line_of(connection) in ("cold request", "signal 9")
    assert works(tough)
    assert tough.complaints.read_bytes() == b""


def test_a_request_may_come_byte_by_byte(tough: Server) -> None:
    ours, theirs = socket.socketpair()
    ask(theirs, (), tough.environment, "/")
    with tough.connect() as connection:
        for byte in ours.recv(1 << 20):
            connection.sendall(bytes((byte,)))
        assert line_of(connection).startswith("ready ")


def test_what_a_variable_is_called_is_no_line(tough: Server) -> None:
    assert tough.run(extra={b"PYTHON\nready\xff": b"1"}).how == "cold variable PYTHON\\nready\\udcff"
    assert len(tough.run(extra={b"PYTHON" + b"X" * 100_000: b"1"}).how) < 300
    assert works(tough)


def test_nobody_else_may_connect(tough: Server) -> None:
    assert tough.socket.stat().st_mode & 0o777 == 0o600


def test_another_user_is_refused(tough: Server) -> None:
    if os.geteuid() != 0:
        return  # Who can't be somebody else has nobody to play.
    tough.socket.chmod(0o666)
    client = (
        "import socket, os, sys; c = socket.socket(fileno=int(sys.argv[1])); os.setgid(65534); os.setuid(65534);"
        "c.connect(sys.argv[2]); print(c.recv(100).decode())"
    )
    for place in tough.socket.parents:
        if str(place).startswith("/tmp/"):  # noqa: S108
            place.chmod(0o755)
    with socket.socket(socket.AF_UNIX) as theirs:
        done = subprocess.run(  # noqa: S603
            [sys.executable, "-c", client, str(theirs.fileno()), str(tough.socket)],
            capture_output=True,
            check=True,
            pass_fds=[theirs.fileno()],
        )
    tough.socket.chmod(0o600)
    assert done.stdout.splitlines()[0] == b"cold user", "what comes next tells that the fork has ended"


def test_a_server_keeps_nothing_of_a_run(tough: Server) -> None:
    # Put together here, so that the script does not have it.
    halves = b"a canary", b" of a run"
    canary = b"".join(halves)
    assert tough.run(extra={b"KUBECONFIG": canary, b"OURS": canary, b"JOB_ID": canary}, stdin=b"print(1)").out == b"1\n"
    assert tough.run(stdin=b"x = %r" % canary).how == "exit 0"
    pid = tough.process.pid
    assert canary not in Path(f"/proc/{pid}/environ").read_bytes()
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps, open(f"/proc/{pid}/mem", "rb") as memory:
        for line in maps:
            area, rights, *_, name = f"{line.rstrip()} -".split(maxsplit=6)
            if not rights.startswith("rw") or name.startswith("[v"):
                continue
            start, end = (int(part, 16) for part in area.split("-"))
            memory.seek(start)
            assert canary not in memory.read(end - start), line
    script = b"import os; print(os.environ.get('OURS'), open('/proc/self/environ').read().count('canary'))"
    assert tough.run(stdin=script).out == b"None 0\n"
