"""Notes which module imports which. It imports nothing itself, to begin before everything."""

import builtins
import sys

graph: dict[str, set[str]] = {}  # what each importing module has asked for
_original = builtins.__import__


def begin() -> None:
    builtins.__import__ = _noted


def end() -> None:
    builtins.__import__ = _original


def _noted(name, globals=None, locals=None, fromlist=(), level=0):  # type: ignore[no-untyped-def]  # noqa: A002
    variables = globals if globals is not None else sys._getframe(1).f_globals
    full = _absolute(name, variables, level) if level else name
    wanted = graph.setdefault(str(variables.get("__name__")), set())
    wanted.add(sys.intern(full))  # Also when it fails: its package has been imported then.
    module = _original(name, globals, locals, fromlist, level)
    for part in fromlist or ():
        if f"{full}.{part}" in sys.modules:
            wanted.add(sys.intern(f"{full}.{part}"))
    return module


def _absolute(name: str, variables: dict[str, object], level: int) -> str:
    package = variables.get("__package__")
    if package is None:
        own = str(variables["__name__"])
        package = own if "__path__" in variables else own.rpartition(".")[0]
    base = str(package).rsplit(".", level - 1)[0]
    return f"{base}.{name}" if name else base
