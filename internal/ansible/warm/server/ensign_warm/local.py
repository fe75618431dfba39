"""What Ansible's local connection starts for modules: a stand-in for Python."""

import functools
import importlib.util
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from ensign_warm import directories

_SHELL = "/bin/sh"
_START = f"{_SHELL} -c "
_QUOTE, _QUOTED = "'", """'"'"'"""  # in text that is quoted


class Modules:
    """Starts the stand-in for Python where the local connection starts a module."""

    def __init__(self, standin: str) -> None:
        self._standin = standin
        # What the shell plugin makes of a module for this interpreter: with pipelining,
        # or with files. Whatever else it may be, with become, in another language, in the
        # background, by a plugin of the role's: it is left as it is.
        # The shell plugin quotes each value, and then the whole.
        value = r"(?:[a-zA-Z0-9_@%+=:,./-]+|'(?:[^']|'\"'\"')*')"
        self._command = re.compile(
            rf"(?P<before>(?:[A-Za-z_][A-Za-z0-9_]*={value} )*){re.escape(sys.executable)}"
            r"(?P<after>(?: [\w./@%+=-]*/AnsiballZ_\w+\.py)?(?: && sleep 0)?)"
        )
        self._connection = ""

    def redirect(self) -> None:
        local = importlib.util.find_spec("ansible.plugins.connection.local")
        self._connection = str(local.origin) if local is not None else ""
        if re.fullmatch(r"[\w./-]+", self._standin):
            subprocess.Popen.__init__ = self._redirected(subprocess.Popen.__init__)  # type: ignore[method-assign]

    def _redirected(self, original: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(original)
        def start(popen: object, args: Any, *rest: Any, **options: Any) -> None:
            if sys._getframe(1).f_code.co_filename == self._connection:
                usual = options.get("shell") is True and options.get("executable") == _SHELL
                printed = directories.done(args, options.get("cwd"), os.environ) if usual else None
                if printed is not None:
                    finished(popen, args, printed)
                    return
                args = self.command(args)
            original(popen, args, *rest, **options)

        return start

    def command(self, args: Any) -> Any:
        """Return the command with the stand-in in the interpreter's place, if it runs a module."""
        inner, quoted = _unquoted(args) if isinstance(args, str) else (None, False)
        match = self._command.fullmatch(inner) if inner is not None else None
        if match is None:
            return args
        command = f"{match['before']}{self._standin}{match['after']}"
        return f"{_START}'{command.replace(_QUOTE, _QUOTED)}'" if quoted else _START + command


def _unquoted(command: str) -> tuple[str | None, bool]:
    """Return what the shell plugin has the shell do, if it is that, and whether it has quoted it."""
    text = command.removeprefix(_START)
    if not command.startswith(_START):
        return None, False
    if text == shlex.quote(text):
        return text, False
    inner = text[1:-1].replace(_QUOTED, _QUOTE)
    return (inner, True) if text == f"'{inner.replace(_QUOTE, _QUOTED)}'" else (None, False)


def finished(popen: Any, args: object, printed: bytes) -> None:
    """Let it be that of a program that has ended well, as far as the local connection looks."""
    popen.args, popen.returncode = args, 0
    popen.stdin = popen.stdout = popen.stderr = None
    popen.communicate = lambda *_: (printed, b"")
