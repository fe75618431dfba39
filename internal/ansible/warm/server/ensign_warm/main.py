"""A server from its start to its forks."""

import gc
import os
import signal
import socket
import sys
import time
import traceback
from typing import NoReturn

from ensign_warm import immortal, loop, process, trial, wire
from ensign_warm.run import Run
from ensign_warm.stamps import Stamps

_BEGUN = time.time_ns()
_UNSETTLED = 75  # the exit code that tells the manager to start another process soon
_DEFECT = 70  # how a server or fork ends that is not up to its work
# What changed shortly before the imports may have changed during them. It counts as
# settled after this, in nanoseconds; file systems have times as coarse as 10 ms.
_SETTLED = 50_000_000


def run(path: str, templates: str) -> NoReturn:
    """Serve runs of the program at the path, which is ensign_run.py, with templates of a file."""
    process.show(False)  # What is here becomes a part of all later runs.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    program = Run(path, templates)
    stamps = Stamps(program.load(), path)
    if stamps.changed_since(_BEGUN - _SETTLED):
        sys.stderr.write("files changed while they were imported\n")
        os._exit(_UNSETTLED)
    off = {} if immortal.keep() else {"immortal": f"Python {sys.version_info.major}.{sys.version_info.minor}"}
    gc.disable()
    try:
        program.off |= trial.failing(program, begin)
        serving = loop.Loop(stamps.changed)
        for mechanism, cause in (program.off | off).items():
            serving.say(f"off {mechanism} {cause}")
        begin(serving.next(), program)
    except BaseException:
        traceback.print_exc()
    os._exit(_DEFECT)  # No end of an interpreter: its handlers are the server's.


def begin(connection: socket.socket, program: Run) -> NoReturn:
    """Become the run that the manager asks for, or tell it why not."""
    gc.enable()
    try:
        request = wire.receive(connection)
        process.put(request)
        program.admit(request)
    except OSError:
        os._exit(0)  # The manager has given up.
    except Exception as error:
        loop.refuse(connection, error)
        os._exit(0)
    try:
        outputs = wire.await_go(connection)
    except OSError:
        # Never an exit code, which would be the run's.
        os.kill(os.getpid(), signal.SIGKILL)
        raise
    connection.close()
    program.keep_voice()
    process.take_outputs(outputs)
    program.become(request)
