"""The server's own work: it accepts, forks, reaps, and ends what lost its stand-in."""

import contextlib
import errno
import os
import select
import signal
import socket
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn, Protocol

from ensign_warm import holes, process, wire

_PATIENCE = 5.0  # seconds for a stand-in to say what it wants
_MANAGER = 0  # the descriptor of a pipe that the manager holds
_BREATH = 0.02  # seconds until a connection is tried again that can't even be refused
_RETIRE = b"r"  # what it says there: to end when no fork is left
_ASK = b"p"  # and: to say that this works


class Lessons(Protocol):
    """What the server learns from its forks, when it has nothing else to do."""

    def hear(self) -> bool:
        """Take what forks have left that have ended; tell whether there is something to learn."""

    def learn(self) -> bool:
        """Learn a little; tell whether there is more."""

    def leave_server(self) -> None:
        """Give up in a fork what is the server's."""


class Outlook(Protocol):
    """What a fork has to know of the world outside."""

    def look(self) -> None:
        """Find it out; called before a fork is made for who has asked for one."""

    def leave_server(self) -> None:
        """Give up in a fork what is the server's."""


@dataclass(frozen=True)
class Manager:
    """What is not the loop's own."""

    renew: Callable[[], None]  # starts anew in this process
    say: Callable[[str], None]  # tells the manager


class Loop:
    """Serves stand-ins until the manager is gone. There is one thread, so that forks are sound."""

    def __init__(
        self,
        listener: socket.socket,
        manager: Manager,
        lessons: Lessons | None,
        outlook: Outlook,
    ) -> None:
        self._listener = listener
        self._renew, self._say = manager.renew, manager.say
        self._lessons, self._outlook = lessons, outlook
        self._learning = False
        self._poll = select.poll()
        self._connections: dict[int, socket.socket] = {}  # by descriptor
        self._forks: dict[int, int] = {}  # pid by descriptor
        self._retired = False
        self._outdated = False  # as forks have found
        self._news, self._tell_news = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._woken, self._wake = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._spare = os.dup(_MANAGER)  # for a connection when there are no more

    def next(self) -> tuple[socket.socket, Callable[[bool], None]]:
        """Return in each fork only: its connection, and what it says whether the server is outdated by."""
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        for descriptor in (self._listener.fileno(), self._woken):
            self._poll.register(descriptor, select.POLLIN)
        self._poll.register(_MANAGER, select.POLLIN)
        while True:
            for descriptor, _ in self._wait():
                connection = self._turn(descriptor)
                if connection is not None:
                    return connection, self._judge

    def _wait(self) -> list[tuple[int, int]]:
        """Return what has happened; learn as long as nothing does."""
        while self._lessons is not None and self._learning:
            if happened := self._poll.poll(0):
                return happened
            self._learning = self._lessons.learn()
            if not self._learning:
                holes.trim()  # What it took to learn is not needed any more.
        return self._poll.poll()

    def _turn(self, descriptor: int) -> socket.socket | None:
        if descriptor == _MANAGER:
            self._hear()
        if descriptor == self._woken:
            self._reap()
        elif descriptor == self._listener.fileno():
            return self._accept()
        elif descriptor in self._connections:
            self._kill(descriptor)
        return None

    def _hear(self) -> None:
        """Take what the manager says, or its end."""
        order = os.read(_MANAGER, 1)
        if not order:
            self._end()
        elif order == _ASK:
            self._say("alive")
        elif order == _RETIRE:
            self._retired = True
            self._reap()

    def _accept(self) -> socket.socket | None:
        try:
            connection = self._listener.accept()[0]
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE):
                self._accept_without_descriptor()
            return None
        self._outlook.look()
        try:
            pid = os.fork()
        except OSError:
            self._refuse(connection, "fork")
            return None
        if pid == 0:
            self._leave_server()
            connection.settimeout(_PATIENCE)
            return connection
        number = connection.fileno()
        self._connections[number], self._forks[number] = connection, pid
        self._poll.register(number, select.POLLRDHUP)
        return None

    def _accept_without_descriptor(self) -> None:
        """Refuse a connection, which would be waiting in vain, and be reported without end."""
        spare, self._spare = self._spare, -1
        try:
            os.close(spare)
            self._refuse(self._listener.accept()[0], "descriptors")
        except OSError:
            time.sleep(_BREATH)
        with contextlib.suppress(OSError):
            self._spare = os.dup(_MANAGER)

    def _refuse(self, connection: socket.socket, reason: str) -> None:
        self._say(f"cold {reason}")
        self._send(connection, f"cold {reason}\n")
        connection.close()

    def _leave_server(self) -> None:
        """Give up in a fork all that is the server's."""
        process.show()
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        for connection in self._connections.values():
            connection.close()
        self._listener.close()
        for descriptor in (self._spare, self._woken, self._wake, self._news):
            with contextlib.suppress(OSError):
                os.close(descriptor)
        self._outlook.leave_server()
        if self._lessons is not None:
            self._lessons.leave_server()

    def _judge(self, outdated: bool) -> None:
        """Say in a fork, once, whether the server has to start anew."""
        if outdated:
            with contextlib.suppress(OSError):
                os.write(self._tell_news, b".")
        os.close(self._tell_news)

    def _kill(self, number: int) -> None:
        """End a fork whose stand-in is gone, as if it had been that."""
        self._poll.unregister(number)
        for kill in (os.killpg, os.kill):
            with contextlib.suppress(OSError):  # It may be gone, or another user's by now.
                kill(self._forks[number], signal.SIGKILL)

    def _reap(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self._woken, 4096)
        while self._forks:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                break
            if pid == 0:
                break
            self._tell(pid, status)
        self._learning = self._lessons is not None and self._lessons.hear()
        self._follow()

    def _tell(self, pid: int, status: int) -> None:
        number = next((n for n, p in self._forks.items() if p == pid), None)
        if number is None:
            return
        how = f"signal {os.WTERMSIG(status)}\n" if os.WIFSIGNALED(status) else f"exit {os.WEXITSTATUS(status)}\n"
        connection = self._connections.pop(number)
        del self._forks[number]
        with contextlib.suppress(KeyError):
            self._poll.unregister(number)
        self._send(connection, how)
        connection.close()

    def _send(self, connection: socket.socket, line: str) -> None:
        with contextlib.suppress(OSError):
            connection.send(line.encode(), socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)

    def _follow(self) -> None:
        """End or start anew, if that is due, when no fork is left that would lose this server."""
        if self._retired and not self._forks:
            os._exit(0)
        with contextlib.suppress(BlockingIOError):
            self._outdated = bool(os.read(self._news, 4096)) or self._outdated
        if self._outdated and not self._forks:
            self._renew()

    def _end(self) -> NoReturn:
        for pid in self._forks.values():
            with contextlib.suppress(OSError):
                os.killpg(pid, signal.SIGKILL)
        os._exit(0)


def peer_of(connection: socket.socket) -> int:
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return int(struct.unpack("3i", credentials)[0])


def await_go(connection: socket.socket) -> list[int]:
    """Return the program's descriptors when the stand-in says that it may begin; end when it will not."""
    with contextlib.suppress(OSError):  # It is gone, and starts the real program or does not.
        connection.sendall(f"ready {os.getpid()}\n".encode())
        said, descriptors, _, _ = socket.recv_fds(connection, 1, wire.STDIO)
        if said == wire.GO and len(descriptors) == wire.STDIO:
            return descriptors
    # Never an exit code, which would be the program's.
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError
