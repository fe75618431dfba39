"""Plugins' files that are executed ahead are as those that a run executes itself."""

import importlib
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from ensign_warm import plugins

loader = importlib.import_module("ansible.plugins.loader")


@pytest.fixture
def ahead(monkeypatch: pytest.MonkeyPatch) -> dict[str, ModuleType]:
    """Give Ansible what was loaded ahead, and return it."""
    for name in [name for name in sys.modules if name.startswith("ansible.plugins.connection.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(loader.PluginLoader, "_load_module_source", loader.PluginLoader._load_module_source)
    own = plugins.Plugins()
    modules = {module.__name__: module for module in own.load()}
    own.give_out()
    return modules


def test_all_files_are_executed_and_leave_no_names(ahead: dict[str, ModuleType]) -> None:
    names = (
        "callback.default connection.local connection.ssh inventory.ini shell.sh strategy.linear vars.host_group_vars"
    )
    assert {f"ansible.plugins.{name}" for name in names.split()} <= ahead.keys()
    assert [name for name in ahead if name.startswith("ansible.plugins.filter.core_")]
    assert not ahead.keys() & sys.modules.keys()


def test_nothing_is_said_while_files_are_executed() -> None:
    program = "from ensign_warm.plugins import Plugins; Plugins().load()"
    path = str(Path(str(plugins.__file__)).parent.parent)
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", program], env={"PYTHONPATH": path}, capture_output=True, text=True, check=True
    )
    assert done.stdout + done.stderr == ""


def test_ansible_gets_what_is_executed(ahead: dict[str, ModuleType]) -> None:
    winrm = ahead["ansible.plugins.connection.winrm"]
    assert loader.connection_loader.get("winrm", class_only=True) is winrm.Connection
    assert sys.modules[winrm.__name__] is winrm


def test_other_versions_names_are_asked_for_in_vain(ahead: dict[str, ModuleType]) -> None:
    path = str(ahead["ansible.plugins.connection.ssh"].__file__)
    module = loader.connection_loader._load_module_source(python_module_name="ansible.plugins.ssh", path=path)
    assert module is sys.modules.pop("ansible.plugins.ssh") is not ahead["ansible.plugins.connection.ssh"]


def test_other_files_of_the_same_name_are_executed(ahead: dict[str, ModuleType], tmp_path: Path) -> None:
    other = tmp_path / "ssh.py"
    other.write_text("mark = 1\n")
    module = loader.connection_loader._load_module_source(
        python_module_name="ansible.plugins.connection.ssh", path=str(other)
    )
    assert module.mark == 1
    assert "ansible.plugins.connection.ssh" in ahead


def test_a_file_that_fails_is_left_to_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text("raise ValueError\n")
    monkeypatch.setattr(plugins, "_named", lambda: [("ansible.plugins.shell.broken", str(broken))])
    assert plugins.Plugins().load() == []
    assert "ansible.plugins.shell.broken" not in sys.modules
