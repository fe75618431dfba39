"""One run: ansible-runner with the playbook in the same process, and events that are never text.

python ensign_run.py ARGUMENTS-OF-ANSIBLE-RUNNER

The standard output takes events, as lines of JSON, and nothing else: this process moves it
out of reach before anything else happens, and no program that the run starts inherits it.
The descriptors 1 and 2 are the standard error, for text.

ansible-runner does its work itself: inventory, variables, settings, artifacts. Only where it
would start ansible-playbook behind a terminal, the playbook runs here; and what its display
callback would print between escape sequences, for ansible-runner to look for in all that is
displayed, is handed over as an object.
"""

import codecs
import contextlib
import fcntl
import importlib
import io
import json
import os
import pty
import shutil
import signal
import struct
import sys
import termios
import traceback
from collections.abc import Callable
from types import ModuleType
from typing import Any, NoReturn

_PROGRAM = "ansible-playbook"
_CALLBACK = "awx_display.py"
_STDIN, _STDOUT, _STDERR = 0, 1, 2
_SIZE = struct.pack("HHHH", 24, 80, 0, 0)  # of ansible-runner's terminal: rows and columns
_BUFFER = 1 << 20


def main(arguments: list[str]) -> NoReturn:
    """Be ansible-runner, and end with its exit code."""
    reported = os.dup(_STDOUT)
    os.dup2(_STDERR, _STDOUT, inheritable=True)
    sys.argv = ["ansible-runner", *arguments]
    command_line = importlib.import_module("ansible_runner.__main__")
    runner: Any = importlib.import_module("ansible_runner.runner")
    events = events_of(runner.OutputEventFilter, reported)
    runner.pexpect, runner.OutputEventFilter = Overlay(runner.pexpect, spawn=Playbook), events
    sys.exit(command_line.main(arguments))


class Overlay:
    """A module with other values for some of its names."""

    def __init__(self, module: ModuleType, **others: Any) -> None:
        self.__dict__.update(others)
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)


def events_of(original: Any, reported: int) -> Any:
    """Return what takes the place of ansible-runner's filter, which looks for events in text."""

    class Events(original):
        """Numbers events, gives each the text that is displayed for it, and reports it."""

        def __init__(self, handle: Any, event_callback: Callable[[dict[str, Any]], None], *_: Any, **__: Any) -> None:
            super().__init__(handle, self._done)
            self._buffer = io.StringIO()
            self._take = event_callback

        def write(self, data: str) -> None:
            """Take text. It is part of the event that has begun; without one, each line is an event of its own."""
            self._buffer.write(data)
            if self._current_event_data is None and "\n" in data:
                lines = self._buffer.getvalue().splitlines(keepends=True)
                rest = "" if lines[-1].endswith("\n") else lines.pop()
                self._buffer = io.StringIO()
                self._buffer.write(rest)
                for line in lines:
                    self._emit_event(line)

        def mark(self, event: dict[str, Any]) -> None:
            """End the event that has begun, and begin another one if that has a uuid."""
            text, self._buffer = self._buffer.getvalue(), io.StringIO()
            self._emit_event(text, event)

        def _done(self, event: dict[str, Any]) -> None:
            self._take(event)
            if "counter" in event:
                report(reported, event)

    return Events


def report(descriptor: int, event: dict[str, Any]) -> None:
    line = memoryview(json.dumps(event).encode() + b"\n")
    while line:
        line = line[os.write(descriptor, line) :]


