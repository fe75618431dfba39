"""A run: ansible-runner with the playbook in the same process."""

import atexit
import contextlib
import hashlib
import importlib
import importlib.util
import os
import secrets
import sys
import tempfile
from collections.abc import Callable
from multiprocessing import process as workers
from types import CodeType, ModuleType
from typing import Any, NoReturn

from ensign_warm import bound, directories, environment, leave, process
from ensign_warm.apart import Apart
from ensign_warm.modules import Modules
from ensign_warm.parsed import Parsed
from ensign_warm.templates import Templates
from ensign_warm.wire import Outdated, Refused, Request

# The settings whose variables are in environment.OF_ONE_RUN.
_SETTINGS = ("DEFAULT_LOCAL_TMP", "CACHE_PLUGIN_CONNECTION", "DEFAULT_ROLES_PATH")

# What each run of it imports besides, before anything of a role. No plugins: a role may have one of the same name.
_NEEDED = """
ansible._internal._errors._task_timeout ansible._internal._json._profiles._inventory_legacy ansible.cli.playbook
ansible.executor.process.worker ansible.executor.task_executor
ansible.module_utils._internal._json._profiles._module_legacy_c2m
ansible.module_utils._internal._json._profiles._module_legacy_m2c ansible.module_utils.connection
ansible.parsing.yaml.dumper ansible.playbook.handler ansible.playbook.handler_task_include
ansible.playbook.included_file ansible.playbook.role.include ansible.playbook.role_include
ansible.playbook.task_include ansible.plugins.cache ansible.plugins.inventory ansible.plugins.strategy
ansible.plugins.vars ansible.utils._junit_xml ansible.utils.encrypt ansible.utils.hashing ansible.utils.shlex
ansible.utils.unicode ansible.utils.version cmd multiprocessing.popen_fork multiprocessing.synchronize pprint pty
tomllib xml.dom.minidom
"""


class Run:
    """ensign_run.py, whose local connection runs modules in forks."""

    def __init__(self, path: str, templates: str) -> None:
        """Take the paths of the program, and of the templates that it may have."""
        self.path, self._texts = path, templates
        self._voice = -1  # where a fork tells the manager about its modules
        self._apart = Apart(collection_roots())
        self._parsed, self._templates = Parsed(), Templates()
        self.environment: dict[bytes, bytes] = {}
        self._of_playbook: dict[bytes, bytes] = {}
        self._config: tuple[str, str] = ("", "")
        self._unfit = ""
        self.mechanisms: dict[str, Callable[[], None]] = {  # beside "run", each with what a fork begins it by
            "modules": lambda: Modules(self._apart, self._tell).install(),
            "directories": directories.install,
            "parsed": self._parsed.give_out,
            "templates": lambda: self._templates.give_out(self.tried),
        }
        self.off: dict[str, str] = {}  # those and "run", each with why
        self.tried = False  # in the fork of a trial
        self._look: object = None

    def load(self) -> list[ModuleType]:
        self.environment, before = environment.current(), set(sys.modules)
        ahead = self._apart.load()
        self._code = source(self.path)
        importlib.import_module("ansible_runner.__main__")
        os.environ.update(added_by_runner())
        self._of_playbook = environment.current()
        for name in _NEEDED.split():
            with contextlib.suppress(ImportError):  # Another version of Ansible has others.
                importlib.import_module(name)
        self.off = bound.unmet()
        prime()
        if "parsed" not in self.off:
            self._parsed.load()
        if "templates" not in self.off:
            self._templates.load(self._texts)
        constants = importlib.import_module("ansible.constants")
        if "run" not in self.off:
            self._look = look()
        self._config = digest(constants.CONFIG_FILE)
        self._unfit = unfit(vars(constants), os.getcwd())
        return ahead + imported(before)

    def admit(self, request: Request) -> None:
        if "run" in self.off:
            raise Refused("version")
        if self._unfit:
            raise Refused(self._unfit)
        if name := environment.difference(self.environment, request.environment):
            raise Refused(f"variable {name}")
        manager = importlib.import_module("ansible.config.manager")
        warnings: set[str] = set()
        name, content = digest(manager.find_ini_config_file(warnings))
        if warnings or name != self._config[0]:
            raise Refused("place of ansible.cfg")
        if content != self._config[1]:
            raise Outdated("ansible.cfg")
        if not request.arguments or os.fsdecode(request.arguments[0]) != self.path:
            raise Refused("program")

    def become(self, request: Request) -> NoReturn:
        command_line = importlib.import_module("ansible.cli.playbook")
        original, output = command_line.main, os.dup(1)

        def main(args: list[str] | None = None) -> object:
            if environment.difference(self._of_playbook, environment.current()):
                anew(request, output)
            os.close(output)
            self._begin_playbook()
            return original(args)

        command_line.__dict__["main"] = main
        sys.dont_write_bytecode = bool(sys.flags.dont_write_bytecode)
        sys.argv = [os.fsdecode(argument) for argument in request.arguments]
        sys.orig_argv = [sys.executable, *sys.argv]
        process.show_arguments([os.fsencode(argument) for argument in sys.orig_argv])
        place = os.path.dirname(os.path.realpath(sys.argv[0]))
        leave.run(self._code, sys.argv[0], place, self._apart.modules())

    def keep_voice(self) -> None:
        """Keep the way to the manager, in the fork that becomes the run. No program that the run starts has it."""
        self._voice = os.dup(1)

    def _tell(self, reason: str) -> None:
        """Tell the manager of a module, in one write so that lines of workers do not mix."""
        with contextlib.suppress(OSError):
            os.write(self._voice, f"module {reason}\n".encode())

    def _begin_playbook(self) -> None:
        if self.tried:
            try_refresh(self._look)
        else:
            refresh()
        for mechanism, begin in self.mechanisms.items():
            if mechanism not in self.off:
                begin()


