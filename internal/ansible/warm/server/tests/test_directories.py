"""A task's directory is what the shell would have made of it, and ends as the shell would end it."""

import importlib
import os
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from ensign_warm import directories

NAME = "ansible-tmp-1795324042.5-123-456"
USUAL = {"PATH": "/usr/bin:/bin"}
Seen = tuple[bytes | None, dict[str, str]]


def commands(place: Path) -> tuple[str, str]:
    """Return what Ansible has the shell do before and after a task."""
    shell = importlib.import_module("ansible.plugins.shell.sh").ShellModule()
    texts = shell.mkdtemp(basefile=NAME, tmpdir=str(place)), shell.remove(f"{place}/{NAME}/", recurse=True)
    make, remove = (f"/bin/sh -c {importlib.import_module('shlex').quote(text)}" for text in texts)
    return make, remove


def by_shell(command: str) -> bytes:
    return subprocess.run(command, shell=True, executable="/bin/sh", check=True, capture_output=True).stdout  # noqa: S602


def ours(command: object) -> bytes | None:
    return directories.done(command, "/", USUAL)


def seen(root: Path) -> dict[str, str]:
    return {str(path.relative_to(root)): stat.filemode(path.lstat().st_mode) for path in sorted(root.rglob("*"))}


@pytest.mark.parametrize("below", ["", "new", "new/and/deep"])
def test_a_directory_is_made_as_by_the_shell(tmp_path: Path, below: str) -> None:
    sights = []
    for name, work in (("shell", by_shell), ("ours", ours)):
        root = tmp_path / name
        root.mkdir()
        printed = work(commands(root / below)[0])
        assert printed is not None
        sights.append((printed.replace(f"/{name}/".encode(), b"/"), seen(root)))
    assert sights[0] == sights[1]
    assert NAME in str(sights[0])
    assert os.umask(0o022) == 0o022


def test_a_directory_is_removed_as_by_the_shell(tmp_path: Path) -> None:
    make, remove = commands(tmp_path / "place")
    for work in (by_shell, ours):
        assert work(make) is not None
        directory = tmp_path / "place" / NAME
        (directory / "file").touch(mode=0o400)
        (directory / "link").symlink_to(tmp_path)
        assert work(remove) == b""
        assert seen(tmp_path) == {"place": "drwx------"}


def _file(root: Path) -> None:
    (root / "place").write_text("")


def _taken(root: Path) -> None:
    (root / "place" / NAME).mkdir(parents=True)


def _deep(root: Path) -> None:
    (root / "place" / NAME / "directory").mkdir(parents=True)
    (root / "place" / NAME / "file").touch()


def _linked(root: Path) -> None:
    (root / "elsewhere").mkdir()
    (root / "elsewhere" / "file").touch()
    (root / "place").mkdir()
    (root / "place" / NAME).symlink_to(root / "elsewhere")


UNFIT: dict[str, tuple[int, Callable[[Path], None]]] = {
    "what is no directory": (0, _file),
    "one that is there already": (0, _taken),
    "one with directories": (1, _deep),
    "a link": (1, _linked),
    "none": (1, lambda _: None),
}


@pytest.mark.parametrize(("which", "furnish"), UNFIT.values(), ids=UNFIT.keys())
def test_the_shell_has_to_do_with(tmp_path: Path, which: int, furnish: Callable[[Path], None]) -> None:
    furnish(tmp_path)
    before = seen(tmp_path)
    assert ours(commands(tmp_path / "place")[which]) is None
    assert seen(tmp_path) == before


Strange = tuple[str, object, dict[str, str]]
STRANGE: dict[str, Strange] = {
    "nothing strange": ("", "/", {}),
    "a library in every program": ("", "/", {"LD_PRELOAD": "/x.so"}),
    "functions for a shell": ("", "/", {"BASH_FUNC_mkdir%%": "() { :; }"}),
    "settings for a shell": ("", "/", {"SHELLOPTS": "noexec"}),
    "further settings for a shell": ("", "/", {"BASHOPTS": "xpg_echo"}),
    "settings for programs": ("", "/", {"POSIXLY_CORRECT": "1"}),
    "programs of the working directory": ("", "/", {"PATH": ":/usr/bin:/bin"}),
    "a working directory that is gone": ("", "/nowhere", {}),
    "a working directory that is none": ("", "/bin/sh", {}),
    "no working directory": ("", None, {}),
    "another program to make directories": ("mkdir", "/", {}),
    "another program to remove them": ("rm", "/", {}),
}


@pytest.mark.parametrize(("program", "directory", "extra"), STRANGE.values(), ids=STRANGE.keys())
def test_the_shell_sees_to_what_is_strange(
    tmp_path: Path, program: str, directory: object, extra: dict[str, str]
) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / (program or "another")).touch(mode=0o755)
    environment = {"PATH": f"{tmp_path}/own:{USUAL['PATH']}"} | extra
    printed = directories.done(commands(tmp_path / "place")[0], directory, environment)
    assert (printed is None) is bool(program or extra or directory != "/")


@pytest.mark.parametrize("what", ["/", "/bin/sh"])
def test_the_shell_says_what_may_not_be_entered_or_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    make, _ = commands(tmp_path / "place")
    able = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: path != what and able(path, mode))
    assert ours(make) is None


def others(make: str, remove: str) -> list[object]:
    """Return commands that look nearly like the two."""
    return [
        *(make.replace("77", "22"), make.replace("mkdir -p", "mkdir"), make.replace("`\" )'", "`\" ); id'")),
        *(make.replace("/place", "/.."), make.replace("/place", "/$x"), make.replace("/place", "/pläce")),
        *(make.replace(f"{NAME}=", "own="), make.replace(NAME, "own", 1), make.replace(NAME, "own"), f"{make}; id"),
        *(make.replace("/place ", "/own ", 1), make[::-1].replace("ecalp/", "nwo/", 1)[::-1]),
        *(remove.replace(NAME, "own"), remove.replace(NAME, f"{NAME}ä"), remove.replace("/place", "/*"), remove[:-1]),
        remove.replace("/place", "/$x"),
        *(remove.replace("/ >", " >"), remove.replace("2>&1", "2>&1; id"), f"{remove}; id", ["/bin/sh", "-c", "id"]),
    ]


def test_other_commands_are_the_shells(tmp_path: Path) -> None:
    make, remove = commands(tmp_path / "place")
    for place in ("place", "*", "$x"):
        for name in (NAME, f"{NAME}ä", "own"):
            (tmp_path / place / name).mkdir(parents=True)
    before = seen(tmp_path)
    for command in others(make, remove):
        assert command not in (make, remove)
        assert ours(command) is None
    assert seen(tmp_path) == before
    for place in ("place", "*", "$x"):
        (tmp_path / place).rename(tmp_path / f"former {place}")
    before = seen(tmp_path)
    for command in others(make, remove):
        assert ours(command) is None
    assert seen(tmp_path) == before
    assert ours(make) is not None
