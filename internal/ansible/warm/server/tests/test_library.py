"""What is imported ahead of Ansible's library is in a fork as if its payload had been imported."""

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
import zipimport
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import PATIENCE, Answer, Server
from ensign_warm import library, sources

HERE = Path(__file__).parent
K8S = "ansible_collections.kubernetes.core.plugins.module_utils"
IMPORTS = {
    "nothing else": "",
    "what reads and writes over HTTP": "import ansible.module_utils.urls",
    "all that gathers facts": "from ansible.module_utils.facts import ansible_collector, default_collectors, namespace",
    "a part of what gathers facts": "from ansible.module_utils.facts.system.service_mgr import ServiceMgrFactCollector",
    "Kubernetes'": f"from {K8S}.k8s import runner, service\nfrom {K8S} import helm, copy",
    "one of Kubernetes' that silences a warning": f"from {K8S} import common",
    "what nothing of was imported ahead": "import ansible.module_utils.api, ansible.module_utils.json_utils",
    "the module itself": "import sys\nimport ansible.module_utils.basic as basic\nassert basic.__main__ is not sys.modules['__main__']",
}


class Maker:
    """Makes of modules what Ansible would send."""

    def __init__(self, **environment: str) -> None:
        command = [sys.executable, str(HERE / "ansiballz.py")]
        self._process = subprocess.Popen(  # noqa: S603
            command, env=os.environ | environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def make(self, *arguments: str | None) -> bytes:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        result = f"{arguments[0]}.sent"
        print(json.dumps([*arguments, result]), file=self._process.stdin, flush=True)
        assert self._process.stdout.readline() == "0\n"
        return Path(result).read_bytes()

    def close(self) -> None:
        self._process.communicate(timeout=PATIENCE)


@pytest.fixture(scope="module")
def maker() -> Iterator[Maker]:
    one = Maker()
    yield one
    one.close()


Make = Callable[..., bytes]


@pytest.fixture
def make(maker: Maker, tmp_path: Path) -> Make:
    """Make a module with these imports what Ansible would send."""

    def made(
        imports: str = "", body: str = "", utils: dict[str, str] | None = None, by: Maker = maker, how: str = "DEFLATED"
    ) -> bytes:
        text = (HERE / "look.py").read_text().replace("# IMPORTS", imports)
        (tmp_path / "look.py").write_text(body or text)
        for name, content in (utils or {}).items():
            (tmp_path / "utils" / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "utils" / name).write_text(content)
        return by.make(str(tmp_path / "look.py"), str(tmp_path / "utils") if utils else None, f"ZIP_{how}")

    return made


def plain(answer: Answer) -> Any:
    """Return what came of a module, without the random part of its payload's name."""
    out = re.sub(rb"_payload_\w{8}", b"_payload_x", answer.out)
    err = re.sub(rb"_payload_\w{8}", b"_payload_x", answer.err)
    return answer.how, json.loads(out) if out.strip().startswith(b"{") else out, err


def differences(one: Any, other: Any, place: str = "") -> list[str]:
    if isinstance(one, dict) and isinstance(other, dict):
        return [d for k in sorted({*one, *other}) for d in differences(one.get(k), other.get(k), f"{place}/{k}")]
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return [d for n, pair in enumerate(zip(one, other, strict=True)) for d in differences(*pair, f"{place}/{n}")]
    return [] if one == other else [f"{place}: {str(one)[:300]} != {str(other)[:300]}"]


@pytest.mark.parametrize("name", IMPORTS)
def test_looks_as_in_a_new_interpreter(server: Server, make: Make, name: str) -> None:
    module = make(IMPORTS[name])
    cold, warm = plain(server.run_cold(stdin=module)), plain(server.run(stdin=module))
    assert cold[0] == "exit 0", cold
    assert differences(list(cold), list(warm)) == []


RETURNS = "import json, sys\nfrom ansible.module_utils.basic import AnsibleModule\n{imports}\nAnsibleModule({{}}).exit_json(x={value})\n"


def outcome(server: Server, module: bytes) -> Any:
    """Run a module both ways, and return its result."""
    cold, warm = plain(server.run_cold(stdin=module)), plain(server.run(stdin=module))
    assert differences(list(cold), list(warm)) == []
    return warm[1].get("x", warm[1])


CONVERT_BOOL = Path(sources.installed()["ansible.module_utils.parsing.convert_bool"].origin).read_text()
DIFFERENCES = {
    "a module_utils of the role's": ("from ansible.module_utils import ours", "ours.A", {"ours.py": "A = 1\n"}, 1),
    "one that imports Ansible's": (
        "from ansible.module_utils import ours",
        "[ours.to_text(b'x'), ours.__file__.partition('.zip')[2]]",
        {"ours.py": "from ansible.module_utils.common.text.converters import to_text\n"},
        ["x", "/ansible/module_utils/ours.py"],
    ),
    "one in the place of Ansible's": ("from ansible.module_utils import urls", "urls.A", {"urls.py": "A = 2\n"}, 2),
    "a package in the place of Ansible's module": (
        "from ansible.module_utils import urls",
        "[urls.A, len(urls.__path__)]",
        {"urls/__init__.py": "A = 3\n"},
        [3, 1],
    ),
    "one in the place of Ansible's, with another that uses it": (
        "from ansible.module_utils import urls, service",
        "[urls.A, service.get_ps.__code__.co_filename.partition('.zip')[2]]",
        {"urls.py": "A = 4\n"},
        [4, "/ansible/module_utils/service.py"],
    ),
    "what nearly everything imports": (
        "from ansible.module_utils.parsing import convert_bool as c\nfrom ansible.module_utils.common import validation as p",
        "[c.A, c.boolean is p.boolean is sys.modules[AnsibleModule.__module__].boolean]",
        {"parsing/__init__.py": "", "parsing/convert_bool.py": CONVERT_BOOL + "A = 5\n"},
        [5, True],
    ),
    "a module that was not imported ahead": (
        "from ansible.module_utils import splitter",
        "splitter.__name__",
        {},
        "ansible.module_utils.splitter",
    ),
    "a module of the installation that the payload has not": (
        "import importlib\nm = importlib.import_module('ansible.module_utils.' + 'splitter')",
        "'payload' in m.__file__",
        {},
        False,
    ),
    "a resource of a package": (
        "import importlib.resources, pkgutil, ansible.module_utils.common",
        "[sorted(p.name for p in importlib.resources.files('ansible.module_utils.common').iterdir())[:3], len(pkgutil.get_data('ansible.module_utils.common', 'json.py'))]",
        {},
        None,
    ),
    "source and line of a function": (
        "import inspect",
        "[inspect.getsource(AnsibleModule.exit_json), inspect.getsourcelines(AnsibleModule)[1]]",
        {},
        None,
    ),
    "what pickles": (
        "import pickle\nfrom ansible.module_utils.errors import AnsibleValidationError as E",
        "type(pickle.loads(pickle.dumps(E('x')))) is E",
        {},
        True,
    ),
    "subclasses of the library's": (
        "from ansible.module_utils.facts.collector import BaseFactCollector as B",
        "sorted(c.__name__ for c in B.__subclasses__())",
        {},
        None,
    ),
    "what mends Python": (
        "import sys, socket, subprocess",
        "[str(type(sys.intern)), sys.intern('a'), isinstance(subprocess.Popen.__module__, str)]",
        {},
        None,
    ),
}


@pytest.mark.parametrize("name", DIFFERENCES)
def test_the_payload_decides(server: Server, make: Make, name: str) -> None:
    imports, value, utils, wanted = DIFFERENCES[name]
    got = outcome(server, make(body=RETURNS.format(imports=imports, value=value), utils=utils))
    assert wanted is None or got == wanted, str(got)[:300]


def test_a_payload_that_is_not_compressed(server: Server, make: Make) -> None:
    body = RETURNS.format(
        imports="from ansible.module_utils import urls, service", value="[urls.A, service.__file__[-3:]]"
    )
    assert outcome(server, make(body=body, utils={"urls.py": "A = 7\n"}, how="STORED")) == [7, ".py"]


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_a_file_of_a_payload_is_told_from_another(tmp_path: Path, compression: int) -> None:
    source = sources.Source("ansible.module_utils.one", b"ONE = 1\n", package=False)
    source.pack()
    for name, content, same in (("a", b"ONE = 1\n", True), ("b", b"ONE = 2\n", False)):
        with zipfile.ZipFile(tmp_path / name, "w", compression) as archive:
            archive.writestr("another", "ONE = 1\n")
            archive.writestr(source.file, content)
        toc = zipimport._read_directory(str(tmp_path / name))  # type: ignore[attr-defined]
        assert source.same((tmp_path / name).read_bytes(), toc) == same


def test_the_trace_of_an_exception(server: Server, make: Make) -> None:
    body = "from ansible.module_utils.basic import AnsibleModule\nm = AnsibleModule({})\nm.run_command(5)\n"
    module = make(body=body)
    cold, warm = plain(server.run_cold(stdin=module)), plain(server.run(stdin=module))
    assert differences(list(cold), list(warm)) == []
    assert "ansible_look_payload.zip/ansible/module_utils/basic.py" in str(cold)


def test_nothing_of_it_is_in_a_fork_that_does_not_ask(server: Server) -> None:
    script = b"import sys, socket, dataclasses, warnings; print(sys.intern, socket.getaddrinfo.__module__, dataclasses._is_type.__module__, 'HTTPWarning' in str(warnings.filters), [n for n in sys.modules if 'ansible' in n], [p for p in sys.path_importer_cache if 'ensign-warm' in p])"
    assert server.run(stdin=script) == server.run_cold(stdin=script)


def test_another_version_of_a_collection(server: Server, make: Make, tmp_path: Path) -> None:
    module_utils = "ansible_collections/kubernetes/core/plugins/module_utils"
    installed = Path(sources.installed()[K8S + ".common"].origin).parent
    shutil.copytree(installed, tmp_path / "other" / module_utils)
    with (tmp_path / "other" / module_utils / "hashes.py").open("a") as file:
        file.write("A = 6\n")
    imports = f"from {K8S} import hashes, apply, common"
    value = "[hashes.A, 'payload' in apply.__file__, apply.apply_object.__code__.co_filename == apply.__file__]"
    other = Maker(ANSIBLE_COLLECTIONS_PATH=str(tmp_path / "other"))
    module = make(body=RETURNS.format(imports=imports, value=value), by=other)
    other.close()
    assert outcome(server, module) == [6, True, True]


@pytest.mark.parametrize(
    "effect",
    [
        "import json\njson.loads = 5",
        "import json\njson.JSONEncoder.encode = 5",
        "import atexit\natexit.register(print, 'bye')",
        "import os\nos.environ['SET'] = '1'",
        "import sys\nsys.meta_path.append(None)",
        "import warnings\nwarnings.simplefilter('error')\nimport json\njson.loads = 5",
    ],
)
def test_a_library_that_changes_something_else_is_not_imported_ahead(tmp_path: Path, effect: str) -> None:
    (tmp_path / "path/ansible/module_utils").mkdir(parents=True)
    for name, text in {
        "__init__": "",
        "release": "__version__ = __author__ = ''",
        "module_utils/basic": effect,
    }.items():
        (tmp_path / f"path/ansible/{name}.py").write_text(text)
    served = Server(tmp_path, {b"PYTHONPATH": os.fsencode(tmp_path / "path")})
    script = b"import json, os, sys, warnings; print(json.loads, json.JSONEncoder.encode, os.environ.get('SET'), None in sys.meta_path)"
    try:
        assert "not imported ahead" in served.complaints.read_text()
        warm, cold = (re.sub(rb"0x\w+", b"", run(stdin=script).out) for run in (served.run, served.run_cold))
        assert warm == cold
    finally:
        served.close()


def test_what_can_be_imported_by_now_is_asked_for_once() -> None:
    ahead = library.Library()
    ahead._failed = {"no_module_of_this_name"}
    assert ahead.working() == set()
    ahead._failed = {"no_module_of_this_name", "json"}
    assert ahead.working() == set(sources.installed())
    assert ahead.working() == set()
