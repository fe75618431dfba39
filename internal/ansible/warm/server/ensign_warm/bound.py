"""What warm runs replace in Ansible and ansible-runner or rely on, and which sources of it are known.

A mechanism is off where a function that it depends on has another source than in the versions
that known.json was made of: `python bound.py known.json` adds those of the interpreter's own versions.
"""

import hashlib
import importlib
import importlib.util
import inspect
import json
import linecache
import os
import sys
from typing import Any

MECHANISMS = {
    # Forks that become runs (run.py, ../../runner/program): without it all runs are cold.
    "run": (
        "ansible.cli.playbook:main",
        "ansible.config.manager:find_ini_config_file",
        "ansible.plugins.loader:PluginLoader._load_module_source",
        "ansible.utils.display:Display._set_column_width",
        "ansible.utils.display:_synchronize_textiowrapper",
        "ansible.utils.path:cleanup_tmp_file",
        "ansible.utils.vars:get_unique_id",
        "ansible_runner.__main__:main",
        "ansible_runner.config.runner:RunnerConfig.prepare",
        "ansible_runner.display_callback.callback.awx_display",
        "ansible_runner.runner:Runner.run",
    ),
    # Modules in forks of the worker (modules.py, apart.py): without it they are started as in a cold run.
    "modules": (
        "ansible._internal._ansiballz._builder:ExtensionManager.get_extensions",
        "ansible.executor.module_common:_extract_interpreter",
        "ansible.executor.module_common:_find_module_utils",
        "ansible.executor.module_common:_get_ansible_module_fqn",
        "ansible.executor.module_common:_get_shebang",
        "ansible.executor.module_common:_is_binary",
        "ansible.executor.module_common:modify_module",
        "ansible.module_utils._internal._ansiballz._loader:run_module",
        "ansible.plugins.action:ActionBase._configure_module",
        "ansible.plugins.action:ActionBase._execute_module",
        "ansible.plugins.action:ActionBase._is_pipelining_enabled",
        "ansible.plugins.action:ActionBase._low_level_execute_command",
        "ansible.plugins.action:ActionBase._make_tmp_path",
        "ansible.plugins.action:ActionBase._remove_tmp_path",
        "ansible.plugins.connection.local:Connection.exec_command",
    ),
    # Ansible's own YAML, parsed once (parsed.py).
    "parsed": (
        "ansible.utils.collection_loader._collection_meta:_meta_yml_to_dict",
        "ansible.plugins.loader:PluginLoader._load_config_defs",
        "ansible.utils.plugin_docs:add_fragments",
    ),
    # Ansible's own plugins, executed once (plugins.py).
    "plugins": (
        "ansible.plugins.loader:PluginLoadContext.resolve_legacy",
        "ansible.plugins.loader:PluginLoader._load_module_source",
    ),
}
_KNOWN = os.path.join(os.path.dirname(__file__), "known.json")


def digest(function: str) -> str:
    """Return a digest of the source of a function, or of a module, which is not imported; "" if there is none."""
    try:
        return hashlib.sha256(_source(function)).hexdigest()[:16]
    except (AttributeError, ImportError, OSError, TypeError):
        return ""


def _source(function: str) -> bytes:
    place, _, path = function.partition(":")
    if not path:
        spec = importlib.util.find_spec(place)
        if spec is None or spec.origin is None:
            raise ImportError(place)
        with open(spec.origin, "rb") as file:
            return file.read()
    found: Any = importlib.import_module(place)
    for name in path.split("."):
        found = getattr(found, name)
    return inspect.getsource(inspect.unwrap(found)).encode()


def unknown() -> dict[str, str]:
    """Return the mechanisms that must be off, each with a function whose source is not known."""
    with open(_KNOWN, encoding="utf-8") as file:
        known: dict[str, list[str]] = json.load(file)
    found = {
        mechanism: function
        for mechanism, functions in MECHANISMS.items()
        for function in functions
        if digest(function) not in known.get(function, ())
    }
    linecache.clearcache()
    return found


def add(path: str) -> None:
    """Add the sources of this interpreter's versions to the file. A function that a version lacks has the digest ""."""
    known: dict[str, list[str]] = {}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            known = json.load(file)
    for functions in MECHANISMS.values():
        for function in functions:
            known[function] = sorted({*known.get(function, ()), digest(function)})
    with open(path, "w", encoding="utf-8") as file:
        json.dump(dict(sorted(known.items())), file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    add(sys.argv[1])
