"""Tells whether what was imported is still what would be imported."""

import contextlib
import os
import site
import sys
import time
from collections.abc import Iterable
from types import ModuleType

# The servers' own source, which no program imports.
_OWN = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_PAUSE = 1.0  # seconds between two looks, which take 8 ms
Stamp = tuple[int, int, int, int] | None


def places(modules: Iterable[object], path: Iterable[str], own: tuple[str, ...] = ()) -> set[str]:
    """Return modules' files, where they lie, and where others would be found before them.

    The files of the manager's own directories do not count: only the manager writes there,
    and interpreters, which leave bytecode behind.
    """
    found = {place for place in path if place and not place.startswith(own)}
    for place in list(found):
        with contextlib.suppress(OSError):
            found |= {os.path.join(place, name) for name in os.listdir(place) if name.endswith(".pth")}
    for module in modules:
        file = module.__dict__.get("__file__") if isinstance(module, ModuleType) else None
        if isinstance(file, str) and os.path.isabs(file) and not file.startswith((_OWN, *own)):
            found |= {file, os.path.dirname(file)}
    return found


def take(found: Iterable[str]) -> dict[str, Stamp]:
    """Return what changes when a file is written, or when a directory gets, loses or replaces something.

    The last of it can't be set: a file that is written in place may be as long and look as old as before.
    """
    return {place: _stamp(place) for place in found}


def _stamp(place: str) -> Stamp:
    try:
        status = os.stat(place)
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size, status.st_ctime_ns


def missing() -> set[str]:
    """Return what an interpreter would search as well, if it were there when that starts."""
    users = [site.getusersitepackages()] if site.ENABLE_USER_SITE else []
    return {place for place in (*site.getsitepackages(), *users) if not os.path.exists(place)}


class Stamps:
    """The files of modules that were imported, and the interpreter."""

    def __init__(self, modules: Iterable[ModuleType], program: str = "") -> None:
        """Take the modules that are in sys.modules no more, and the path of what runs execute."""
        own = (os.path.join(os.path.dirname(program), ""),) if program else ()
        found = places((*modules, *sys.modules.copy().values()), sys.path, own)
        found |= missing() | {sys.executable, os.path.realpath(sys.executable), os.path.join(sys.prefix, "pyvenv.cfg")}
        self._taken = take(found)
        self._looked, self._changed = time.monotonic(), False

    def changed(self) -> bool:
        """Report whether something has changed, as it was a second ago at most."""
        now = time.monotonic()
        if self._changed or now < self._looked + _PAUSE:
            return self._changed
        self._looked = now
        self._changed = any(_stamp(place) != stamp for place, stamp in self._taken.items())
        return self._changed

    def changed_since(self, moment: int) -> bool:
        """Tell whether something was changed after that moment, in nanoseconds. What is of the future was not."""
        now = time.time_ns()
        return any(stamp is not None and moment < stamp[1] <= now for stamp in self._taken.values())
