"""Plugins that were executed ahead are what Ansible would execute."""

import contextlib
import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from ensign_warm import run as runs
from ensign_warm.plugins import Plugins

OF_PLUGIN = re.compile(r"ansible\.plugins\.\w+\.\w+")
# Each is one that runs load. The last three import others, which have to be there then.
NAMES = (
    *("action.debug", "become.sudo", "cache.jsonfile", "callback.default", "connection.local", "connection.ssh"),
    *("doc_fragments.shell_common", "inventory.yaml", "lookup.template", "shell.sh", "strategy.linear"),
    *("vars.host_group_vars", "connection.psrp", "connection.winrm", "strategy.free"),
)
SECOND = "from ansible.plugins.connection.first import Connection\n"
# Top levels of plugins, and whether they can be executed ahead.
SOURCES = {
    "what most have": (
        "import re\nfrom ansible.utils.display import Display\ndisplay = Display()\nX = re.compile('a')\n",
        True,
    ),
    "a look inside of a function": ("import os\ndef f(a=1):\n    return os.getpid()\n", True),
    "an import that fails": ("try:\n    import no_such.a\n    import csv_b\nexcept ImportError:\n    pass\n", True),
    "a call": ("import time\nX = time.time()\n", False),
    "a call in a class": ("class Connection:\n    x = open('/')\n", False),
    "a call in the rest of a failed import": ("try:\n    import no_such\nexcept ImportError:\n    X = id(1)\n", False),
    "a call for a default": ("def f(a=object()):\n    pass\n", False),
    "a call for a default by name": ("def f(*, a=object()):\n    pass\n", False),
    "a call that decorates": ("import functools\n@functools.cache\ndef f():\n    pass\n", False),
    "a call for a default of a nameless function": ("f = lambda a=id(1): a\n", False),
    "a call by a decorator": ("from atexit import register\n@register\ndef f():\n    pass\n", False),
    "a call by a decorator of a class": (
        "from gc import is_tracked\n@is_tracked\nclass Connection:\n    pass\n",
        False,
    ),
    "usual decorators": ("class Connection:\n    @property\n    def x(self):\n        return 1\n", True),
    "a place in what others have": ("from string import __all__ as names\nnames[0] = 'x'\n", False),
    "more in what others have": ("from string import __all__ as names\nnames += 'x'\n", False),
    "less in what others have": ("from string import __all__ as names\ndel names[0]\n", False),
    "a variable of the environment": ("import os\nX = os.environ\n", False),
    "the environment": ("from os import environ\n", False),
    "a setting": ("from ansible import constants as C\nX = C.DEFAULT_LOCAL_TMP\n", False),
    "a setting by its name": ("from ansible.constants import DEFAULT_LOCAL_TMP\n", False),
    "a stream": ("from sys import stdout\n", False),
    "a number of this process": ("from ansible.utils.vars import random_int\n", False),
    "something that the server has not imported": ("import this\n", False),
    "something beside it": ("from . import local\n", False),
}


@pytest.fixture(autouse=True)
def process() -> Iterator[None]:
    """What a server has imported, with the effects of a test undone."""
    for name in runs._NEEDED:
        importlib.import_module(name)
    before = sys.modules.copy()
    for name in filter(OF_PLUGIN.fullmatch, before):
        del sys.modules[name]
    execute = loader()._load_module_source
    yield
    loader()._load_module_source = execute
    sys.modules.clear()
    sys.modules.update(before)


def loader() -> Any:
    return importlib.import_module("ansible.plugins.loader").PluginLoader


def load(name: str, path: str) -> Any:
    return loader()._load_module_source(None, python_module_name=name, path=path)


def place(name: str) -> tuple[str, str]:
    """Return what the loader calls a plugin of Ansible's, and its file."""
    package = Path(str(importlib.import_module("ansible.plugins").__file__)).parent
    return f"ansible.plugins.{name}", str(package / name.replace(".", "/")) + ".py"


def shown(module: ModuleType) -> dict[str, str]:
    variables = {name: value for name, value in module.__dict__.items() if name != "__builtins__"}
    texts = {name: re.sub(" at 0x[0-9a-f]+", "", repr(value)) for name, value in variables.items()}
    for name, value in variables.items():
        if isinstance(value, type) and value.__module__ == module.__name__:
            members = (f"{n} {v!r}" for n, v in sorted(vars(value).items()))
            texts[name] = re.sub(" at 0x[0-9a-f]+", "", " ".join([*map(repr, value.__mro__), *members]))
    return texts


