"""Draw what a command prints at a terminal as SVG, with its colours: picture.py FILE TITLE COMMAND...

The command runs at a terminal of its own, until it ends or, with UNTIL, until a line matches this regular expression.
With FROM the picture begins with the first line that matches that one.
"""

import io
import os
import pty
import re
import signal
import sys
import termios
from pathlib import Path

from rich.console import Console
from rich.text import Text

COLUMNS = 116


def record(command: list[str], until: str) -> str:
    """Return what the command prints at a terminal."""
    pid, terminal = pty.fork()
    if pid == 0:
        termios.tcsetwinsize(sys.stdout.fileno(), (50, COLUMNS))
        os.environ.update(TERM="xterm-256color", COLUMNS=str(COLUMNS))
        os.environ.pop("NO_COLOR", None)
        os.execvp(command[0], command)  # noqa: S606 — The maker of a picture names the command.
    printed = b""
    while not (until and re.search(until, printed.decode(errors="replace"), re.MULTILINE)):
        try:
            chunk = os.read(terminal, 1 << 16)
        except OSError:  # The command has ended.
            break
        if not chunk:
            break
        printed += chunk
    if until:
        os.kill(pid, signal.SIGTERM)
    os.waitpid(pid, 0)
    return printed.decode().replace("\r\n", "\n")


def drawing(text: str, title: str) -> str:
    """Return the text as SVG, whose fonts are those of the reader."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    console.print(Text.from_ansi(text.strip("\n")), soft_wrap=False)
    svg = console.export_svg(title=title, unique_id="picture")
    return re.sub(r"\s*@font-face \{.*?\}", "", svg, flags=re.DOTALL)


def main() -> None:
    """Run the command and write the picture."""
    target, title, *command = sys.argv[1:]
    lines = record(command, os.environ.get("UNTIL", "")).rstrip("\n").split("\n")
    first = next((n for n, line in enumerate(lines) if re.search(os.environ.get("FROM", ""), line)), 0)
    Path(target).write_text(drawing("\n".join(lines[first:]), title) + "\n", encoding="utf-8")


main()
