"""One run: ansible-runner and the playbook in the same process, with events that are never text.

python ensign_run.py ARGUMENTS-OF-ANSIBLE-RUNNER

The standard output carries only events, as lines of JSON. This process first moves it to
another descriptor, which no program that the run starts inherits. Descriptors 1 and 2 are
then both the standard error, which carries text.

ansible-runner handles inventory, variables, settings and artifacts as usual. This program
replaces two parts of it. ansible-runner would start ansible-playbook behind a terminal; here
the playbook runs in this process. And ansible-runner's display callback would print events
between escape sequences, which ansible-runner then looks for in all text that is displayed;
here the callback passes each event on as an object.
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
_TERMINAL_SIZE = struct.pack("HHHH", 24, 80, 0, 0)  # of ansible-runner's terminal: rows and columns
_BUFFER_SIZE = 1 << 20

# Limits of an event in bytes of JSON: a name, a text, a result, what each of its values counts in addition to its
# text, and the counts by host. All of them together are less than jobevent's maxLineBytes. And the depth of a result.
_MAX_NAME, _MAX_TEXT, _MAX_RESULT, _VALUE_OVERHEAD, _MAX_COUNTS = 1 << 10, 64 << 10, 256 << 10, 16, 24 << 10
_MAX_DEPTH = 64
_MAX_CHARACTER_BYTES = 6  # in JSON
_MAX_INTEGER_BITS = 256
_CUT, _CUT_KEY = "… [cut]", "…"  # jobevent.CutMark and jobevent.CutKey.
_NAME_FIELDS = ("play", "task", "role", "host", "task_path", "task_action", "resolved_action")
_COUNT_FIELDS = ("ok", "changed", "failures", "dark", "skipped", "rescued", "ignored", "processed")


def main(arguments: list[str]) -> NoReturn:
    """Run ansible-runner, and exit with its exit code."""
    output = os.dup(_STDOUT)
    os.dup2(_STDERR, _STDOUT, inheritable=True)
    sys.argv = ["ansible-runner", *arguments]
    command_line = importlib.import_module("ansible_runner.__main__")
    runner: Any = importlib.import_module("ansible_runner.runner")
    runner.pexpect = PatchedModule(runner.pexpect, spawn=InProcessPlaybook)
    runner.OutputEventFilter = lambda handle, *_, **__: EventFilter(output, handle)
    sys.exit(command_line.main(arguments))


class PatchedModule:
    """A module in which some attributes are replaced."""

    def __init__(self, module: ModuleType, **others: Any) -> None:
        self.__dict__.update(others)
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)


class EventFilter:
    """Replaces ansible-runner's OutputEventFilter. It never looks for events in text.

    It writes each event with the text that was displayed for it. It writes text that belongs to no event line by
    line.
    """

    def __init__(self, output: int, handle: Any) -> None:
        self._output, self._handle = output, handle
        self._text = io.StringIO()
        self._event: dict[str, Any] | None = None

    def write(self, data: str) -> None:
        self._text.write(data)
        if self._event is None and "\n" in data:
            *lines, rest = self._take_text().split("\n")
            self._text.write(rest)
            for line in lines:
                self._report({"stdout": truncate(line, _MAX_TEXT)})

    def begin(self, event: dict[str, Any]) -> None:
        self.end()
        self._event = bounded_event(event)

    def end(self) -> None:
        text, event = truncate(self._take_text(), _MAX_TEXT), self._event
        self._event = None
        if event is not None or text:
            self._report({**(event or {}), "stdout": text})

    def flush(self) -> None:
        """Do nothing, because nothing is buffered."""

    def close(self) -> None:
        self.end()
        if self._handle:
            self._handle.close()

    def _take_text(self) -> str:
        text, self._text = self._text.getvalue(), io.StringIO()
        return text

    def _report(self, event: dict[str, Any]) -> None:
        line = memoryview(encode_json(event) + b"\n")
        while line:
            line = line[os.write(self._output, line) :]


_encode = json.JSONEncoder(ensure_ascii=False).encode


def encode_json(value: object) -> bytes:
    return _encode(value).encode("utf-8", "replace")


def bounded_event(event: dict[str, Any]) -> dict[str, Any]:
    """Return a copy of the fields of an event that the operator reads, bounded in size."""
    data = event.get("event_data", {})
    kept: dict[str, Any] = {name: truncate(data[name], _MAX_NAME) for name in _NAME_FIELDS if name in data}
    kept.update({name: bounded_counts(data[name]) for name in _COUNT_FIELDS if isinstance(data.get(name), dict)})
    if isinstance(data.get("duration"), float):
        kept["duration"] = data["duration"]
    if data.get("ignore_errors") is True:
        kept["ignore_errors"] = True
    if isinstance(data.get("res"), dict):
        kept["res"] = BoundedCopy().copy(data["res"])
    return {"event": event["event"], "uuid": event["uuid"], "created": event["created"], "event_data": kept}


def truncate(text: object, limit: int) -> str:
    """Return the part of a text that is within the limit, marked if it was truncated; "" for other types."""
    if not isinstance(text, str):
        return ""
    text = str.__str__(text)  # Ansible has subclasses of str whose __str__ returns another text.
    if len(text) * _MAX_CHARACTER_BYTES + 2 <= limit:
        return text
    kept = text[:limit]
    while kept and (size := len(encode_json(kept))) > limit:
        kept = kept[: len(kept) * limit // size]
    return kept if len(kept) == len(text) else kept + _CUT


def bounded_counts(by_host: dict[str, int]) -> dict[str, int]:
    """Return the counts by host. The counts of hosts beyond the limit are added up under _CUT_KEY."""
    kept: dict[str, int] = {}
    remaining = _MAX_COUNTS
    for host, number in by_host.items():
        key = truncate(host, _MAX_NAME)
        remaining -= len(encode_json(key)) + _VALUE_OVERHEAD
        key = key if remaining > 0 else _CUT_KEY
        kept[key] = kept.get(key, 0) + number
    return kept


def json_scalar(value: object) -> Any:
    """Return a value other than text and containers for JSON."""
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, datetime.date):
        return value.isoformat()
    if value is None or (isinstance(value, int) and value.bit_length() <= _MAX_INTEGER_BITS):
        return value
    return f"({type(value).__name__})"  # Not str(value): Ansible decrypts vault values there.


class BoundedCopy:
    """Copies a value for JSON up to a maximum size. The copy shows what was left out."""

    def __init__(self) -> None:
        self._remaining = _MAX_RESULT

    def copy(self, value: object, depth: int = 0) -> Any:
        self._remaining -= _VALUE_OVERHEAD
        is_container = isinstance(value, (dict, list, tuple))
        if self._remaining <= 0 or (is_container and depth == _MAX_DEPTH):
            return _CUT
        if isinstance(value, dict):
            return self._members(value, depth)
        if isinstance(value, (list, tuple)):
            return self._elements(value, depth)
        return self._text(value, _MAX_TEXT) if isinstance(value, str) else json_scalar(value)

    def _text(self, value: str, limit: int) -> str:
        text = truncate(value, min(limit, self._remaining))
        self._remaining -= len(encode_json(text))
        return text

    def _members(self, value: dict[Any, Any], depth: int) -> dict[str, Any]:
        kept: dict[str, Any] = {}
        for key, member in value.items():
            if self._remaining <= 0:
                kept[_CUT_KEY] = _CUT
                break
            name = self._text(key if isinstance(key, str) else json.dumps(key, default=repr), _MAX_NAME)
            kept[name] = self.copy(member, depth + 1)
        return kept

    def _elements(self, value: list[Any] | tuple[Any, ...], depth: int) -> list[Any]:
        kept: list[Any] = []
        for element in value:
            if self._remaining <= 0:
                kept.append(_CUT)
                break
            kept.append(self.copy(element, depth + 1))
        return kept


class InProcessPlaybook:
    """Replaces pexpect.spawn for ansible-runner. It starts no process: expect() runs the playbook in this one."""

    def __init__(self, command: str, args: list[str], cwd: str, env: dict[str, str], **_: Any) -> None:
        program = shutil.which(command, path=env.get("PATH"))
        if os.path.basename(command) != _PROGRAM or program is None:
            error = importlib.import_module("pexpect").ExceptionPexpect
            raise error(f"The command was not found or was not executable: {command}.")
        self._argv, self._directory, self._environment = [program, *args], cwd, env
        self._alive = True
        self.exitstatus: int | None = None
        self.pid = os.getpid()
        self.logfile_read: Any = None  # The EventFilter, which ansible-runner sets.

    def isalive(self) -> bool:
        return self._alive

    def expect(self, patterns: Any, **_: Any) -> int:
        """Run the playbook, once. Report the end of its output."""
        if self._alive:
            self._alive = False
            self.exitstatus = self._run()
        return patterns.index(importlib.import_module("pexpect").EOF) if isinstance(patterns, list) else 0

    def close(self) -> None:
        """Do nothing, because nothing is open."""

    def _run(self) -> int:
        """Give this process the environment, directory and signal handlers of a new one, and run the playbook."""
        os.environ.clear()
        os.environ.update(self._environment)
        os.chdir(self._directory)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        attach_terminal()
        sys.argv = self._argv
        sys.path[0] = os.path.dirname(self._argv[0])
        before = sys.stdout, sys.stderr
        redirect_output(open_display(self.logfile_read, _STDOUT), open_display(self.logfile_read, _STDERR))
        try:
            redirect_events(self.logfile_read)
            return exit_code_of(importlib.import_module("ansible.cli.playbook").main)
        finally:
            flush()
            redirect_output(*before)


def attach_terminal() -> None:
    """Make the standard input a terminal on which nobody types: a prompt waits, as the docs say."""
    with contextlib.suppress(OSError):
        os.setsid()  # Only a session leader can have a terminal. This process may be one already.
    with contextlib.suppress(OSError):
        _, terminal = pty.openpty()  # The other end stays open until this process ends.
        mode = termios.tcgetattr(terminal)
        mode[3] &= ~termios.ECHO
        termios.tcsetattr(terminal, termios.TCSANOW, mode)
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, _TERMINAL_SIZE)
        fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
        os.dup2(terminal, _STDIN, inheritable=True)
        os.close(terminal)


class DisplayStream(io.RawIOBase):
    """The playbook's standard output or error. It passes text to the EventFilter, with the line ends of a terminal."""

    def __init__(self, events: Any, descriptor: int) -> None:
        self._events, self._descriptor, self._pid = events, descriptor, os.getpid()
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._descriptor

    def write(self, data: Any) -> int:
        if os.getpid() != self._pid:  # A forked process must not write to the EventFilter.
            return os.write(self._descriptor, data)
        self._events.write(self._decode(bytes(data).replace(b"\n", b"\r\n")))
        return len(data)


def open_display(events: Any, descriptor: int) -> Any:
    binary = io.BufferedWriter(DisplayStream(events, descriptor), _BUFFER_SIZE)
    stream: Any = io.TextIOWrapper(binary, "utf-8", newline="\n", line_buffering=True)
    stream.mode = "w"
    return stream


def redirect_output(output: Any, errors: Any) -> None:
    sys.stdout = sys.__stdout__ = output  # type: ignore[misc]
    sys.stderr = sys.__stderr__ = errors  # type: ignore[misc]


def flush() -> None:
    sys.stdout.flush()
    sys.stderr.flush()


def redirect_events(events: EventFilter) -> None:
    """Make ansible-runner's display callback pass its events to the EventFilter, once Ansible loads the callback."""
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


def exit_code_of(program: Callable[[], object]) -> int:
    """Call the program and return the exit code with which an interpreter would end after it."""
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
