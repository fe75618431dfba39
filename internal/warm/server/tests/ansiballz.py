"""Makes of a module what Ansible sends to a host: python ansiballz.py MODULE ARGUMENTS [MODULE_UTILS]."""

import json
import os
import sys

from ansible.executor.module_common import modify_module
from ansible.parsing.dataloader import DataLoader
from ansible.plugins.loader import init_plugin_loader, module_loader, module_utils_loader
from ansible.template import Templar

init_plugin_loader()
module, arguments, *directories = sys.argv[1:]
for directory in directories:
    module_utils_loader.add_directory(directory)
path = module if "/" in module else module_loader.find_plugin_with_context(module).plugin_resolved_path
built = modify_module(
    module_name=module.rpartition("/")[2].removesuffix(".py"),
    module_path=path,
    module_args=json.loads(arguments) | {"_ansible_tracebacks_for": ["error"], "_ansible_keep_remote_files": False},
    templar=Templar(loader=DataLoader()),
    task_vars={"ansible_playbook_python": sys.executable},
    module_compression=os.environ.get("COMPRESSION", "ZIP_DEFLATED"),
    remote_is_local=True,
)
sys.stdout.buffer.write(built.b_module_data)