@pytest.mark.parametrize("name", NAMES)
def test_the_loader_is_given_what_it_would_execute(name: str) -> None:
    before = set(sys.modules)
    wanted = load(*place(name))
    there = set(sys.modules)
    for new in there - before:
        del sys.modules[new]
    plugins = Plugins()
    assert wanted not in plugins.load()
    assert set(sys.modules) - before <= {"ansible.plugins.doc_fragments"}
    plugins.give_out()
    given = load(*place(name))
    assert given in plugins.modules()
    assert sys.modules[given.__name__] is given
    assert set(sys.modules) - {"ansible.plugins.doc_fragments"} == there - {"ansible.plugins.doc_fragments"}
    assert shown(given) == shown(wanted)
    assert load(*place(name)) is given


def test_a_plugin_of_a_role_is_executed(tmp_path: Path) -> None:
    plugins = Plugins()
    plugins.load()
    plugins.give_out()
    name, path = place("callback.default")
    (tmp_path / "default.py").write_text("WHOSE = 'the role'\n")
    assert load(name, str(tmp_path / "default.py")).WHOSE == "the role"
    assert load(name, path).WHOSE == "the role"  # As a new process has it.


def test_a_plugin_that_would_import_one_of_a_role_is_executed() -> None:
    plugins = Plugins()
    plugins.load()
    plugins.give_out()
    other = ModuleType("ansible.plugins.shell.powershell")
    other.__dict__.update(ShellModule=object, _replace_stderr_clixml=None)
    sys.modules[other.__name__] = other
    with contextlib.suppress(ImportError):
        assert load(*place("connection.psrp")) not in plugins.modules()
    assert sys.modules[other.__name__] is other


@pytest.mark.parametrize(("source", "fit"), SOURCES.values(), ids=SOURCES.keys())
def test_only_what_is_the_same_at_any_time_is_executed(tmp_path: Path, source: str, fit: bool) -> None:
    name = "ansible.plugins.connection.first"
    (tmp_path / "first.py").write_text(source)
    plugins = Plugins()
    known = plugins._load(name, {name: str(tmp_path / "first.py")}, loader()._load_module_source)
    assert (known is not None) == fit
    assert (name in sys.modules) == fit


def test_what_can_be_imported_by_now_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = (f"ansible.plugins.connection.{name}" for name in ("first", "second"))
    (tmp_path / "first.py").write_text("try:\n    import vendored\nexcept ImportError:\n    vendored = None\n")
    (tmp_path / "second.py").write_text("from ansible.plugins.connection.first import vendored\n")
    files = {name: str(tmp_path / f"{name.rpartition('.')[2]}.py") for name in (first, second)}
    plugins = Plugins()
    monkeypatch.setattr("ansible.plugins.connection.__path__", [str(tmp_path)])
    for name in files:
        assert plugins._load(name, files, loader()._load_module_source) is not None
    for name in files:
        del sys.modules[name]
    plugins.give_out()
    (tmp_path / "vendor").mkdir()
    (tmp_path / "vendor" / "vendored.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path / "vendor"))
    assert load(second, files[second]).vendored.__name__ == "vendored"
    assert load(first, files[first]).vendored.__name__ == "vendored"


@pytest.mark.parametrize("fit", [True, False])
def test_a_plugin_needs_what_it_imports(tmp_path: Path, fit: bool) -> None:
    first, second = (f"ansible.plugins.connection.{name}" for name in ("first", "second"))
    (tmp_path / "first.py").write_text("class Connection:\n    pass\n" + ("" if fit else "id(1)\n"))
    (tmp_path / "second.py").write_text(SECOND)
    plugins = Plugins()
    files = {second: str(tmp_path / "second.py"), first: str(tmp_path / "first.py")}
    known = plugins._load(second, files, loader()._load_module_source)
    assert (known is not None and list(known.others) == [first]) == fit


def test_a_version_that_does_it_otherwise_does_without(monkeypatch: pytest.MonkeyPatch) -> None:
    def execute(self: Any, name: str, path: str) -> None:
        del self, name, path

    monkeypatch.setattr(loader(), "_load_module_source", execute)
    plugins = Plugins()
    assert plugins.load() == []
    plugins.give_out()
    assert loader()._load_module_source is execute
