"""Makes of modules what Ansible sends to a host.

A line of the standard input is a JSON list: the module's file, a directory of its own
module_utils or null, the compression, and the file for what is made. A line is printed
when it is there: 0, or how it went wrong.
"""

import json
import os
import sys
import traceback
from pathlib import Path

from ansible import constants
from ansible.executor.module_common import modify_module
from ansible.parsing.dataloader import DataLoader
from ansible.plugins.loader import init_plugin_loader, module_utils_loader
from ansible.template import Templar


def make(module: str, directory: str | None, compression: str, result: str) -> None:
    constants.DEFAULT_LOCAL_TMP = str(Path(result).parent)  # What was made is kept there.
    if directory:
        module_utils_loader.add_directory(directory)
    built = modify_module(
        module_name=module.rpartition("/")[2].removesuffix(".py"),
        module_path=module,
        module_args={"_ansible_tracebacks_for": ["error"], "_ansible_keep_remote_files": False},
        templar=Templar(loader=DataLoader()),
        task_vars={"ansible_playbook_python": sys.executable},
        module_compression=compression,
        remote_is_local=True,
    )
    Path(result).write_bytes(built.b_module_data)


def forked(arguments: list[str]) -> int:
    """Make it in a fork: Ansible remembers where module_utils are."""
    pid = os.fork()
    if pid == 0:
        try:
            make(*arguments)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return os.waitpid(pid, 0)[1]


init_plugin_loader()
for line in sys.stdin:
    print(forked(json.loads(line)), flush=True)
