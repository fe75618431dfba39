"""A server from its start to its forks."""

import contextlib
import gc
import os
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable
from typing import NoReturn

from ensign_warm import environment, holes, immortal, loop, noting, process, wire
from ensign_warm.kinds import Kind
from ensign_warm.library import Unfit
from ensign_warm.module import Module
from ensign_warm.run import Run
from ensign_warm.stamps import Stamps
from ensign_warm.watched import Watched

_BEGUN = time.time_ns()
_GIVEN = environment.current()  # Imports add to it.
_RENEWALS = 5  # of one process; more mean that it would never come to rest
_STDOUT = 1
_MAX_REASON = 200
_DEFECT = 70  # how a server or fork ends that is not up to its work
# What changed shortly before the imports may have changed during them. It counts as
# settled after this, in nanoseconds; file systems have times as coarse as 10 ms.
_UNSETTLED = 50_000_000


def run(arguments: list[str], before: set[str]) -> NoReturn:
    """Serve. The arguments are the kind of the programs and settings, as NAME=VALUE."""
    kind_name, *pairs = arguments
    settings = dict(pair.split("=", 1) for pair in pairs)
    process.hide()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    listener = listen(settings)
    kind = make(kind_name, settings, before)
    try:
        stamps = Stamps(kind.load())
    except Unfit as unfit:
        sys.stderr.write(f"not imported ahead: {unfit}\n")
        renew(listener, [*arguments, "library=no"], settings)
    if stamps.changed_since(_BEGUN - _UNSETTLED):
        renew(listener, arguments, settings)
    watched = Watched(stamps)
    immortal.keep()
    gc.disable()
    try:
        manager = loop.Manager(lambda: renew(listener, arguments, settings), say)
        serving = loop.Loop(listener, manager, kind.lessons, watched)
        holes.fill()
        say("ready")
        connection, outdated = serving.next()
        gc.enable()
        begin(connection, outdated, kind, watched)
    except BaseException:
        traceback.print_exc()
    os._exit(_DEFECT)  # No end of an interpreter: its handlers are the server's.


def make(name: str, settings: dict[str, str], before: set[str]) -> Kind:
    if name == "runner":
        noting.end()
        return Run(settings["standins"] + "/python", settings["temporary"])
    return Module(before, settings["temporary"], settings.get("library") != "no")


def listen(settings: dict[str, str]) -> socket.socket:
    """Return the socket, which only this user can connect to; that of before a renewal, if there is one."""
    if "listener" in settings:
        return socket.socket(fileno=int(settings["listener"]))
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    mask = os.umask(0o177)
    listener.bind(settings["socket"])
    os.umask(mask)
    listener.listen(128)
    return listener


def say(line: str) -> None:
    """Tell the manager something, in one write so that lines of forks do not mix."""
    with contextlib.suppress(OSError):
        os.write(_STDOUT, f"{line}\n".encode())


def begin(connection: socket.socket, outdated: Callable[[bool], None], kind: Kind, watched: Watched) -> NoReturn:
    """Become what the stand-in asks for, or tell it why not."""
    try:
        request = wire.receive(connection)
        if not watched.hold():
            raise wire.Outdated("imports")
        process.put(request, loop.peer_of(connection))
        kind.admit(request)
    except Exception as error:
        refuse(connection, outdated, error)
    connection.settimeout(None)
    descriptors = loop.await_go(connection)
    connection.close()
    say(f"warm {identity(request)}")
    outdated(False)
    process.name(kind.command)
    process.take_descriptors(descriptors)
    process.open_streams()
    kind.become(request)


def identity(request: wire.Request) -> str:
    """Return the number of the run that a request belongs to."""
    number = request.environment.get(b"JOB_ID", b"")
    return number.decode() if number.isdigit() else ""


def refuse(connection: socket.socket, outdated: Callable[[bool], None], error: Exception) -> NoReturn:
    reason = plain(str(error)) if isinstance(error, wire.Refused) else f"defect {type(error).__name__}"
    if reason != "ping":
        say(f"cold {reason}")
    outdated(isinstance(error, wire.Outdated))
    with contextlib.suppress(OSError):
        connection.sendall(f"cold {reason}\n".encode())
    os._exit(0)


def plain(text: str) -> str:
    """Return the text as a part of a line that is not too long: a variable may have any name."""
    return ascii(text)[1:-1][:_MAX_REASON]


def renew(listener: socket.socket, arguments: list[str], settings: dict[str, str]) -> None:
    """Start anew in this process, with the environment that the manager gave to it."""
    renewals = int(settings.get("renewals", "0")) + 1
    if renewals > _RENEWALS:
        os._exit(0)  # The manager starts another one, not at once.
    say("renewed")
    kept = [a for a in arguments if not a.startswith(("listener=", "renewals="))]
    os.set_inheritable(listener.fileno(), True)
    os.execve(  # noqa: S606
        sys.executable,
        [sys.executable, sys.argv[0], *kept, f"listener={listener.fileno()}", f"renewals={renewals}"],
        environment.of_server(_GIVEN, os.fsencode(settings["temporary"])),
    )
