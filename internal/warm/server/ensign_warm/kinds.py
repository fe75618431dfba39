"""The kinds of programs that servers have imported."""

import os
import sys
from collections.abc import Iterable
from types import CodeType, ModuleType
from typing import NoReturn, Protocol

from ensign_warm import leave, process
from ensign_warm.loop import Lessons
from ensign_warm.wire import Outdated, Refused, Request


class Kind(Protocol):
    """What one kind of program needs."""

    command: bytes  # as ps shows it

    @property
    def lessons(self) -> Lessons | None:
        """What forks of this kind teach their server."""

    def load(self) -> list[ModuleType]:
        """Import what the program imports, and return it; called once, in the server."""

    def admit(self, request: Request) -> None:
        """Refuse, in the fork, what a new interpreter could do differently. Nothing is changed by it."""

    def become(self, request: Request) -> NoReturn:
        """Run the program in the fork, whose descriptors and environment are those of the request."""


def imported(before: set[str]) -> list[ModuleType]:
    """Return the modules that were not there before."""
    return [module for name, module in sys.modules.items() if name not in before and isinstance(module, ModuleType)]


class Script:
    """A program of the environment that is a script for this interpreter."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.code: CodeType | None = None

    def read(self) -> None:
        """Read the script; called in the fork, which runs what is there at that moment."""
        try:
            with open(self.path, "rb") as file:
                text = file.read()
            first = text.partition(b"\n")[0]
            if first != b"#!" + os.fsencode(sys.executable):
                raise Outdated("interpreter")
            self.code = compile(text, self.path, "exec", dont_inherit=True)
        except (OSError, ValueError, SyntaxError) as error:
            raise Outdated("program") from error

    def run(self, request: Request, ahead: Iterable[ModuleType] = ()) -> NoReturn:
        """Run it. What was imported ahead, and is not in sys.modules yet, is left alone at the end."""
        arguments = [os.fsdecode(argument) for argument in request.arguments]
        sys.argv = [self.path, *arguments]
        sys.orig_argv = [sys.executable, self.path, *arguments]
        process.show_arguments([os.fsencode(argument) for argument in sys.orig_argv])
        if self.code is None:
            raise Refused("program")
        leave.run([self.code], self.path, os.path.dirname(os.path.realpath(self.path)), ahead)
