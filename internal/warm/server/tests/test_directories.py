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


def ours(command: str) -> bytes | None:
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


STRANGE: dict[str, tuple[str, str, dict[str, str]]] = {
    "nothing strange": ("", "/", {}),
    "a library in every program": ("", "/", {"LD_PRELOAD": "/x.so"}),
    "functions for a shell": ("", "/", {"BASH_FUNC_mkdir%%": "() { :; }"}),
    "settings for a shell": ("", "/", {"SHELLOPTS": "noexec"}),
    "further settings for a shell": ("", "/", {"BASHOPTS": "xpg_echo"}),
    "programs of the working directory": ("", "/", {"PATH": ":/usr/bin:/bin"}),
    "a working directory that is gone": ("", "/nowhere", {}),
    "other programs of those names": ("own:", "/", {}),
}


@pytest.mark.parametrize(("path", "directory", "extra"), STRANGE.values(), ids=STRANGE.keys())
def test_the_shell_sees_to_what_is_strange(tmp_path: Path, path: str, directory: str, extra: dict[str, str]) -> None:
    own = tmp_path / "own"
    own.mkdir()
    for name in ("mkdir", "rm"):
        (own / name).touch(mode=0o755)
    environment = {"PATH": path.replace("own", str(own)) + USUAL["PATH"]} | extra
    printed = directories.done(commands(tmp_path / "place")[0], directory, environment)
    assert (printed is None) is bool(path or extra or directory != "/")


def test_other_commands_are_the_shells(tmp_path: Path) -> None:
    make, remove = commands(tmp_path / "place")
    for command in (
        *(make.replace("77", "22"), make.replace("mkdir -p", "mkdir"), make.replace("`\" )'", "`\" ); id'")),
        *(make.replace("/place", "/.."), make.replace(NAME, "own", 1), remove.replace(NAME, "own")),
        *(remove.replace(" > /dev", "x > /dev"), remove[:-1], remove.replace("/place", "/*"), ["/bin/sh", "-c", "id"]),
    ):
        assert directories.done(command, "/", USUAL) is None
    assert not (tmp_path / "place").exists()
