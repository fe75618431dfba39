"""One run: ansible-runner and the playbook in the same process, with events that are never text.

python ensign_run.py ARGUMENTS-OF-ANSIBLE-RUNNER

The standard output carries only events, as lines of JSON. This process first moves it to
another descriptor, which no program that the run starts inherits. Descriptors 1 and 2 are
then both the standard error, which carries text.

ansible-runner handles inventory, variables, settings and artifacts as usual. This program replaces two parts of
it. ansible-runner would start ansible-playbook behind a terminal; here the playbook runs in this process. And its
display callback would print events between escape sequences, which ansible-runner then looks for in all text that
is displayed; here the callback passes each event on as an object.
"""

import codecs
import contextlib
import datetime
import fcntl
import importlib
import io
import os
import pty
import re
import shutil
import signal
import struct
import sys
import termios
import traceback
import uuid
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NoReturn

from ensign_events import CHANGED_UNDER_NO_LOG, bounded_event, encode_json, truncate_text
from ensign_jobs import AsyncJobs, noting
from ensign_refusal import refusal_of

_PROGRAM = "ansible-playbook"
_CALLBACK = "awx_display.py"
_REFUSED = "ensign_content_refused"  # jobevent.ContentRefused
_STDIN, _STDOUT, _STDERR = 0, 1, 2
_TERMINAL_SIZE = struct.pack("HHHH", 24, 80, 0, 0)  # of ansible-runner's terminal: rows and columns
_BUFFER_SIZE = 1 << 20


def main(arguments: list[str]) -> NoReturn:
    """Run ansible-runner, and exit with its exit code."""
    offer_to_oom_killer()
    output = os.dup(_STDOUT)
    os.dup2(_STDERR, _STDOUT, inheritable=True)
    sys.argv = ["ansible-runner", *arguments]
    command_line = importlib.import_module("ansible_runner.__main__")
    runner: Any = importlib.import_module("ansible_runner.runner")
    runner.pexpect = SimpleNamespace(**(vars(runner.pexpect) | {"spawn": InProcessPlaybook}))
    runner.OutputEventFilter = lambda handle, *_, **__: EventFilter(output, handle)
    sys.exit(command_line.main(arguments))


def offer_to_oom_killer() -> None:
    """When memory runs out, have the kernel end a run before the manager and the server of all warm runs."""
    with contextlib.suppress(OSError, ValueError), open("/proc/self/oom_score_adj", "r+b", buffering=0) as file:
        file.write(b"%d" % min(int(file.read()) + 100, 1000))


class EventFilter:
    """Replaces ansible-runner's OutputEventFilter. It never looks for events in text.

    It writes each event with the text that was displayed for it. It writes text that belongs to no event line by
    line.
    """

    def __init__(self, output: int, handle: Any) -> None:
        self._output, self._handle = output, handle
        self._text = io.StringIO()
        self._event: dict[str, Any] | None = None
        self.lost: dict[str, int] | None = None  # Of the closing statistics; see complete_statistics.

    def write(self, data: str) -> None:
        self._text.write(data)
        if self._event is None and "\n" in data:
            *lines, rest = self._take_text().split("\n")
            self._text.write(rest)
            for line in lines:
                self._report({"stdout": truncate_text(line)})

    def begin(self, event: dict[str, Any]) -> None:
        self.end()
        if event["event"] == "playbook_on_stats" and self.lost is not None:
            event["event_data"]["lost"] = self.lost
        self._event = bounded_event(event)

    def end(self) -> None:
        text, event = truncate_text(self._take_text()), self._event
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
            complete_statistics(self.logfile_read)
            report_refusals(self.logfile_read)
            hide_validation()
            keep_settings(self._environment.get("PYTHONPATH", "").partition(os.pathsep)[0])
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
    place = importlib.import_module("ansible_runner.utils").get_callback_dir()
    original = loader._load_module_source

    def load(self: object, *, python_module_name: str, path: str) -> Any:
        module = original(self, python_module_name=python_module_name, path=path)
        if path.endswith(_CALLBACK) and os.path.realpath(path) == os.path.realpath(os.path.join(place, _CALLBACK)):
            module.EventContext.dump_begin, module.EventContext.dump_end = begin, end
            keep_changed(module.CallbackModule)
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


def keep_changed(callback: Any) -> None:
    """Keep that a task under no_log changed something, as Ansible does. ansible-runner's callback drops it."""
    original = callback.capture_event_data

    def capture_event_data(self: object, event: str, **data: Any) -> Any:
        result = data.get("res")
        if isinstance(result, dict) and result.get("_ansible_no_log") and result.get("changed") is True:
            data[CHANGED_UNDER_NO_LOG] = True
        return original(self, event, **data)

    callback.capture_event_data = capture_event_data


