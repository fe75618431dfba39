"""A module's process: a fork of the worker."""

import atexit
import contextlib
import gc
import os
import resource
import selectors
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

from ensign_warm import leave
from ensign_warm.apart import Apart

_CHUNK = 64 << 10


@dataclass
class Start:
    """A module that is to be run."""

    name: str
    parameters: bytes
    environment: dict[str, str]
    files: int  # the limit of open files, 0 for none of its own


def execute(apart: Apart, start: Start, directory: str) -> tuple[int, bytes, bytes]:
    """Run a module in a fork, and return its exit code, output and errors, as a shell does."""
    out, out_end = os.pipe()
    err, err_end = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        _become(apart, start, directory, (out_end, err_end))
    os.close(out_end)
    os.close(err_end)
    taken: dict[int, list[bytes]] = {out: [], err: []}
    with selectors.PollSelector() as selector:
        for descriptor in taken:
            selector.register(descriptor, selectors.EVENT_READ)
        while selector.get_map():
            for key, _ in selector.select():
                taken[key.fd].append(os.read(key.fd, _CHUNK))
                if not taken[key.fd][-1]:
                    selector.unregister(key.fd)
                    os.close(key.fd)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if code < 0:
        taken[err].append(f"{signal.strsignal(-code)}\n".encode())
        code = 128 - code
    return code, b"".join(taken[out]), b"".join(taken[err])


def _become(apart: Apart, start: Start, directory: str, outputs: tuple[int, int]) -> NoReturn:
    code = 1
    try:
        atexit._clear()
        gc.freeze()
        _take(outputs)
        apart.open_streams()
        _begin(start, directory)
        apart.enter()
        sys.argv = [""]
        code = _outcome(lambda: apart.run(start.name, start.parameters))
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(BaseException):
            threading._shutdown()  # type: ignore[attr-defined]
            atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(BaseException):
                stream.flush()
        os._exit(code)


def _take(outputs: tuple[int, int]) -> None:
    """Have nothing but /dev/null and the outputs open."""
    null = os.open(os.devnull, os.O_RDONLY)
    for number, descriptor in enumerate((null, *outputs)):
        os.dup2(descriptor, number, inheritable=True)
    os.closerange(3, resource.getrlimit(resource.RLIMIT_NOFILE)[0])


def _begin(start: Start, directory: str) -> None:
    """Have the signals, limits, environment and directory of a module's own process."""
    for handled in signal.valid_signals():
        if callable(signal.getsignal(handled)):
            signal.signal(handled, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    os.chdir(directory)
    os.environ["PWD"] = directory  # As a shell sets it.
    os.environ.update(start.environment)
    if start.files and min(hard, start.files) != soft:
        with contextlib.suppress(ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, start.files), hard))


def _outcome(run: Callable[[], None]) -> int:
    """Return the exit code that the run would end an interpreter with."""
    try:
        run()
    except SystemExit as end:
        return leave.exit_code(end.code)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0
