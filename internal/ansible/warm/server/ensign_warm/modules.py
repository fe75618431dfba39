"""Runs modules of Ansible's local connection in forks of the worker.

Where Ansible would build a payload and send it to a new interpreter, it gets a marker,
and the connection runs the module in a fork when the marker comes to it. What is not
certain to do the same there keeps Ansible's own way (see _hindrance).
"""

import fnmatch
import functools
import importlib
import json
import os
import re
import sys
from collections.abc import Callable
from typing import Any

from ensign_warm.apart import Apart
from ensign_warm.environment import AT_START
from ensign_warm.module import Start, execute

_DETAILED = 3  # the verbosity from which on Ansible shows commands
# What a module's source has that this way does not heed: an interpreter of its own, a profile of its own.
_RESPAWN, _PROFILE = b"respawn", re.compile(rb"METADATA\b(?<=^METADATA)", re.MULTILINE)  # ^METADATA is slow.


class Payload(bytes):
    """Goes through Ansible's hands in the place of a module's payload."""

    start: Start


class Modules:
    """Has Ansible's actions run modules in forks. say is told why a module is not, or ""."""

    def __init__(self, apart: Apart, say: Callable[[str], None]) -> None:
        self._apart, self._say = apart, say
        self._common = importlib.import_module("ansible.executor.module_common")
        self._action: Any = None  # that configures a module now

    def install(self) -> None:
        action: Any = importlib.import_module("ansible.plugins.action")
        base, build = action.ActionBase, action.modify_module
        configure = base._configure_module

        @functools.wraps(configure)
        def configured(own: Any, *args: Any, **options: Any) -> Any:
            self._action = own
            bits, path = configure(own, *args, **options)
            if isinstance(bits.b_module_data, Payload):
                self._redirect(own._connection)
            return bits, path

        @functools.wraps(build)
        def built(**of: Any) -> Any:
            hindrance = self._hindrance(of)
            if hindrance:
                self._say(hindrance)
                return build(**of)
            return self._marker(of)

        base._configure_module, action.modify_module = configured, built

    def _hindrance(self, of: dict[str, Any]) -> str:
        """Return why a module needs an interpreter of its own; "" if it does not."""
        action = self._action
        if not is_plain(action):
            return "connection"
        hindrances = {
            "async": of["async_timeout"] or action._task.async_val or of["module_name"].endswith("async_wrapper"),
            "become": of["become_plugin"] is not None,
            "pipelining": not action._is_pipelining_enabled("new"),
            "variable": any(
                fnmatch.fnmatchcase(str(name), pattern) for name in of["environment"] for pattern in AT_START.split()
            ),
            "module_utils": self._further_utils(),
            "kind": _is_extended(of["task_vars"]),
        }
        return next((reason for reason, found in hindrances.items() if found), "") or self._hindrance_of_file(of)

    def _further_utils(self) -> bool:
        """Report whether roles or settings have a directory of module_utils."""
        loader = importlib.import_module("ansible.plugins.loader").module_utils_loader
        own = os.path.realpath(self._common._MODULE_UTILS_PATH)
        return any(os.path.isdir(p) and os.path.realpath(p) != own for p in loader._get_paths(subdirs=False))

    def _paths(self) -> list[str]:
        """Return where Ansible looks for collections now: a playbook may have some beside it."""
        config = importlib.import_module("ansible.utils.collection_loader").AnsibleCollectionConfig
        return [os.fsdecode(path) for path in config.collection_paths]

    def _hindrance_of_file(self, of: dict[str, Any]) -> str:
        try:
            name = self._common._get_ansible_module_fqn(of["module_path"])
        except ValueError:
            return "place"
        self._apart.look_in(self._paths())
        if os.path.realpath(self._apart.path_of(name)) != os.path.realpath(of["module_path"]):
            return "place"
        if _redirects(name):
            return "redirect"
        with open(of["module_path"], "rb") as file:
            text = file.read()
        common = self._common
        python = common.NEW_STYLE_PYTHON_MODULE_RE.search(text) and common.REPLACER not in text
        if not python or common._is_binary(text) or _RESPAWN in text or _PROFILE.search(text):
            return "kind"
        interpreter, arguments = common._extract_interpreter(text)
        shebang, program = common._get_shebang(
            interpreter or "/usr/bin/python",
            of["task_vars"],
            of["templar"],
            arguments,
            remote_is_local=of["remote_is_local"],
        )
        if program != sys.executable or shebang != f"#!{program}":
            return "interpreter"
        of.update(name=name, shebang=shebang)
        return ""

    def _marker(self, of: dict[str, Any]) -> Any:
        """Return what modify_module would, without a payload."""
        common, constants = self._common, importlib.import_module("ansible.constants")
        encoder = common.get_module_encoder("legacy", common.Direction.CONTROLLER_TO_MODULE)
        try:
            parameters = json.dumps({"ANSIBLE_MODULE_ARGS": of["module_args"]}, cls=encoder)
        except TypeError as error:
            raise common.AnsibleError(f"Failed to serialize arguments for the {of['module_name']!r} module.") from error
        files = constants.config.get_config_value("PYTHON_MODULE_RLIMIT_NOFILE", variables=of["task_vars"])
        if not isinstance(files, int):
            files = int(of["templar"].template(files))
        marker = Payload(b"#")
        environment = {str(name): str(value) for name, value in of["environment"].items()}
        marker.start = Start(of["name"], parameters.encode(), environment, files)
        return common._BuiltModule(
            b_module_data=marker, module_style="new", shebang=of["shebang"], serialization_profile="legacy"
        )

    def _redirect(self, connection: Any) -> None:
        original = type(connection).exec_command

        def exec_command(cmd: str, in_data: Any = None, sudoable: bool = True) -> Any:
            if not isinstance(in_data, Payload):
                return original(connection, cmd, in_data, sudoable)
            super(type(connection), connection).exec_command(cmd, in_data=None, sudoable=sudoable)  # type: ignore[misc]
            self._say("")
            return execute(self._apart, in_data.start, os.fsdecode(connection.cwd or os.getcwd()))

        connection.exec_command = exec_command


def is_plain(action: Any) -> bool:
    """Report whether an action works on this machine, as this user, through Ansible's own plugins."""
    connection = action._connection
    plugins = type(connection).__module__, type(connection._shell).__module__
    display = importlib.import_module("ansible.utils.display").Display()
    return (
        plugins == ("ansible.plugins.connection.local", "ansible.plugins.shell.sh")
        and connection.become is None
        and display.verbosity < _DETAILED
    )


def _is_extended(variables: object) -> bool:
    """Report whether Ansible adds a debugger or a measurement to modules."""
    builder = importlib.import_module("ansible._internal._ansiballz._builder")
    return bool(builder.ExtensionManager.create(task_vars=variables).get_extensions())


def _redirects(name: str) -> bool:
    """Report whether the module's collection has module_utils in other places than their names say."""
    first, *rest = name.split(".")
    if first != "ansible_collections":
        return False
    finder = importlib.import_module("ansible.utils.collection_loader._collection_finder")
    routing = finder._get_collection_metadata(".".join(rest[:2])).get("plugin_routing") or {}
    return bool(routing.get("module_utils"))
