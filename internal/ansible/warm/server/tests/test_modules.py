"""Modules in forks end as in interpreters of their own, or are left to Ansible."""

import pytest
from conftest import in_forks
from test_apart import BEFORE as APART

BEFORE = (
    APART
    + """
import json, resource, signal
from types import SimpleNamespace
from ansible.plugins.loader import init_plugin_loader, module_utils_loader
from ansible.utils.display import Display
from ensign_warm.module import Start, execute
from ensign_warm import directories
from ensign_warm.modules import Modules
init_plugin_loader([place + "/one", place + "/two"])
put("one/ansible_collections/our/routed/meta/runtime.yml", "plugin_routing: {module_utils: {a: {redirect: b.c.d}}}")
IMPORT = "from ansible.module_utils.basic import AnsibleModule\\n"
def written(text, collection="own", root="two"):
    return put(f"{root}/ansible_collections/our/{collection}/plugins/modules/one.py", text)
def run(text, files=0, directory="/", **environment):
    written(text)
    name = "ansible_collections.our.own.plugins.modules.one"
    return execute(apart, Start(name, b'{"ANSIBLE_MODULE_ARGS": {}}', environment, files), directory)
class Shell:
    __module__ = "ansible.plugins.shell.sh"
class Local:
    __module__ = "ansible.plugins.connection.local"
    become, _shell = None, Shell()
action = SimpleNamespace(_connection=Local(), _task=SimpleNamespace(async_val=0), _is_pipelining_enabled=lambda _: True)
of = {"async_timeout": 0, "module_name": "our.own.one", "become_plugin": None, "environment": {"OURS": 1}, "remote_is_local": True}
of |= {"task_vars": {"ansible_playbook_python": sys.executable}, "templar": None, "module_path": written(IMPORT)}
"""
)
LOOK = """import json, os, resource, signal, sys
print(json.dumps([
    len(sys.argv), os.getcwd(), os.environ["PWD"], os.environ["OURS"], sys.stdin.read(), sorted(os.listdir("/proc/self/fd"))[:-1],
    resource.getrlimit(resource.RLIMIT_NOFILE)[0], str(signal.getsignal(signal.SIGTERM)), __name__,
]))
sys.exit(0)
"""
ENDS = {
    "an exit code": ("import sys; print(1); sys.stderr.write('2'); sys.exit(3)", (3, b"1\n", b"2")),
    "an exit without a code": ("import sys; sys.exit()", (0, b"", b"")),
    "an exit with a text": ("import sys; sys.exit('why')", (1, b"", b"why\n")),
    "a code that is too large": ("import sys; sys.exit(257)", (1, b"", b"")),
    "a signal": ("import os; os.kill(os.getpid(), 9)", (137, b"", b"Killed\n")),
    "its own end": ("import os; os.write(1, b'x'); os._exit(4)", (4, b"x", b"")),
    "handlers": (
        "import atexit, sys; atexit.register(print, 'bye'); print('hello'); sys.exit(0)",
        (0, b"hello\nbye\n", b""),
    ),
    "a thread": (
        "import sys, threading as t; t.Thread(target=lambda: (t.main_thread().join(), print(1))).start(); sys.exit(0)",
        (0, b"1\n", b""),
    ),
    "much": (
        "import os, sys\nfor n in (2, 1, 2, 1): os.write(n, b'%d' % n * 200_000)\nsys.exit(0)",
        (0, b"1" * 400_000, b"2" * 400_000),
    ),
}
CASES = {
    f"ends by {name}": f"got = run({text!r})\nassert got == {wanted}, got" for name, (text, wanted) in ENDS.items()
} | {
    "a failure": "code, out, _ = run('1/0')\nassert (code, json.loads(out)['failed']) == (1, True)",
    "a directory that is gone": """
code, out, err = run("", directory="/nowhere")
assert (code, out, b"FileNotFoundError" in err) == (1, b"", True), err
""",
    "a module of Ansible's": """
code, out, err = execute(apart, Start("ansible.modules.ping", b'{"ANSIBLE_MODULE_ARGS": {"data": "x"}}', {}, 0), "/")
assert (code, json.loads(out)["ping"], err) == (0, "x", b"")
""",
    "what a module has": f"""
os.dup(1)
signal.signal(signal.SIGTERM, lambda *_: None)
before = resource.getrlimit(resource.RLIMIT_NOFILE)
for files, limit in ((64, 64), (0, before[0]), (1 << 40, before[1])):
    code, out, err = run({LOOK!r}, files, "/usr", OURS="1")
    wanted = [1, "/usr", "/usr", "1", "", ["0", "1", "2"], limit, str(signal.SIG_DFL), "__main__"]
    assert (code, json.loads(out), err) == (0, wanted, b""), out
assert "OURS" not in os.environ and os.getcwd() != "/usr"
""",
}
CASES["no program makes or removes the directory of a task"] = """
from ansible.playbook.play_context import PlayContext
from ansible.plugins.action import ActionBase
from ansible.plugins.loader import connection_loader
class Action(ActionBase):
    run = None
    def __init__(self):
        self._connection = connection_loader.get("local", PlayContext())
        self._connection.set_options(direct={"pipelining": True})
        self._connection._shell.set_options(direct={"remote_tmp": place + "/tmp/remote"})
        self._connection._connect()
    def _low_level_execute_command(self, *_, **__):
        raise AssertionError("a shell")
directories.install()
own = Action()
made = own._make_tmp_path()
assert os.stat(made).st_mode & 0o777 == 0o700 and os.path.dirname(os.path.dirname(made)) == place + "/tmp/remote"
assert own._connection._shell.tmpdir == made
own._remove_tmp_path(made)
assert os.listdir(place + "/tmp/remote") == [] and own._connection._shell.tmpdir is None
for unclear in ("~/tmp", place + "/../tmp", place + "/$(id)"):
    own._connection._shell.set_options(direct={"remote_tmp": unclear})
    try:
        own._make_tmp_path()
    except AssertionError as error:
        assert str(error) == "a shell"
    else:
        raise AssertionError(unclear)
"""
# What is changed, and why the module is started in a new interpreter then.
HINDRANCES = {
    "": "",
    "Local.__module__ = 'ansible.plugins.connection.ssh'": "connection",
    "Shell.__module__ = 'ansible.plugins.shell.csh'": "connection",
    "Local.become = object()": "connection",
    "Display().verbosity = 3": "connection",
    "of['async_timeout'] = 1": "async",
    "action._task.async_val = 1": "async",
    "of['module_name'] = 'ansible.legacy.async_wrapper'": "async",
    "of['become_plugin'] = object()": "become",
    "action._is_pipelining_enabled = lambda _: False": "pipelining",
    "of['environment'] = {'LC_ALL': 'C'}": "variable",
    "module_utils_loader.add_directory(place)": "module_utils",
    """of['task_vars']['_ansible_ansiballz_coverage_config'] = '{"config": "", "output": ""}'""": "kind",
    "of['module_path'] = put('library/one.py', IMPORT)": "place",
    "of['module_path'] = put('my-modules/ansible_collections/our/own/plugins/modules/one.py', IMPORT)": "place",
    "of['module_path'] = written(IMPORT, 'routed', 'one')": "redirect",
    "written('print(1)')": "kind",
    "written('#!/bin/sh')": "kind",
    "written(IMPORT + '#<<INCLUDE_ANSIBLE_MODULE_COMMON>>')": "kind",
    "written(IMPORT + chr(0))": "kind",
    "written(IMPORT + 'respawn_module()')": "kind",
    "written(IMPORT + 'METADATA = 1')": "kind",
    "written('#!/usr/bin/python -u\\n' + IMPORT)": "interpreter",
    "of['task_vars']['ansible_playbook_python'] = '/nowhere/python'": "interpreter",
}
_HINDERED = """
written(IMPORT)
{}
modules = Modules(apart, print)
modules._action = action
got = modules._hindrance(of)
assert got == {!r}, got
"""
CASES |= {f"hindered by {change}": _HINDERED.format(change, why) for change, why in HINDRANCES.items()}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return in_forks(BEFORE, CASES, str(tmp_path_factory.mktemp("place")))


@pytest.mark.parametrize("name", CASES)
def test_modules(results: dict[str, str], name: str) -> None:
    assert results[name] == "passed"
