"""What of Ansible, ansible-runner and Jinja each mechanism of warm runs needs; without it, this mechanism alone is off.

"run" is forks that become runs (run.py): without it all runs are cold. "modules" is modules in forks of the worker
(modules.py, apart.py), "directories" those of tasks that are made and removed without a shell (directories.py).
The others are those of parsed.py, templates.py and immortal.py.

What a mechanism calls, or replaces by what calls it, has to take what it is passed. That it does what the
mechanism expects, trial.py tries at the start of a server. What a mechanism does itself in the place of Ansible,
no trial shows in all cases: of that known.json has digests of the sources in the versions that were tried
(../known.py).
"""

import hashlib
import importlib
import inspect
import json
import linecache
import os
from functools import reduce
from typing import Any

KNOWN = os.path.join(os.path.dirname(__file__), "known.json")

# MODULE:PATH and the arguments, of which those with "=" are passed by name.
_CALLED = {
    "run": """
ansible.cli.playbook:main args
ansible.config.manager:find_ini_config_file warnings
ansible.constants:config.get_config_value name variables=
ansible.utils.display:Display._set_column_width self
ansible.utils.display:_synchronize_textiowrapper stream lock
ansible.utils.path:cleanup_tmp_file path
ansible.utils.vars:get_unique_id
""",
    "modules": """
ansible._internal._ansiballz._builder:ExtensionManager.create task_vars=
ansible._internal._ansiballz._builder:ExtensionManager.get_extensions self
ansible.executor.module_common:_BuiltModule b_module_data= module_style= shebang= serialization_profile=
ansible.executor.module_common:_extract_interpreter text
ansible.executor.module_common:_get_ansible_module_fqn path
ansible.executor.module_common:_get_shebang interpreter task_vars templar arguments remote_is_local=
ansible.executor.module_common:_is_binary text
ansible.executor.module_common:get_module_encoder profile direction
ansible.module_utils._internal._ansiballz._loader:run_module json_params= profile= module_fqn= modlib_path= extensions=
ansible.plugins.action:ActionBase._is_pipelining_enabled self style
ansible.plugins.loader:module_utils_loader._get_paths subdirs=
ansible.utils.collection_loader._collection_finder:_get_collection_metadata collection
""",
    "directories": """
ansible.plugins.action:ActionBase._should_remove_tmp_path self path
ansible.plugins.shell:ShellBase._generate_temp_dir_name
""",
    "parsed": """
ansible.plugins.loader:yaml.load text Loader=
ansible.utils.collection_loader._collection_finder:_meta_yml_to_dict text name
ansible.utils.plugin_docs:yaml.load text Loader=
""",
    "templates": """
ansible._internal._templating._jinja_bits:AnsibleEnvironment.compile self text
ansible._internal._templating._jinja_bits:AnsibleEnvironment.compile_expression self text undefined_to_none
jinja2.compiler:_PassArg.from_obj plugin
jinja2.environment:TemplateExpression template undefined_to_none
jinja2.environment:Template.from_code environment code globals uptodate
""",
}


def unmet() -> dict[str, str]:
    """Return the mechanisms that must be off, each with a function that it lacks or whose source is not known."""
    with open(KNOWN, encoding="utf-8") as file:
        known = json.load(file)
    lacking = {m: line for m, lines in _CALLED.items() for line in lines.strip().splitlines() if not _takes(line)}
    others = {m: f for m, functions in known.items() for f, digests in functions.items() if digest(f) not in digests}
    linecache.clearcache()
    return {m: function.partition(" ")[0] for m, function in (others | lacking).items()}


def digest(function: str) -> str:
    """Return a digest of the source of a function; "" if there is none."""
    try:
        return hashlib.sha256(inspect.getsource(inspect.unwrap(_find(function))).encode()).hexdigest()[:16]
    except (AttributeError, ImportError, OSError, TypeError):
        return ""


def _takes(call: str) -> bool:
    """Report whether a function can be called in this way, as far as it says."""
    function, *arguments = call.split()
    by_place = [argument for argument in arguments if argument[-1] != "="]
    by_name = {argument[:-1]: None for argument in arguments if argument[-1] == "="}
    try:
        inspect.signature(_find(function)).bind(*by_place, **by_name)
    except (AttributeError, ImportError, TypeError, ValueError):
        return False
    return True


def _find(function: str) -> Any:
    place, _, path = function.partition(":")
    return reduce(getattr, path.split("."), importlib.import_module(place))