def prime() -> None:
    """Have tables of Ansible's classes made that each process makes when it first needs them: each task has its own."""
    with contextlib.suppress(ImportError, AttributeError, TypeError):  # A version that has others makes them later.
        results = importlib.import_module("ansible._internal._task").UnifiedTaskResult
        for yes in (False, True):
            results.get_result_key_to_resolved_field_mapping(source_is_module=yes)
            for other in (False, True):
                results._get_field_name_to_result_key_mapping(for_callback=yes, for_round_trip=other)


def collection_roots() -> list[str]:
    """Return where collections are looked for, as far as it is known before Ansible's settings are."""
    usual = "~/.ansible/collections:/usr/share/ansible/collections"
    places = os.environ.get("ANSIBLE_COLLECTIONS_PATH", usual).split(":")
    return [os.path.expanduser(place) for place in places] + [place for place in sys.path if place]


def imported(before: set[str]) -> list[ModuleType]:
    """Return the modules that were not there before."""
    return [module for name, module in sys.modules.items() if name not in before and isinstance(module, ModuleType)]


def source(path: str) -> CodeType:
    """Return what runs execute, and import what lies beside it."""
    sys.path.insert(0, os.path.dirname(path))
    try:
        importlib.import_module("ensign_events")
        importlib.import_module("ensign_jobs")
        importlib.import_module("ensign_refusal")
    finally:
        del sys.path[0]
    with open(path, "rb") as file:
        return compile(file.read(), path, "exec", dont_inherit=True)


def added_by_runner() -> dict[str, str]:
    """Return what ansible-runner adds to the environment of each playbook, which Ansible reads when it is imported."""
    config = importlib.import_module("ansible_runner.config.runner").RunnerConfig
    with tempfile.TemporaryDirectory() as place:
        imagined = config(place, playbook="none", ident="none")
        imagined.prepare()
    common = {n: v for n, v in imagined.env.items() if os.fsencode(n) not in environment.OF_ONE_RUN}
    return {name: value for name, value in common.items() if os.environ.get(name) != value}


def anew(request: Request, output: int) -> NoReturn:
    """Start the run in a new interpreter after all: ansible-runner gives its playbook another environment."""
    os.chdir(request.directory)
    os.dup2(output, 1, inheritable=True)
    os.execve(sys.executable, [os.fsencode(sys.executable), *request.arguments], request.environment)  # noqa: S606


def digest(path: object) -> tuple[str, str]:
    """Return the name and a digest of a configuration file, which there need not be."""
    if not path:
        return "", ""
    name = os.fsdecode(path) if isinstance(path, bytes) else str(path)
    try:
        with open(name, "rb") as file:
            return name, hashlib.sha256(file.read()).hexdigest()
    except OSError:
        return name, "unreadable"


def unfit(settings: dict[str, Any], directory: str) -> str:
    """Say why no fork can have the settings that this process has read; "" if each can."""
    if settings.get("DEFAULT_LOG_PATH"):
        return "log file"  # It is opened once, and its lines name the process.
    if any(directory in repr(value) for name, value in settings.items() if name.isupper() and name not in _SETTINGS):
        return "working directory in a setting"
    return ""


def look() -> list[object]:
    """Return what Ansible makes for each process when it is imported, as far as it is the same in all."""
    display = importlib.import_module("ansible.utils.display").Display()
    constants = importlib.import_module("ansible.constants")
    return [
        # Python names the streams that it begins with, where they have no buffer, and no others.
        *((stream.errors, sorted(vars(stream.buffer).keys() - {"name"})) for stream in (sys.stdout, sys.stderr)),
        getattr(display, "columns", None),
        [name for name in _SETTINGS if name in vars(constants)],
        os.path.isdir(temporary()),
    ]


def temporary() -> str:
    """Return the directory that Ansible has made for temporary files of this process."""
    return str(importlib.import_module("ansible.constants").DEFAULT_LOCAL_TMP)


def try_refresh(wanted: object) -> None:
    """Do what refresh does, and fail where a new interpreter would have something else."""
    unique = importlib.import_module("ansible.utils.vars").get_unique_id
    before = temporary(), unique().rpartition("-")[0]
    refresh()
    if look() != wanted:
        raise RuntimeError(f"a fork has {look()} and not {wanted}")
    if temporary() == before[0] or unique().rpartition("-")[0] == before[1]:
        raise RuntimeError("a fork has names of the server's")


def refresh() -> None:
    """Do again what Ansible does for each process when it is imported."""
    constants = importlib.import_module("ansible.constants")
    path = importlib.import_module("ansible.utils.path")
    atexit.unregister(path.cleanup_tmp_file)  # That of the server is its own.
    tempfile.tempdir = None
    for name in _SETTINGS:
        setattr(constants, name, constants.config.get_config_value(name, variables=vars(constants)))
    display = importlib.import_module("ansible.utils.display")
    display.Display()._set_column_width()
    for stream in (sys.stdout, sys.stderr):
        display._synchronize_textiowrapper(stream, display.Display()._lock)
        stream.reconfigure(errors="_replacing_warning_handler")  # type: ignore[union-attr]
    variables = importlib.import_module("ansible.utils.vars")
    variables.__dict__["random_int"] = f"{secrets.randbelow(1 << 32):08x}"
    workers.current_process()._config["authkey"] = workers.AuthenticationString(os.urandom(32))  # type: ignore[attr-defined]
