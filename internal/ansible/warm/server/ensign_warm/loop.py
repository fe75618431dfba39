"""The server's own work: it forks, reaps, and tells the manager."""

import contextlib
import os
import select
import signal
import socket
from collections.abc import Callable
from typing import NoReturn

from ensign_warm import process, wire

_CONTROL = 0  # the descriptor of the socket to the manager


class Loop:
    """Serves the manager until it is gone. There is one thread, so that forks are sound."""

    def __init__(self, changed: Callable[[], bool]) -> None:
        """Take what reports whether something that was imported has changed."""
        self._changed = changed
        self._control = socket.socket(fileno=_CONTROL)
        self._connections: dict[int, socket.socket] = {}  # by the fork's pid
        self._retired = False
        self._woken, self._wake = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)

    def next(self) -> socket.socket:
        """Return in each fork only: its connection to the manager."""
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        poll = select.poll()
        poll.register(_CONTROL, select.POLLIN)
        poll.register(self._woken, select.POLLIN)
        self.say("ready")
        while True:
            for descriptor, _ in poll.poll():
                if descriptor == self._woken:
                    self._reap()
                elif connection := self._obey():
                    return connection

    def say(self, line: str) -> None:
        with contextlib.suppress(OSError):  # It is gone, which the next look shows.
            wire.answer(self._control, line)

    def _obey(self) -> socket.socket | None:
        order, descriptors = b"", list[int]()
        with contextlib.suppress(ConnectionResetError):  # The manager is gone, and has not read all that it was told.
            order, descriptors, _, _ = socket.recv_fds(self._control, 1, 1)
        if not order:
            self._end()
        elif order == wire.ANSWER:
            self.say("alive")
        elif order == wire.RETIRE:
            self._retired = True
            self._leave()
        for descriptor in descriptors:  # One that could not be taken is closed, and the run is cold.
            return self._fork(socket.socket(fileno=descriptor))
        return None

    def _fork(self, connection: socket.socket) -> socket.socket | None:
        if self._changed():
            refuse(connection, wire.Outdated("imports"))
            return None
        try:
            pid = os.fork()
        except OSError:
            # Another server may have the processes that this one lacks.
            refuse(connection, wire.Outdated("fork"))
            return None
        if pid == 0:
            self._leave_server()
            return connection
        self._connections[pid] = connection
        return None

    def _leave_server(self) -> None:
        """Give up in a fork all that is the server's."""
        process.show(True)  # The marks of its run stand in the environment.
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        for connection in self._connections.values():
            connection.close()
        self._control.detach()
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, _CONTROL)
        for descriptor in (null, self._woken, self._wake):
            os.close(descriptor)

    def _reap(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self._woken, 4096)
        while self._connections:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            connection = self._connections.pop(pid)
            code = os.waitstatus_to_exitcode(status)
            with contextlib.suppress(OSError):
                wire.answer(connection, f"signal {-code}" if code < 0 else f"exit {code}")
            connection.close()
        self._leave()

    def _leave(self) -> None:
        if self._retired and not self._connections:
            os._exit(0)

    def _end(self) -> NoReturn:
        for pid in self._connections:
            with contextlib.suppress(OSError):
                os.killpg(pid, signal.SIGKILL)
        os._exit(0)


def refuse(connection: socket.socket, error: Exception) -> None:
    """Tell the manager why the run is to be started in a new interpreter."""
    reason = str(error) if isinstance(error, wire.Refused) else f"defect {type(error).__name__}"
    with contextlib.suppress(OSError):
        wire.answer(connection, f"cold {'outdated ' if isinstance(error, wire.Outdated) else ''}{reason}")
    connection.close()