class Playbook:
    """What ansible-runner knows of a pexpect.spawn, without a process: expecting something of it runs the playbook."""

    def __init__(self, command: str, args: list[str], cwd: str, env: dict[str, str], **_: Any) -> None:
        program = shutil.which(command, path=env.get("PATH"))
        if os.path.basename(command) != _PROGRAM or program is None:
            error = importlib.import_module("pexpect").ExceptionPexpect
            raise error(f"The command was not found or was not executable: {command}.")
        self._argv, self._directory, self._environment = [program, *args], cwd, env
        self._alive = True
        self.exitstatus: int | None = None
        self.pid = os.getpid()
        self.logfile_read: Any = None  # The events, as soon as ansible-runner has set it.

    def isalive(self) -> bool:
        return self._alive

    def expect(self, patterns: Any, **_: Any) -> int:
        """Run the playbook, once; what there is of it then is its end."""
        if self._alive:
            self._alive = False
            self.exitstatus = self._run()
        return patterns.index(importlib.import_module("pexpect").EOF) if isinstance(patterns, list) else 0

    def close(self) -> None:
        """Nothing is open."""

    def _run(self) -> int:
        """Make this process as a new one would be that starts here, and run."""
        os.environ.clear()
        os.environ.update(self._environment)
        os.chdir(self._directory)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        take_terminal()
        sys.argv = self._argv
        sys.path[0] = os.path.dirname(self._argv[0])
        before = sys.stdout, sys.stderr
        show_on(displayed(self.logfile_read, _STDOUT), displayed(self.logfile_read, _STDERR))
        try:
            hand_over(self.logfile_read.mark)
            return outcome(importlib.import_module("ansible.cli.playbook").main)
        finally:
            flush()
            show_on(*before)


def take_terminal() -> None:
    """Have a terminal as the standard input, on which nobody ever types: what asks a question waits, as documented."""
    with contextlib.suppress(OSError):
        os.setsid()  # Only the first process of a session can have a terminal; this one may be that already.
    with contextlib.suppress(OSError):
        _, terminal = pty.openpty()  # The other end is open for as long as this process lives.
        mode = termios.tcgetattr(terminal)
        mode[3] &= ~termios.ECHO
        termios.tcsetattr(terminal, termios.TCSANOW, mode)
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, _SIZE)
        fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
        os.dup2(terminal, _STDIN, inheritable=True)
        os.close(terminal)


class Sink(io.RawIOBase):
    """Where the playbook displays text: what a terminal makes of it becomes that of an event."""

    def __init__(self, events: Any, descriptor: int) -> None:
        self._events, self._descriptor, self._owner = events, descriptor, os.getpid()
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._descriptor

    def write(self, data: Any) -> int:
        if os.getpid() != self._owner:  # A process that this one forked has no part in its events.
            return os.write(self._descriptor, data)
        self._events.write(self._decode(bytes(data).replace(b"\n", b"\r\n")))
        return len(data)


def displayed(events: Any, descriptor: int) -> Any:
    binary = io.BufferedWriter(Sink(events, descriptor), _BUFFER)
    stream: Any = io.TextIOWrapper(binary, "utf-8", newline="\n", line_buffering=True)
    stream.mode = "w"
    return stream


def show_on(output: Any, errors: Any) -> None:
    sys.stdout = sys.__stdout__ = output  # type: ignore[misc]
    sys.stderr = sys.__stderr__ = errors  # type: ignore[misc]


def flush() -> None:
    sys.stdout.flush()
    sys.stderr.flush()


def hand_over(mark: Callable[[dict[str, Any]], None]) -> None:
    """Have ansible-runner's display callback give its events to mark, from when Ansible loads it."""
    loader = importlib.import_module("ansible.plugins.loader").PluginLoader
    callback = os.path.join(importlib.import_module("ansible_runner.utils").get_callback_dir(), _CALLBACK)
    original = loader._load_module_source

    def load(self: object, *, python_module_name: str, path: str) -> Any:
        module = original(self, python_module_name=python_module_name, path=path)
        if os.path.realpath(path) == os.path.realpath(callback):
            module.EventContext.dump = dump
        return module

    def dump(context: Any, _: object, event: dict[str, Any], **__: Any) -> None:
        with context.display_lock:
            flush()
            mark(event)

    loader._load_module_source = load


def outcome(program: Callable[[], object]) -> int:
    """Return the exit code that the program would end an interpreter with."""
    try:
        program()
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return (end.code or 0) & 0xFF
        sys.stderr.write(f"{end.code}\n")
        return 1
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


if __name__ == "__main__":
    main(sys.argv[1:])
