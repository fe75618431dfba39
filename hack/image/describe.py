"""Describe an image: its configuration, and the files that people who build FROM it rely on.

Usage: describe.py ROOT <CONFIGURATION

Standard input is the configuration in OCI's form. ROOT is where the image is mounted.
"""

from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

# Directories that are listed. Of the Python that the base image brings, nothing is.
LISTED = ("tini", "etc/ansible", "opt", "usr/local/bin", "usr/share/ansible")
# Where any user may write, in every Debian.
FOR_ALL = {"dev", "proc", "run/lock", "sys", "tmp", "var/tmp"}
USER = 1001


def configuration(config: dict[str, object]) -> Iterator[str]:
    """Yield a line for each thing that the configuration says."""
    for key in ("User", "WorkingDir", "Entrypoint", "Cmd"):
        yield f"{key}: {json.dumps(config.get(key))}"
    for entry in sorted(str(entry) for entry in config.get("Env") or ()):  # type: ignore[attr-defined]
        yield f"Env: {entry}"
    for name, value in sorted(dict(config.get("Labels") or {}).items()):  # type: ignore[call-overload]
        if not name.startswith("io.buildah"):
            yield f"Label: {name}={value}"


def files(root: Path) -> Iterator[str]:
    """Yield mode, owner and path of what is below the listed directories."""
    for top in LISTED:
        yield from (line(root, path) for path in below(root / top))


def below(top: Path) -> Iterator[Path]:
    """Yield a path and, sorted, all that is below it."""
    if os.path.lexists(top):
        yield top
    if top.is_dir() and not top.is_symlink():
        for path in sorted(top.iterdir()):
            yield from below(path)


def line(root: Path, path: Path) -> str:
    info = path.lstat()
    target = f" -> {path.readlink()}" if path.is_symlink() else ""
    return f"{stat.filemode(info.st_mode)} {info.st_uid}:{info.st_gid} /{path.relative_to(root)}{target}"


def writable(root: Path) -> Iterator[str]:
    """Yield what the image's user may write to, besides what any user may."""
    for directory, names, others in os.walk(root):
        at = Path(directory).relative_to(root).as_posix()
        names[:] = [name for name in names if f"{at}/{name}".removeprefix("./") not in FOR_ALL]
        for path in sorted(Path(directory, name) for name in names + others):
            info = path.lstat()
            may = info.st_uid == USER or info.st_mode & 0o002 or (info.st_gid == 0 and info.st_mode & 0o020)
            if may and not path.is_symlink():
                yield f"Writable: /{path.relative_to(root)}"


def main(root: Path) -> None:
    for part in (configuration(json.load(sys.stdin)), files(root), writable(root)):
        for text in part:
            print(text)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