def complete_statistics(events: EventFilter) -> None:
    """Before the closing statistics, wait for asynchronous jobs, and add which hosts are still unreachable.

    The statistics also count a host whose error `meta: clear_host_errors` has cleared. Without this addition, which
    another version of Ansible may not allow, the operator takes each counted host for lost.
    """
    manager = importlib.import_module("ansible.executor.task_queue_manager").TaskQueueManager
    original = manager.send_callback
    jobs = AsyncJobs()

    def send_callback(self: Any, method_name: str, *args: Any, **kwargs: Any) -> Any:
        noting(jobs, method_name, args)
        if method_name == "v2_playbook_on_stats":
            jobs.wait(lambda task: report_waiting(events, task))
            with contextlib.suppress(AttributeError, TypeError):
                events.lost = {str(host): self._stats.dark.get(host, 1) for host in self._unreachable_hosts}
        return original(self, method_name, *args, **kwargs)

    manager.send_callback = send_callback


def report_waiting(events: EventFilter, task: Any) -> None:
    """Report that the run waits for the job of a task, as a task that begins: it is named if the run ends there."""
    name = f"{task.get_name()} (wait for its asynchronous job)"
    data = {"task": name, "task_action": task.action, "task_path": task.get_path()}
    with contextlib.suppress(AttributeError, TypeError):
        data["play"] = task.get_play().get_name()
    flush()
    events.begin(new_event("playbook_on_task_start", data))
    events.end()


def new_event(kind: str, data: dict[str, Any]) -> dict[str, Any]:
    now = datetime.datetime.now(datetime.UTC).isoformat()
    return {"event": kind, "uuid": str(uuid.uuid4()), "created": now, "event_data": data}


def report_refusals(events: EventFilter) -> None:
    """Report by an event that Ansible refuses to load content, before Ansible displays the error and ends."""
    command_line = importlib.import_module("ansible.cli.playbook").PlaybookCLI
    original = command_line.run

    def run(self: object) -> Any:
        try:
            return original(self)
        except Exception as error:
            if refusal := refusal_of(error):
                flush()
                events.begin(new_event(_REFUSED, refusal))
                events.end()
            raise

    command_line.run = run


def hide_validation() -> None:
    """Let the check of a role's arguments have the no_log of the include_role that passes them.

    Ansible adds that check as a task of the role, which does not inherit from the include, and whose error shows the
    values. A no_log that is a template counts, whatever its value, and so does one of an outer include_role.
    """
    include: Any = importlib.import_module("ansible.playbook.role_include").IncludeRole
    original = include.get_block_list

    def get_block_list(self: Any, *args: Any, **kwargs: Any) -> Any:
        blocks, handlers = original(self, *args, **kwargs)
        if is_hidden(self):
            for task in (task for block in blocks for task in block.block):
                if str(getattr(task, "action", "")).endswith("validate_argument_spec"):
                    task.no_log = True
        return blocks, handlers

    include.get_block_list = get_block_list


def is_hidden(part: Any) -> bool:
    """Report whether a part of a playbook, or what includes it, has no_log. A task does not inherit from an include."""
    while part is not None:
        if getattr(part, "no_log", False):
            return True
        part = getattr(part, "_parent", None)
    return False


def keep_settings(guard: str) -> None:
    """Keep what each run needs of its environment where a task has an `environment` of its own.

    PYTHONPATH begins with the directory with which that of runs begins (guard/), and requests to the API proxy on
    127.0.0.1 bypass an HTTP proxy.
    """
    shell: Any = importlib.import_module("ansible.plugins.shell").ShellBase
    original = shell.env_prefix

    def env_prefix(self: object, **variables: object) -> Any:
        if guard and "PYTHONPATH" in variables:
            variables["PYTHONPATH"] = f"{guard}{os.pathsep}{variables['PYTHONPATH']}"
        return original(self, **bypass_proxy(variables))

    shell.env_prefix = env_prefix

    action: Any = importlib.import_module("ansible.plugins.action").ActionBase
    compute = action._compute_environment_string

    def compute_environment(self: object, raw_environment_out: dict[str, Any] | None = None) -> Any:
        text = compute(self, raw_environment_out)
        if raw_environment_out:  # A module that is forked gets it, and no text of a shell.
            raw_environment_out.update(bypass_proxy(raw_environment_out))
        return text

    action._compute_environment_string = compute_environment


def bypass_proxy(variables: dict[str, Any]) -> dict[str, Any]:
    """Return variables of a task in which NO_PROXY, in both spellings, has the local addresses.

    They are not changed if they have nothing of proxies: the task then has those of the run, or of the account that
    it becomes.
    """
    names = ("NO_PROXY", "no_proxy")
    own = [str(variables[name]) for name in names if name in variables]
    if not own and not any(name.upper() in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY") for name in variables):
        return variables
    default = own[0] if own else os.environ.get("NO_PROXY", "")
    return {**variables, **{name: with_local_addresses(str(variables.get(name, default))) for name in names}}


def with_local_addresses(exceptions: str) -> str:
    present = re.split(r"[,\s]+", exceptions)
    if "*" in present:
        return exceptions
    return ",".join(filter(None, [exceptions, *(each for each in ("127.0.0.1", "localhost") if each not in present)]))


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
