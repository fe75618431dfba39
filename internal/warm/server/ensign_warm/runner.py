"""ansible-runner."""

import functools
import importlib
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any, NoReturn

from ensign_warm import environment, kinds
from ensign_warm.wire import Refused, Request


class Runner:
    """ansible-runner, which starts a stand-in where it would start ansible-playbook."""

    command = b"ansible-runner"
    lessons = None

    def __init__(self, program: str, playbook: str, standin: str) -> None:
        self._script = kinds.Script(program)
        self._playbook, self._standin = playbook, standin
        self._recorder = environment.Recorder()
        self._own: dict[bytes, bytes] = {}

    def load(self) -> list[ModuleType]:
        self._own, before = environment.current(), set(sys.modules)
        with self._recorder:
            importlib.import_module("ansible_runner.__main__")
        return kinds.imported(before)

    def admit(self, request: Request) -> None:
        if name := environment.difference(self._own, request.environment, self._recorder.names):
            raise Refused(f"variable {name}")
        self._script.read()

    def become(self, request: Request) -> NoReturn:
        pexpect = importlib.import_module("pexpect.pty_spawn")
        pexpect.spawn._spawnpty = self._redirected(pexpect.spawn._spawnpty)
        terminal = importlib.import_module("ptyprocess.ptyprocess").PtyProcess
        terminal.close = prompt(terminal.close)
        self._script.run(request)

    def _redirected(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Start the stand-in instead, which nothing shows: neither PATH nor what ansible-runner records."""

        @functools.wraps(original)
        def start(spawn: object, args: list[Any], **options: Any) -> Any:
            if args and args[0] in (self._playbook, self._playbook.encode()):
                args = [type(args[0])(self._standin) if isinstance(args[0], str) else self._standin.encode(), *args[1:]]
            return original(spawn, args, **options)

        return start


def prompt(close: Callable[..., None]) -> Callable[..., None]:
    """Close a terminal without the pause of 0.1 s for its process to end, if that has been reaped."""

    @functools.wraps(close)
    def closed(terminal: Any, force: bool = True) -> None:
        if terminal.terminated:
            terminal.delayafterclose = 0
        close(terminal, force=force)

    return closed
