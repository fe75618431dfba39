"""Makes a fork the process that a run is to have."""

import contextlib
import ctypes
import os
import signal

from ensign_warm import environment
from ensign_warm.wire import Refused, Request

_MARKS = (b"JOB_ID", b"ENSIGN_RUN_ROOT", b"ENSIGN_MANAGER")  # of internal/process/proctree
_DUMPABLE = 4  # of prctl
_ENVIRONMENT, _ARGUMENTS = 47, 45  # fields of /proc/PID/stat, after the name: where each begins, and ends


def show(shown: bool) -> None:
    """Let other processes of this user see the environment and memory of this one, or not."""
    ctypes.CDLL(None).prctl(_DUMPABLE, int(shown), 0, 0, 0)


def put(request: Request) -> None:
    """Put this process where the run is to be."""
    environment.replace(request.environment)
    mark(request.environment)
    try:
        os.chdir(request.directory)
    except OSError as error:
        raise Refused("working directory") from error
    signal.signal(signal.SIGINT, signal.default_int_handler)


def mark(variables: dict[bytes, bytes]) -> None:
    """Let /proc/PID/environ, by which processes of runs are found, show these variables.

    The kernel shows the memory that a program was started with. It is this process'
    own since the fork, and nothing points there any more after environment.replace.
    """
    marks = [name for name in _MARKS if name in variables]
    order = marks + [name for name in variables if name not in marks]
    content = b"".join(name + b"=" + variables[name] + b"\0" for name in order)
    try:
        _write(_ENVIRONMENT, content)
        with open("/proc/self/environ", "rb") as file:
            seen = file.read(len(content)).split(b"\0")  # Without the room behind it, which is much longer.
    except (OSError, ValueError) as error:
        raise Refused("marks") from error
    if any(name + b"=" + variables[name] not in seen for name in marks):
        raise Refused("marks")


def show_arguments(arguments: list[bytes]) -> None:
    """Let /proc/PID/cmdline, which ps shows, be that of the run."""
    with contextlib.suppress(OSError, ValueError):
        _write(_ARGUMENTS, b"".join(argument + b"\0" for argument in arguments))


def _write(field: int, content: bytes) -> None:
    with open("/proc/self/stat", "rb") as file:
        fields = file.read().rpartition(b")")[2].split()
    start, end = int(fields[field]), int(fields[field + 1])
    with open("/proc/self/mem", "r+b", buffering=0) as memory:
        memory.seek(start)
        memory.write(content[: end - start - 1].ljust(end - start, b"\0"))


def take_outputs(descriptors: list[int]) -> None:
    """Have these as standard output and error."""
    for number, descriptor in enumerate(descriptors, 1):
        os.dup2(descriptor, number, inheritable=True)
        os.close(descriptor)
