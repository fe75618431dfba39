"""Makes a fork the process that a stand-in asked for."""

import contextlib
import ctypes
import fcntl
import io
import os
import resource
import signal
import sys
import termios
from typing import Any, TextIO

from ensign_warm import environment
from ensign_warm.wire import STDIO, Refused, Request

_OWNERS = (b"JOB_ID", b"ENSIGN_RUN_ROOT", b"ENSIGN_MANAGER")
_CGROUPS = "/proc/self/mountinfo"


_DUMPABLE = 4  # of prctl


def hide() -> None:
    """Let no other process of this user look into a server: what is there becomes a part of all later runs."""
    ctypes.CDLL(None).prctl(_DUMPABLE, 0, 0, 0, 0)


def show() -> None:
    """Let a fork be seen as any process is: the marks of its run stand in its environment."""
    ctypes.CDLL(None).prctl(_DUMPABLE, 1, 0, 0, 0)


def put(request: Request, peer: int) -> None:
    """Put this process where the stand-in is, as far as that can be refused."""
    environment.replace(request.environment)
    mark(request.environment)
    join_group(peer)
    set_limits(request.limits)
    try:
        os.chdir(request.directory)
    except OSError as error:
        raise Refused("working directory") from error
    os.umask(request.umask)
    set_signals(request.ignored)
    reserve_descriptors()


def set_signals(ignored: list[int]) -> None:
    """Set what a new interpreter finds and what it sets itself."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)


def mark(variables: dict[bytes, bytes]) -> None:
    """Let /proc/PID/environ, by which processes of runs are found, show these variables.

    The kernel shows the memory that a program was started with. It is this process'
    own since the fork, and nothing points there any more after environment.replace.
    """
    marks = [name for name in _OWNERS if name in variables]
    order = marks + [name for name in variables if name not in marks]
    content = b"".join(name + b"=" + variables[name] + b"\0" for name in order)
    try:
        _write(47, content)
        with open("/proc/self/environ", "rb") as file:
            seen = file.read(len(content)).split(b"\0")  # Without the room behind it, which is much longer.
    except (OSError, ValueError) as error:
        raise Refused("marks") from error
    if any(name + b"=" + variables[name] not in seen for name in marks):
        raise Refused("marks")


def show_arguments(arguments: list[bytes]) -> None:
    """Let /proc/PID/cmdline, which ps shows, be that of the program."""
    with contextlib.suppress(OSError, ValueError):
        _write(45, b"".join(argument + b"\0" for argument in arguments))


def _write(field: int, content: bytes) -> None:
    """Write where a field of /proc/PID/stat and the one after it say that something begins and ends."""
    with open("/proc/self/stat", "rb") as file:
        fields = file.read().rpartition(b")")[2].split()
    start, end = int(fields[field]), int(fields[field + 1])
    with open("/proc/self/mem", "r+b", buffering=0) as memory:
        memory.seek(start)
        memory.write(content[: end - start - 1].ljust(end - start, b"\0"))


def join_group(peer: int) -> None:
    """Go to the control group of the stand-in."""
    try:
        wanted = group_of(str(peer))
        if wanted == group_of("self"):
            return
        with open(os.path.join(mount_of_groups(), wanted.lstrip("/"), "cgroup.procs"), "w", encoding="ascii") as file:
            file.write("0")
    except OSError as error:
        raise Refused("control group") from error


def group_of(pid: str) -> str:
    with open(f"/proc/{pid}/cgroup", encoding="utf-8") as file:
        return next((line[3:].rstrip("\n") for line in file if line.startswith("0::")), "")


def mount_of_groups() -> str:
    with open(_CGROUPS, encoding="utf-8") as file:
        for line in file:
            place, _, kind = line.partition(" - ")
            root, mounted = place.split()[3:5]
            if kind.startswith("cgroup2 ") and root == "/":
                return mounted
    raise Refused("control group")


def set_limits(limits: list[tuple[int, int]]) -> None:
    try:
        for number, limit in enumerate(limits):
            if resource.getrlimit(number) != limit:
                resource.setrlimit(number, limit)
    except (OSError, ValueError) as error:
        raise Refused("limits") from error


def name(command: bytes) -> None:
    """Set what ps shows as the command's name."""
    with open("/proc/self/comm", "wb", buffering=0) as file:
        file.write(command[:15])


def reserve_descriptors() -> None:
    """Make sure that the stand-in's can be taken."""
    try:
        reserved = [os.dup(0) for _ in range(STDIO)]
    except OSError as error:
        raise Refused("descriptors") from error
    for descriptor in reserved:
        os.close(descriptor)


def take_descriptors(descriptors: list[int]) -> None:
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number, inheritable=True)
    for descriptor in descriptors:
        os.close(descriptor)
    # A session leader's terminal is its own; the stand-in has given it up.
    if os.isatty(0):
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def open_streams() -> None:
    """Make the standard streams, as an interpreter does at its start."""
    sys.stdin = sys.__stdin__ = _stream(0, "r", sys.stdin)  # type: ignore[misc]
    sys.stdout = sys.__stdout__ = _stream(1, "w", sys.stdout)  # type: ignore[misc]
    sys.stderr = sys.__stderr__ = _stream(2, "w", sys.stderr)  # type: ignore[misc]


def _stream(descriptor: int, mode: str, like: TextIO) -> Any:
    unbuffered = not sys.flags.ignore_environment and bool(os.environ.get("PYTHONUNBUFFERED"))
    buffering = 0 if unbuffered and mode == "w" else -1
    binary: Any = open(descriptor, mode + "b", buffering, closefd=False)  # noqa: SIM115
    getattr(binary, "raw", binary).name = {0: "<stdin>", 1: "<stdout>", 2: "<stderr>"}[descriptor]
    text: Any = io.TextIOWrapper(
        binary,
        encoding=like.encoding,
        errors=like.errors,
        newline="\n",
        line_buffering=not unbuffered and (binary.isatty() or descriptor == 2),  # noqa: PLR2004
        write_through=unbuffered,
    )
    text.mode = mode
    return text
