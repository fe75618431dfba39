"""The kinds of programs that servers have imported."""

import os
import sys
from collections.abc import Iterable
from types import CodeType, ModuleType
from typing import NoReturn, Protocol

from ensign_warm import leave, process
from ensign_warm.loop import Lessons
from ensign_warm.wire import Refused, Request


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


def source(request: Request) -> CodeType:
    """Return what the first argument is to execute; called in the fork, which runs what is there at that moment."""
    try:
        path = os.fsdecode(request.arguments[0])
        with open(path, "rb") as file:
            return compile(file.read(), path, "exec", dont_inherit=True)
    except (OSError, IndexError, ValueError, SyntaxError) as error:
        raise Refused("program") from error


def run(code: CodeType, request: Request, ahead: Iterable[ModuleType] = ()) -> NoReturn:
    """Run the code as this interpreter's script. What was imported ahead of sys.modules is left alone at the end."""
    sys.argv = [os.fsdecode(argument) for argument in request.arguments]
    sys.orig_argv = [sys.executable, *sys.argv]
    process.show_arguments([os.fsencode(argument) for argument in sys.orig_argv])
    leave.run([code], sys.argv[0], os.path.dirname(os.path.realpath(sys.argv[0])), ahead)
