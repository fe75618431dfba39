"""Tells that nothing has happened to files since they were looked at, without looking again.

The kernel tells of each write to a file, and of each change of the directories on the
way to it, before the program that does it goes on (inotify). Where nothing was told,
a look would find the same. Only a write through a mapping into memory is not told of,
and what another machine does with a file system that it shares: such ones are not
trusted, and are looked at each time.
"""

import contextlib
import ctypes
import os
import select
from collections.abc import Iterable

from ensign_warm.stamps import Stamps

_MODIFY, _ATTRIB, _MOVED_FROM, _MOVED_TO = 0x2, 0x4, 0x40, 0x80
_CREATE, _DELETE, _DELETE_SELF, _MOVE_SELF = 0x100, 0x200, 0x400, 0x800
_OF_FILE = _MODIFY | _ATTRIB | _DELETE_SELF | _MOVE_SELF
_OF_DIRECTORY = _ATTRIB | _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE | _DELETE_SELF | _MOVE_SELF
# ext, XFS, Btrfs, F2FS, tmpfs, overlayfs, the ROM of an image: as statfs calls them.
_TRUSTED = {0xEF53, 0x58465342, 0x9123683E, 0xF2F52010, 0x01021994, 0x794C7630, 0x73717368, 0xE0F5E1E2}
_ROOM = 256  # bytes, more than statfs writes; the first eight are the kind
_EVENTS = 64 << 10  # bytes that are read at once
_MOUNTS = "/proc/self/mountinfo"
_LIMIT = "/proc/sys/fs/inotify/max_user_watches"
_PART = 32  # of the limit, which all containers of a node may have in common, is what a server takes


class Watched:
    """Stamps that are compared only when something may have changed."""

    def __init__(self, stamps: Stamps) -> None:
        self._stamps = stamps
        self._poll: select.poll | None = None
        self._events = self._mounts = -1
        self._hold: bool | None = None
        places = stamps.places()
        self._missing = [place for place in places if not os.path.lexists(place)]
        with contextlib.suppress(OSError, AttributeError, RecursionError):
            self._watch(places)
        if self._poll is None:
            self.leave_server()

    def look(self) -> None:
        """Find out, in the server, what a fork that is made next has to know."""
        if self._poll is None or self._hold is False:
            return
        if self._hold is None or self._told():
            self._hold = self._stamps.hold() if self._follow(self._missing) else None

    def hold(self) -> bool:
        """Tell, in a fork, whether all was as it had been at the last look."""
        return self._stamps.hold() if self._hold is None else self._hold

    def leave_server(self) -> None:
        """Give up in a fork what is the server's."""
        for descriptor in (self._events, self._mounts):
            if descriptor >= 0:
                os.close(descriptor)
        self._events = self._mounts = -1
        self._poll = None

    def _watch(self, places: Iterable[str]) -> None:
        self._library = ctypes.CDLL(None, use_errno=True)
        self._events = self._library.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
        self._mounts = os.open(_MOUNTS, os.O_RDONLY | os.O_CLOEXEC)
        self._poll = select.poll()
        self._poll.register(self._events, select.POLLIN)
        self._poll.register(self._mounts, select.POLLPRI)
        if self._follow(places):
            self._told()

    def _follow(self, places: Iterable[str]) -> bool:
        """Have the kernel tell of the ways to the places, of which there may be more by now; tell whether it does."""
        followed: set[str] = set()
        with contextlib.suppress(OSError, RecursionError):
            while further := ways(places) - followed:  # What comes meanwhile is not told.
                followed |= further
                if len(followed) > _most() or not all(map(self._add, sorted(further))):
                    break
            else:
                return True
        self.leave_server()
        return False

    def _add(self, place: str) -> bool:
        mask = _OF_DIRECTORY if os.path.isdir(place) else _OF_FILE
        watched = self._library.inotify_add_watch(self._events, os.fsencode(place), mask)
        return watched >= 0 and _is_trusted(self._library, place)

    def _told(self) -> bool:
        """Tell whether there is news, and forget it."""
        if self._poll is None or not self._poll.poll(0):
            return False
        with contextlib.suppress(BlockingIOError):
            while os.read(self._events, _EVENTS):
                pass
        return True


def _most() -> int:
    """Return how many places may be watched without taking them from others."""
    with open(_LIMIT, "rb") as file:
        return int(file.read()) // _PART


def _is_trusted(library: ctypes.CDLL, place: str) -> bool:
    about = ctypes.create_string_buffer(_ROOM)
    if library.statfs(os.fsencode(place), about) != 0:
        return False
    return int.from_bytes(about.raw[:8], "little") in _TRUSTED


def ways(places: Iterable[str]) -> set[str]:
    """Return what there is of the places, and the directories that a look at one of them leads through."""
    found: set[str] = set()
    known = {"/": "/"}

    def real(path: str) -> str:
        if path not in known:
            parent, name = os.path.split(path)
            here = real(parent)
            found.add(here)
            known[path] = step(here, name)
        return known[path]

    def step(here: str, name: str) -> str:
        if name in ("", "."):
            return here
        if name == "..":
            return os.path.dirname(here)
        place = os.path.join(here, name)
        try:
            return real(os.path.join(here, os.readlink(place)))
        except OSError:  # It is no link, or is not there.
            return place

    found.update(real(place) for place in places)
    return {place for place in found if os.path.lexists(place)}
