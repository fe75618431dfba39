"""What modules import is not what the controller imports."""

from pathlib import Path

import pytest
from conftest import in_forks

BEFORE = """
import importlib, os, sys, tempfile, warnings
from ensign_warm.apart import Apart
place = sys.argv[1]
CLIENT = "ansible_collections.kubernetes.core.plugins.module_utils.client"
UTIL = "ansible_collections.operator_sdk.util.plugins.module_utils.api"
def put(path, text):
    path = os.path.join(place, path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write(text)
    return path
for root in ("one", "two"):
    put(f"{root}/{CLIENT.replace('.', '/')}.py", f"ROOT = '{root}'")
put(f"one/{UTIL.replace('.', '/')}.py", "")
for kind in ("action", "module_utils", "modules"):
    put(f"two/ansible_collections/our/own/plugins/{kind}/late.py", "")
begun = list(sys.path_hooks), list(warnings.filters)
apart = Apart([place + "/one", place + "/two/ansible_collections"])
loaded = {module.__name__ for module in apart.load()}
finders = list(sys.meta_path)
"""
CASES = {
    "the controller does not find it": """
assert {"ansible.module_utils.basic", CLIENT, UTIL, "yaml"} <= loaded
assert not [name for name in sys.modules if name.partition(".")[0] in ("ansible", "ansible_collections")]
assert "yaml" in sys.modules
import ansible.module_utils.basic
assert sys.modules["ansible.module_utils.basic"] not in apart.modules()
""",
    "a module finds it, and nothing of the controller's": """
import ansible.constants, ansible.module_utils.basic, ansible.module_utils.splitter
apart.enter()
assert {sys.modules[name] for name in ("ansible", "ansible.module_utils.basic", CLIENT, UTIL)} <= set(apart.modules())
assert not {"ansible.constants", "ansible.module_utils.splitter"} & set(sys.modules)
import ansible
assert ansible.__version__ and not hasattr(ansible, "constants")
assert sys.path[0] == os.path.dirname(apart.library) and sys.dont_write_bytecode
""",
    "a module finds nothing that its payload would not have": """
apart.enter()
others = "ansible_collections.our.own.plugins"
for name in ("ansible.constants", "ansible.plugins", "ansible.cli.playbook", f"{others}.action.late", f"{others}.action"):
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        assert name.startswith(error.name)
    else:
        raise AssertionError(name)
for name in ("ansible.module_utils.splitter", "ansible.modules.ping", f"{others}.module_utils.late", f"{others}.modules.late"):
    importlib.import_module(name)
""",
    "a collection that is elsewhere by now is imported from there": """
apart.look_in([place + "/two", place + "/one"])
apart.enter()
assert CLIENT not in sys.modules and sys.modules[UTIL] in apart.modules()
assert importlib.import_module(CLIENT).ROOT == "two"
""",
    "where modules are": """
def below(path):
    return path.removeprefix(place).removeprefix(apart.library)
assert below(apart.path_of("ansible.modules.ping")) == "/modules/ping.py"
late = "ansible_collections.our.own.plugins.modules.late"
assert below(apart.path_of(late)) == f"/two/{late.replace('.', '/')}.py"
assert apart.path_of("ansible_collections.no.where.plugins.modules.late") == apart.directory_of("no.where") == ""
assert below(apart.directory_of("kubernetes.core")) == "/one/ansible_collections/kubernetes/core"
apart.look_in([place + "/two", place + "/one"])
assert below(apart.directory_of("kubernetes.core")) == "/two/ansible_collections/kubernetes/core"
""",
    "what the controller has set": """
import multiprocessing, kubernetes.config
from ansible.plugins.loader import init_plugin_loader
init_plugin_loader([place + "/two"])
assert sys.path_hooks != begun[0] and sys.meta_path != finders
importlib.import_module(CLIENT)
warnings.simplefilter("error")
tempfile.tempdir, os.environ["KUBECONFIG"] = "/nowhere", "/some/kubeconfig"
def check():
    apart.enter()
    assert (sys.path_hooks, warnings.filters) == begun and sys.meta_path[1:] == finders
    assert not [p for p, f in sys.path_importer_cache.items() if type(f).__module__.startswith("ansible")]
    assert tempfile.gettempdir() != "/nowhere"
    assert kubernetes.config.KUBE_CONFIG_DEFAULT_LOCATION == "/some/kubeconfig"
    assert kubernetes.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION == "/some/kubeconfig"
    assert multiprocessing.parent_process() is None and multiprocessing.current_process().name == "MainProcess"
    os._exit(42)
worker = multiprocessing.get_context("fork").Process(target=check)
worker.start()
worker.join()
assert worker.exitcode == 42
""",
    "where temporary files lie": """
os.environ["TMPDIR"] = tempfile.tempdir = place
apart.enter()
assert tempfile.tempdir == place
os.environ["TMPDIR"] = place + "/one"
apart.enter()
assert tempfile.tempdir is None and tempfile.gettempdir() == place + "/one"
del os.environ["TMPDIR"]
apart.enter()
assert tempfile.tempdir is None
""",
    "the standard streams": """
taken, told = os.pipe()
for number, descriptor in enumerate((os.open("/dev/null", os.O_RDONLY), told, told)):
    os.dup2(descriptor, number)
apart.open_streams()
assert sys.stdin.read() == "" and sys.stdout is sys.__stdout__
print("later", "\\u00e9")
print("at once", file=sys.stderr)
sys.stdout.flush()
assert os.read(taken, 99) == "at once\\nlater \\u00e9\\n".encode()
assert [s.mode for s in (sys.stdin, sys.stdout, sys.stderr)] == ["r", "w", "w"] and sys.stderr.errors == "backslashreplace"
""",
}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return in_forks(BEFORE, CASES, str(tmp_path_factory.mktemp("place")))


@pytest.mark.parametrize("name", CASES)
def test_apart(results: dict[str, str], name: str) -> None:
    assert results[name] == "passed"


def test_there_is_nothing_without_ansible(tmp_path: Path) -> None:
    case = "sys.path[:] = []\nfor n in apart.modules(): pass\ntry:\n    Apart([]).load()\nexcept ImportError: pass\nelse: raise AssertionError"
    assert in_forks(BEFORE, {"": case}, str(tmp_path)) == {"": "passed"}
