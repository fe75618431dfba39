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
import datetime
import fcntl
import importlib
import io
import json
import math
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

# What is kept of an event, in bytes as they are reported: of a name, a text, a result and its values' marks, counts
# by host; and the depth of a result. All together stays below jobevent's maxLineBytes.
_MAX_NAME, _MAX_TEXT, _MAX_RESULT, _VALUE, _MAX_COUNTS = 1 << 10, 64 << 10, 256 << 10, 16, 24 << 10
_MAX_DEPTH = 64
_MOST = 6  # bytes that JSON needs for one character
_MAX_BITS = 256  # of an integer
_CUT, _CUT_KEY = "… [cut]", "…"  # jobevent.CutMark and jobevent.CutKey.
_NAMES = ("play", "task", "role", "host", "task_path", "task_action", "resolved_action")
_COUNTS = ("ok", "changed", "failures", "dark", "skipped", "rescued", "ignored", "processed")


def main(arguments: list[str]) -> NoReturn:
    """Be ansible-runner, and end with its exit code."""
    reported = os.dup(_STDOUT)
    os.dup2(_STDERR, _STDOUT, inheritable=True)
    sys.argv = ["ansible-runner", *arguments]
    command_line = importlib.import_module("ansible_runner.__main__")
    runner: Any = importlib.import_module("ansible_runner.runner")
    runner.pexpect = Overlay(runner.pexpect, spawn=Playbook)
    runner.OutputEventFilter = lambda handle, *_, **__: Events(reported, handle)
    sys.exit(command_line.main(arguments))


class Overlay:
    """A module with other values for some of its names."""

    def __init__(self, module: ModuleType, **others: Any) -> None:
        self.__dict__.update(others)
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)


class Events:
    """What ansible-runner knows of its filter for events, which here never looks for one in a text.

    Each event is reported with the text that was displayed for it. Text that belongs to none is reported
    line by line, by itself.
    """

    def __init__(self, reported: int, handle: Any) -> None:
        self._reported, self._handle = reported, handle
        self._text = io.StringIO()
        self._event: dict[str, Any] | None = None

    def write(self, data: str) -> None:
        self._text.write(data)
        if self._event is None and "\n" in data:
            *lines, rest = self._taken().split("\n")
            self._text.write(rest)
            for line in lines:
                self._report({"stdout": cut(line, _MAX_TEXT)})

    def begin(self, event: dict[str, Any]) -> None:
        self.end()
        self._event = chosen(event)

    def end(self) -> None:
        text, event = cut(self._taken(), _MAX_TEXT), self._event
        self._event = None
        if event is not None or text:
            self._report({**(event or {}), "stdout": text})

    def flush(self) -> None:
        """Nothing waits."""

    def close(self) -> None:
        self.end()
        if self._handle:
            self._handle.close()

    def _taken(self) -> str:
        text, self._text = self._text.getvalue(), io.StringIO()
        return text

    def _report(self, event: dict[str, Any]) -> None:
        line = memoryview(encoded(event) + b"\n")
        while line:
            line = line[os.write(self._reported, line) :]


_encode = json.JSONEncoder(ensure_ascii=False).encode


def encoded(value: object) -> bytes:
    return _encode(value).encode("utf-8", "replace")


def chosen(event: dict[str, Any]) -> dict[str, Any]:
    """Return what the operator reads of an event, bounded whatever tasks return. Later changes are no part of it."""
    data = event.get("event_data", {})
    kept: dict[str, Any] = {name: cut(data[name], _MAX_NAME) for name in _NAMES if name in data}
    kept.update({name: counts(data[name]) for name in _COUNTS if isinstance(data.get(name), dict)})
    if isinstance(data.get("duration"), float):
        kept["duration"] = data["duration"]
    if data.get("ignore_errors") is True:
        kept["ignore_errors"] = True
    if isinstance(data.get("res"), dict):
        kept["res"] = Copy().of(data["res"])
    return {"event": event["event"], "uuid": event["uuid"], "created": event["created"], "event_data": kept}


def cut(text: object, limit: int) -> str:
    """Return as much of a text as fits into the limit, marked if there is more; "" for what is no text."""
    if not isinstance(text, str):
        return ""
    text = str.__str__(text)  # As it stands: Ansible has strings that are more than their characters.
    if len(text) * _MOST + 2 <= limit:
        return text
    kept = text[:limit]
    while kept and (size := len(encoded(kept))) > limit:
        kept = kept[: len(kept) * limit // size]
    return kept if len(kept) == len(text) else kept + _CUT


def counts(by_host: dict[str, int]) -> dict[str, int]:
    """Return counts by host. Those of hosts for which there is no room are summed, so that no count is lost."""
    kept: dict[str, int] = {}
    room = _MAX_COUNTS
    for host, number in by_host.items():
        key = cut(host, _MAX_NAME)
        room -= len(encoded(key)) + _VALUE
        key = key if room > 0 else _CUT_KEY
        kept[key] = kept.get(key, 0) + number
    return kept


def scalar(value: object) -> Any:
    """Return a value that is neither text nor many as JSON has it."""
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, datetime.date):
        return value.isoformat()
    if value is None or (isinstance(value, int) and value.bit_length() <= _MAX_BITS):
        return value
    return f"({type(value).__name__})"  # Its text may be a secret: Ansible decrypts what is asked for it.


class Copy:
    """Copies a value as JSON has it, as long as there is room. What is left out shows."""

    def __init__(self) -> None:
        self._room = _MAX_RESULT

    def of(self, value: object, depth: int = 0) -> Any:
        self._room -= _VALUE
        many = isinstance(value, (dict, list, tuple))
        if self._room <= 0 or (many and depth == _MAX_DEPTH):
            return _CUT
        if isinstance(value, dict):
            return self._members(value, depth)
        if isinstance(value, (list, tuple)):
            return self._elements(value, depth)
        return self._text(value, _MAX_TEXT) if isinstance(value, str) else scalar(value)

    def _text(self, value: str, limit: int) -> str:
        text = cut(value, min(limit, self._room))
        self._room -= len(encoded(text))
        return text

    def _members(self, value: dict[Any, Any], depth: int) -> dict[str, Any]:
        kept: dict[str, Any] = {}
        for key, member in value.items():
            if self._room <= 0:
                kept[_CUT_KEY] = _CUT
                break
            name = self._text(key if isinstance(key, str) else json.dumps(key, default=repr), _MAX_NAME)
            kept[name] = self.of(member, depth + 1)
        return kept

    def _elements(self, value: list[Any] | tuple[Any, ...], depth: int) -> list[Any]:
        kept: list[Any] = []
        for element in value:
            if self._room <= 0:
                kept.append(_CUT)
                break
            kept.append(self.of(element, depth + 1))
        return kept


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
            hand_over(self.logfile_read)
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


def hand_over(events: Events) -> None:
    """Have ansible-runner's display callback give its events to these, from when Ansible loads it."""
    loader = importlib.import_module("ansible.plugins.loader").PluginLoader
    callback = os.path.join(importlib.import_module("ansible_runner.utils").get_callback_dir(), _CALLBACK)
    original = loader._load_module_source

    def load(self: object, *, python_module_name: str, path: str) -> Any:
        module = original(self, python_module_name=python_module_name, path=path)
        if os.path.realpath(path) == os.path.realpath(callback):
            module.EventContext.dump_begin, module.EventContext.dump_end = begin, end
        return module

    def begin(context: Any, _: object) -> None:
        with context.display_lock:
            flush()
            events.begin(context.get_begin_dict())

    def end(context: Any, _: object) -> None:
        with context.display_lock:
            flush()
            events.end()

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
