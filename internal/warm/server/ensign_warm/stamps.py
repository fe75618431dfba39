"""Tells whether what was imported is still what would be imported."""

import os
import sys
from collections.abc import Iterable
from types import ModuleType


def directories(modules: Iterable[ModuleType], path: Iterable[str]) -> set[str]:
    """Return where modules lie, and where others would be found before them."""
    found = {place for place in path if place}
    for module in modules:
        file = getattr(module, "__file__", None)
        if isinstance(file, str):
            found.add(os.path.dirname(file))
    return found


def take(places: Iterable[str]) -> dict[str, tuple[int, int] | None]:
    """Return what changes whenever something is added to a directory, removed or replaced in it."""
    return {place: _stamp(place) for place in places}


def _stamp(place: str) -> tuple[int, int] | None:
    try:
        status = os.stat(place)
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns


class Stamps:
    """The directories of modules that were imported, and the interpreter."""

    def __init__(self, modules: Iterable[ModuleType]) -> None:
        places = directories(modules, sys.path)
        places |= {sys.executable, os.path.realpath(sys.executable)}
        self._taken = take(places)

    def hold(self) -> bool:
        return take(self._taken) == self._taken

    def newest(self) -> int:
        """Return the time of the last change, in nanoseconds."""
        return max((stamp[1] for stamp in self._taken.values() if stamp), default=0)
