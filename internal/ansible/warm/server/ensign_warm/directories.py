"""Makes and removes the directories of tasks without the shells that Ansible has for it."""

import contextlib
import functools
import importlib
import os
import re
import shutil
from typing import Any

from ensign_warm.modules import is_plain

_PLACE = re.compile(r"(/[\w.-]+)+", re.ASCII)


def install() -> None:
    base: Any = importlib.import_module("ansible.plugins.action").ActionBase
    make, remove = base._make_tmp_path, base._remove_tmp_path

    @functools.wraps(make)
    def made(own: Any, remote_user: Any = None) -> str:
        return _make(own) or str(make(own, remote_user))

    @functools.wraps(remove)
    def removed(own: Any, tmp_path: Any, force: bool = False) -> None:
        if is_plain(own) and tmp_path and (force or own._should_remove_tmp_path(tmp_path)):
            with contextlib.suppress(OSError):
                os.rmdir(tmp_path)  # It is empty, unless an action has put files there.
            shutil.rmtree(tmp_path, ignore_errors=True)
            if not os.path.lexists(tmp_path):
                own._connection._shell.tmpdir = None
                return
        remove(own, tmp_path, force)

    base._make_tmp_path, base._remove_tmp_path = made, removed


def _make(action: Any) -> str:
    """Make the directory that Ansible has a shell make; "" if that is the shell's."""
    base = str(action.get_shell_option("remote_tmp", default="~/.ansible/tmp"))
    if not is_plain(action) or not _PLACE.fullmatch(base) or ".." in base:
        return ""
    shell = action._connection._shell
    path = os.path.join(base, shell._generate_temp_dir_name())
    mask = os.umask(0o077)
    try:
        os.makedirs(base, exist_ok=True)
        os.mkdir(path)
    except OSError:
        return ""  # The shell says what is wrong.
    finally:
        os.umask(mask)
    action._cleanup_remote_tmp = True
    shell.tmpdir = path + "/"
    return str(shell.tmpdir)
