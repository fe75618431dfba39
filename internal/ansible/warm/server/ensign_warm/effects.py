"""What an import does to other modules than the imported one.

The library for modules mends three functions of Python's and silences a warning. The
server must not have that done, because not every fork imports the library; a fork
has it done by the module that would do it.
"""

import atexit
import contextlib
import importlib
import logging
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from types import ModuleType
from typing import Any

# Values that modules are known to replace.
_REPLACED = (("sys", "intern"), ("socket", "getaddrinfo"), ("dataclasses", "_is_type"))

_Place = tuple[str, str]


class Effects:
    """Effects by the module that has them."""

    def __init__(self) -> None:
        self._modules = {name: importlib.import_module(name) for name, _ in _REPLACED}
        self._original = self._values()
        self._now = dict(self._original)
        self._replacing: dict[str, dict[_Place, Any]] = {}
        # The list itself, because the interpreter holds it.
        self._filters: list[Any] = warnings.filters  # type: ignore[assignment]
        self._first = self._filters.copy()
        self._silencing: dict[str, list[Any]] = {}

    def _values(self) -> dict[_Place, Any]:
        return {(name, variable): getattr(self._modules[name], variable) for name, variable in _REPLACED}

    @contextlib.contextmanager
    def of(self, name: str) -> Iterator[None]:
        """Note what the module does meanwhile, without what others do that it imports."""
        others = self._filters.copy()
        self._filters[:] = self._first  # To silence twice shows nothing the second time.
        try:
            yield
        finally:
            self._silencing[name] = [one for one in self._filters if one not in self._first]
            self._filters[:] = others
            values = self._values()
            self._replacing[name] = {place: value for place, value in values.items() if value is not self._now[place]}
            self._now = values

    def undo(self) -> None:
        for (name, variable), value in self._original.items():
            setattr(self._modules[name], variable, value)

    def disturbed(self) -> bool:
        """Tell whether somebody else has done something in this fork."""
        return any(value is not self._original[place] for place, value in self._values().items())

    def do(self, name: str) -> None:
        for (module, variable), value in self._replacing[name].items():
            setattr(self._modules[module], variable, value)
        for action, _, category, _, line in reversed(self._silencing[name]):
            warnings.simplefilter(action, category, line)


def changed(before: dict[Any, Any], after: dict[Any, Any]) -> list[str]:
    """Name what was there before and is something else now."""
    return [str(place) for place, value in before.items() if place in after and after[place] is not value]


def state() -> dict[Any, Any]:
    """Return what there is that an import could change."""
    return {
        (module_name, *place): value
        for module_name, module in list(sys.modules.items())
        if isinstance(module, ModuleType)
        for place, value in _values_of(module_name, module)
    }


def _values_of(name: str, module: ModuleType) -> Iterator[tuple[tuple[str, ...], Any]]:
    for variable, value in list(module.__dict__.items()):
        yield (variable,), value
        if isinstance(value, type) and value.__module__ == name and name.partition(".")[0] in sys.stdlib_module_names:
            for attribute, part in list(value.__dict__.items()):
                yield (variable, attribute), part


def settings() -> tuple[Any, ...]:
    """Return what else there is, as far as it can be seen."""
    return (
        (sys.path[:], sys.meta_path[:], sys.path_hooks[:], warnings.filters[:], logging.root.handlers[:]),
        (os.environb.copy(), os.getcwd(), sorted(os.listdir("/proc/self/fd"))),
        [signal.getsignal(number) for number in sorted(signal.valid_signals())],
        (atexit._ncallbacks(), threading.active_count()),
    )
