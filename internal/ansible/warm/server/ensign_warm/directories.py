"""Makes and removes a task's directory as the shell commands do that Ansible has for it.

An action that may send files gets a directory before it and loses it after it. The two
commands are four shells, two processes mkdir and one rm: about 5 ms of processor time for
each task of k8s. What is not exactly such a command, what may have other programs or settings
than usual, and what does not go well is left to the shell.
"""

import os
import re
import shutil
from collections.abc import Mapping

_SHELL = "/bin/sh"
_PLACE = r"(?P<place>(?:/[\w.-]+)+)/(?P<name>ansible-tmp-[\w.-]+)"
# What Ansible's plugin sh makes of paths that it need not quote.
_MAKE = re.compile(
    r"""/bin/sh -c '\( umask 77 && mkdir -p "` echo (?P<base>(?:/[\w.-]+)+) `"&& mkdir "` echo """
    rf"""{_PLACE} `" && echo (?P=name)="` echo (?P=place)/(?P=name) `" \)'""",
    re.ASCII,
)
_REMOVE = re.compile(rf"/bin/sh -c 'rm -f -r {_PLACE}/ > /dev/null 2>&1'", re.ASCII)
# What has other programs take the place of these, or does something in them.
_PROGRAMS = {name: frozenset((f"/bin/{name}", f"/usr/bin/{name}")) for name in ("mkdir", "rm")}
_INFLUENCES = ("LD_", "BASH", "SHELLOPTS", "POSIXLY_")


def done(command: object, directory: object, environment: Mapping[str, str]) -> bytes | None:
    """Do what the command would do in the directory; return what it would print, None if it is still to be done."""
    if not isinstance(command, str) or not _ordinary(directory, environment):
        return None
    try:
        if (match := _MAKE.fullmatch(command)) and match["base"] == match["place"] == os.path.normpath(match["place"]):
            return _make(match["place"], match["name"])
        if match := _REMOVE.fullmatch(command):
            return _remove(f"{match['place']}/{match['name']}")
    except OSError:
        pass  # The shell says what it is, and does the rest.
    return None


def _ordinary(directory: object, environment: Mapping[str, str]) -> bool:
    """Tell whether a shell could be started there, and would find the usual programs."""
    path = environment.get("PATH", "")
    return (
        (isinstance(directory, str) and os.path.isdir(directory) and os.access(directory, os.X_OK))
        and all(map(os.path.isabs, path.split(os.pathsep)))
        and not any(name.startswith(_INFLUENCES) for name in environment)
        and all(shutil.which(name, path=path) in usual for name, usual in _PROGRAMS.items())
        and os.access(_SHELL, os.X_OK)
    )


def _make(place: str, name: str) -> bytes:
    path = f"{place}/{name}"
    mask = os.umask(0o077)
    try:
        os.makedirs(place, exist_ok=True)
        os.mkdir(path)
    finally:
        os.umask(mask)
    return f"{name}={path}\n".encode()


def _remove(path: str) -> bytes | None:
    """Remove a directory without directories in it."""
    if os.path.islink(path):
        return None
    with os.scandir(path) as entries:
        found = list(entries)
    if any(entry.is_dir(follow_symlinks=False) for entry in found):
        return None
    for entry in found:
        os.unlink(entry.path)
    os.rmdir(path)
    return b""
