"""The end of a fork: what an interpreter does at its end, without what takes it long.

An interpreter takes apart every module that it has, which costs 0.1 s for those of
a server and copies all their memory. Here only those go that the server did not have.
"""

import atexit
import functools
import gc
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator
from importlib.machinery import SourceFileLoader
from types import CodeType, FrameType, ModuleType, TracebackType
from typing import Any, NoReturn

_FLUSH_FAILED = 120
_OWN = os.path.join(os.path.dirname(__file__), "")
_Step = tuple[FrameType, Any]  # of a trace: with the place in the source


def run(code: CodeType, file: str, path: str, ahead: Iterable[ModuleType] = ()) -> NoReturn:
    """Run the code as __main__ and end the process as an interpreter would.

    The path is the first place where it finds modules. What was imported ahead, and
    is not in sys.modules yet, is left alone at the end like what is there.
    """
    before = {id(module) for module in (*sys.modules.values(), *ahead)}
    main = ModuleType("__main__")
    main.__dict__["__builtins__"] = sys.modules["builtins"]
    main.__file__, main.__dict__["__cached__"] = file, None
    main.__loader__ = SourceFileLoader("__main__", file)
    if "__annotations__" in sys.modules["__main__"].__dict__:  # Before Python 3.14.
        main.__annotations__ = {}
    start = sys.modules["__main__"].__dict__
    sys.modules["__main__"] = main
    if not getattr(sys.flags, "safe_path", False):
        sys.path.insert(0, path)
    _hide_frames(start)
    _leave(_outcome(code, main.__dict__), before)


def _hide_frames(start: dict[str, Any]) -> None:
    """Let traces of the stack, which Ansible makes of a failure, end where the program begins."""
    original = traceback.walk_stack

    def walk_stack(f: FrameType | None) -> Iterator[tuple[FrameType, int]]:
        if f is None:
            return original(f)  # It counts frames of callers, and must not find another one.
        return ((g, line) for g, line in original(f) if g.f_globals is not start and not _is_own(g))

    traceback.walk_stack = walk_stack
    for name in ("walk_tb", "_walk_tb_with_full_positions"):  # The second is what Python's own functions use.
        if hasattr(traceback, name):
            setattr(traceback, name, _without_own(getattr(traceback, name)))


def _without_own(walk: Callable[[TracebackType | None], Iterator[_Step]]) -> Callable[..., Iterator[_Step]]:
    """Let traces of errors lack the frames of what stands in for functions of Ansible's and Python's."""

    @functools.wraps(walk)
    def walked(tb: TracebackType | None) -> Iterator[_Step]:
        return (step for step in walk(tb) if not _is_own(step[0]))

    return walked


def _is_own(frame: FrameType) -> bool:
    """Report whether the frame's source is this package's."""
    return frame.f_code.co_filename.startswith(_OWN)


def _outcome(code: CodeType, namespace: dict[str, Any]) -> int:
    """Run the code. A negative result is the signal to end by."""
    try:
        exec(code, namespace)  # noqa: S102
    except SystemExit as end:
        return exit_code(end.code)
    except BaseException as error:
        show(error)
        return -signal.SIGINT if isinstance(error, KeyboardInterrupt) else 1
    return 0


def exit_code(code: object) -> int:
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF if -(1 << 63) <= code < 1 << 63 else 0xFF
    sys.stderr.write(f"{code}\n")
    return 1


def show(error: BaseException) -> None:
    """Show the error without the frames of this package."""
    trace = error.__traceback__
    while trace is not None and str(trace.tb_frame.f_globals.get("__name__")).startswith("ensign_warm."):
        trace = trace.tb_next
    error.__traceback__ = trace
    sys.excepthook(type(error), error, trace)


def _leave(code: int, before: set[int]) -> NoReturn:
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    failed = not _flush()
    _take_apart(before)
    _flush()
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(_FLUSH_FAILED if failed and code == 0 else max(code, 0))


def _take_apart(before: set[int]) -> None:
    """Let the objects go that the program made, so that what they still have to do is done."""
    for name in [n for n, module in sys.modules.items() if id(module) not in before]:
        module = sys.modules.pop(name)
        if isinstance(module, ModuleType):
            for variable in [v for v in module.__dict__ if v != "__builtins__"]:
                module.__dict__[variable] = None
    gc.collect()


def _flush() -> bool:
    """Flush the standard streams; false when what was printed could not be delivered."""
    done = True
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None and not stream.closed:
                stream.flush()
        except (OSError, ValueError):
            done = stream is sys.stderr and done
    return done
