"""Payloads of modules that earlier runs have needed.

Ansible puts a module and what it imports into a zip file, in each run anew: 0.15 s for
one of kubernetes.core. A fork tells the server which payload it lacked; the server
has a process of its own build it (building.py), and later forks find it where Ansible
keeps those of a run. It is used only as long as every file and directory that was
looked at while it was built is the same, and would be looked at again.
"""

import contextlib
import importlib
import json
import marshal
import os
import select
import signal
import sys
import time
from types import FrameType
from typing import Any, NamedTuple

from ensign_warm import building

_MOST = 32 << 20  # bytes of payloads that are kept
_LONGEST = 64 << 10  # of a note
_PATIENCE = 5  # seconds for a payload to be built
_LOUD = 3  # the verbosity from which on Ansible tells what it builds a payload of


class Payload(NamedTuple):
    """A payload as Ansible stores it, and what it was made of."""

    content: bytes  # none if it has to be built each time
    seen: tuple[tuple[str, building.Stamp], ...]

    def holds(self) -> bool:
        return all(building.stamp(path) == stamp for path, stamp in self.seen)


class Payloads:
    """Payloads by what they depend on besides files."""

    def __init__(self) -> None:
        self._known: dict[building.Wanted, Payload] = {}
        self._wanted: list[building.Wanted] = []
        self._notes = os.memfd_create("payloads")
        self._place, self._inode = f"/proc/{os.getpid()}/fd/{self._notes}", os.fstat(self._notes).st_ino

    def hear(self) -> bool:
        """Take the notes that forks have left; tell whether there is something to learn."""
        size = os.fstat(self._notes).st_size
        if size:
            notes = os.pread(self._notes, size, 0)
            os.ftruncate(self._notes, 0)
            self._wanted += [w for w in map(building.parse, set(notes.splitlines())) if w is not None]
        return bool(self._wanted)

    def learn(self) -> bool:
        """Have one payload built; tell whether there is another one."""
        wanted = self._wanted.pop()
        known = self._known.pop(wanted, None)
        if known is None or not known.holds():
            built = _built(wanted)
            known = Payload(*built) if built is not None else None
        if known is not None:
            self._known[wanted] = known
        while sum(len(known.content) for known in self._known.values()) > _MOST:
            del self._known[next(iter(self._known))]
        return bool(self._wanted)

    def leave_server(self) -> None:
        """Give up in a fork what is the server's."""
        os.close(self._notes)

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
        notes = os.open(self._place, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        if len(note) <= _LONGEST and os.fstat(notes).st_ino == self._inode:
            os.write(notes, note)
        os.close(notes)


def _built(wanted: building.Wanted) -> building.Built | None:
    """Have another process build a payload; None if it came to nothing."""
    reading, writing = os.pipe2(os.O_CLOEXEC)
    try:
        pid = os.fork()
    except OSError:
        pid = -1
    if pid == 0:
        with contextlib.suppress(BaseException):
            signal.alarm(_PATIENCE)
            with os.fdopen(writing, "wb") as pipe:
                pipe.write(marshal.dumps(building.build(wanted)))
        os._exit(0)
    os.close(writing)
    answer = _read(reading)
    os.close(reading)
    if pid > 0:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    try:
        found: building.Built | None = marshal.loads(answer)  # noqa: S302
        return found
    except (EOFError, ValueError, TypeError):
        return None


def _read(descriptor: int) -> bytes:
    parts: list[bytes] = []
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    end = time.monotonic() + _PATIENCE
    while poll.poll(max(0, int((end - time.monotonic()) * 1000))):
        part = os.read(descriptor, 1 << 20)
        if not part:
            return b"".join(parts)
        parts.append(part)
    return b""
