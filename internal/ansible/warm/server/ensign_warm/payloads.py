"""Payloads of modules that earlier runs have needed.

Ansible puts a module and what it imports into a zip file, in each run anew: 0.15 s for
one of kubernetes.core. A fork tells the server which payload it lacked; the server has
a process of its own build it (building.py) while it goes on itself, and later forks find
it where Ansible keeps those of a run. It is used only as long as every file and directory
that was looked at while it was built is the same, and would be looked at again.
"""

import contextlib
import importlib
import json
import marshal
import os
import resource
import select
import signal
import sys
from types import FrameType
from typing import Any, NamedTuple

from ensign_warm import building
from ensign_warm.notes import Notes

_MOST = 32 << 20  # bytes of payloads that are kept
_LONGEST = 64 << 10  # of a note
_PATIENCE = 10  # seconds for a payload to be built
_STDIO = 3
_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG
_MOMENT = 20  # milliseconds that a stand-in may have to wait for the server
_LOUD = 3  # the verbosity from which on Ansible tells what it builds a payload of


class Payload(NamedTuple):
    """A payload as Ansible stores it, and what it was made of."""

    content: bytes  # none if it has to be built each time
    seen: tuple[tuple[str, building.Stamp], ...]

    def holds(self) -> bool:
        return all(building.stamp(path) == stamp for path, stamp in self.seen)


class Payloads:
    """Payloads by what they depend on besides files."""

    def __init__(self, directory: str) -> None:
        self._known: dict[building.Wanted, Payload] = {}
        self._wanted: list[building.Wanted] = []
        self._builder: Builder | None = None
        self._notes = Notes(os.path.join(directory, "payloads"))

    def hear(self) -> bool:
        """Take the notes that forks have left; tell whether there is something to learn."""
        self._wanted += [w for w in map(building.parse, set(self._notes.take().splitlines())) if w is not None]
        return self._busy()

    def learn(self) -> bool:
        """Have payloads built, one after the other; tell whether there is more to be done."""
        if self._builder is None:
            wanted = self._wanted.pop()
            known = self._known.get(wanted)
            if known is None or not known.holds():
                with contextlib.suppress(OSError):  # It comes to nothing, this time.
                    self._builder = Builder(wanted)
        elif self._builder.ended():
            self._keep(self._builder.wanted, self._builder.take())
            self._builder = None
        return self._busy()

    def _busy(self) -> bool:
        return self._builder is not None or bool(self._wanted)

    def _keep(self, wanted: building.Wanted, payload: Payload | None) -> None:
        self._known.pop(wanted, None)
        if payload is not None:
            self._known[wanted] = payload
        while sum(len(known.content) for known in self._known.values()) > _MOST:
            del self._known[next(iter(self._known))]

    def leave_server(self) -> None:
        """Give up in a fork what is the server's."""
        self._notes.leave_server()
        if self._builder is not None:
            self._builder.close()

    def use(self) -> None:
        """Have Ansible find payloads when it is about to look for them; called in a fork."""
        constants = importlib.import_module("ansible.constants")
        display = importlib.import_module("ansible.utils.display").Display()
        try:
            builder = importlib.import_module("ansible._internal._ansiballz._builder")
            original = builder.ExtensionManager.create
        except (ImportError, AttributeError):
            return  # Another version of Ansible.

        def create(task_vars: dict[str, object]) -> Any:
            manager = original(task_vars=task_vars)
            if not manager.extension_names and display.verbosity < _LOUD and not constants.DEFAULT_DEBUG:
                with contextlib.suppress(Exception):  # Ansible builds it, then.
                    self._provide(sys._getframe(1), constants.DEFAULT_LOCAL_TMP)
            return manager

        builder.ExtensionManager.create = create

    def _provide(self, frame: FrameType, temporary: str) -> None:
        """Put the payload where it is looked for next by the function of this frame."""
        of = frame.f_locals
        wanted = building.wanted(
            of["module_name"], of["remote_module_fqn"], of["module_path"], of["module_compression"]
        )
        place = os.path.join(temporary, "ansiballz_cache", f"{wanted.fqn}-{wanted.compression}-none")
        if os.path.exists(place):
            return
        known = self._known.get(wanted)
        if known is None or not known.holds():
            self._note(wanted)
            return
        if not known.content:
            return
        os.makedirs(os.path.dirname(place), exist_ok=True)
        part = f"{place}-{os.getpid()}"
        with open(part, "wb") as file:
            file.write(known.content)
        os.rename(part, place)

    def _note(self, wanted: building.Wanted) -> None:
        note = json.dumps(wanted).encode() + b"\n"
        if len(note) <= _LONGEST:
            self._notes.leave(note)


class Builder:
    """A process that builds a payload, and its answer as it comes."""

    def __init__(self, wanted: building.Wanted) -> None:
        self.wanted = wanted
        self.reading, writing = os.pipe2(os.O_CLOEXEC)
        server = os.getpid()
        try:
            self._pid = os.fork()
        except OSError:
            os.close(self.reading)
            raise
        finally:
            if os.getpid() == server:
                os.close(writing)
        if self._pid == 0:
            with contextlib.suppress(BaseException):
                _leave(server, writing)
                with os.fdopen(writing, "wb") as pipe:
                    pipe.write(marshal.dumps(building.build(wanted)))
            os._exit(0)
        try:
            # Not its number: the server's loop reaps what has ended, and another may get that then.
            self.handle = os.pidfd_open(self._pid)
        except OSError:
            os.close(self.reading)  # It ends when it can't answer.
            raise
        self._answer = b""
        self._poll = select.poll()
        self._poll.register(self.reading, select.POLLIN)

    def ended(self) -> bool:
        """Wait a moment for its end, which an alarm sees to."""
        if not self._poll.poll(_MOMENT):
            return False
        part = os.read(self.reading, 1 << 20)
        self._answer += part
        return not part

    def close(self) -> None:
        for descriptor in (self.reading, self.handle):
            os.close(descriptor)

    def take(self) -> Payload | None:
        """Return what has come of it, after its end."""
        with contextlib.suppress(ChildProcessError):  # It has been reaped.
            os.waitid(os.P_PIDFD, self.handle, os.WEXITED)
        self.close()
        try:
            built = marshal.loads(self._answer)  # noqa: S302
        except (EOFError, ValueError, TypeError):
            return None
        return Payload(*built) if built is not None else None


def _leave(server: int, writing: int) -> None:
    """Give up what is the server's, and end with it, or when it takes too long."""
    signal.alarm(_PATIENCE)
    os.closerange(_STDIO, writing)
    os.closerange(writing + 1, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    importlib.import_module("ctypes").CDLL(None).prctl(_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != server:
        os._exit(0)
