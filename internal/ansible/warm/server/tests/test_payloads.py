"""A payload that was built ahead is the one that Ansible would build."""

import base64
import contextlib
import importlib
import io
import os
import pickle
import signal
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import PATIENCE
from ensign_warm import building
from ensign_warm.payloads import Builder, Payloads

UTILITY = "def answer():\n    return 1\n"
MODULE = "from ansible.module_utils.basic import AnsibleModule\nfrom ansible.module_utils.ours import answer\n"
COLLECTED = (
    "from ansible.module_utils.basic import AnsibleModule\n"
    "from ansible_collections.a.b.plugins.module_utils.c import x\n"
    "try:\n    from ansible_collections.not_.there.plugins.module_utils.y import z\nexcept ImportError:\n    pass\n"
)
COLLECTION = "ansible_collections/a/b/plugins"


class Place:
    """A directory with modules, settled long ago as it seems."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def write(self, name: str, content: str) -> str:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        return str(path)

    def settle(self) -> None:
        """Wait until the clock of the file system has gone on since the last change."""
        while building.time.time_ns() - max(p.stat().st_ctime_ns for p in self.root.rglob("*")) <= building._UNSETTLED:
            time.sleep(0.01)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    made = Place(tmp_path)
    made.write("role/library/own.py", MODULE)
    made.write("role/module_utils/ours.py", UTILITY)
    made.write(f"{COLLECTION}/modules/collected.py", COLLECTED)
    made.write(f"{COLLECTION}/module_utils/c.py", "from .d import x\n")
    made.write(f"{COLLECTION}/module_utils/d.py", "x = 1\n")
    made.write("ansible_collections/a/b/meta/runtime.yml", "requires_ansible: '>=2.0'\n")
    made.settle()
    return made


def in_fork(function: Callable[[], Any]) -> Any:
    """Return what the function returns in a process of its own."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            answer = pickle.dumps(function())
        except BaseException as error:
            answer = pickle.dumps(f"{type(error).__name__}: {error}")
        with os.fdopen(writing, "wb") as pipe:
            pipe.write(answer)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        answer = pipe.read()
    os.waitpid(pid, 0)
    return pickle.loads(answer)  # noqa: S301


def find(place: Place, path: str, name: str, payloads: Payloads | None, verbosity: int = 0) -> tuple[Any, bool]:
    """Have Ansible make a payload; return the files in it, and whether Ansible has built it."""

    def work() -> tuple[Any, bool]:
        common = importlib.import_module("ansible.executor.module_common")
        loader = importlib.import_module("ansible.plugins.loader")
        engine = importlib.import_module("ansible.template").Templar(
            importlib.import_module("ansible.parsing.dataloader").DataLoader()
        )
        importlib.import_module("ansible.utils.collection_loader._collection_finder")._AnsibleCollectionFinder(
            [str(place.root)], scan_sys_paths=True
        )._install()
        loader.module_utils_loader.add_directory(str(place.root / "first" / "module_utils"))
        loader.module_utils_loader.add_directory(str(place.root / "role" / "module_utils"))
        temporary = place.root / "tmp" / str(os.getpid())
        common.C.DEFAULT_LOCAL_TMP = str(temporary)
        common.display.verbosity = verbosity
        if payloads is not None:
            payloads.use()
        built: list[object] = []
        original = common.recursive_finder

        def recursive_finder(*arguments: object) -> object:
            built.append(arguments)
            return original(*arguments)

        common.__dict__["recursive_finder"] = recursive_finder
        common._find_module_utils(
            module_name=name, b_module_data=Path(path).read_bytes(), module_path=path, module_args={}, task_vars={"ansible_python_interpreter": "/p"},
            templar=engine, module_compression="ZIP_DEFLATED", async_timeout=0, become_plugin=None, environment={},
        )  # fmt: skip
        (cached,) = (p for p in (temporary / "ansiballz_cache").iterdir() if p.suffix != ".lock")
        return files(cached.read_bytes()), bool(built)

    found: tuple[Any, bool] = in_fork(work)
    assert not isinstance(found, str), found
    return found


def files(content: bytes) -> Any:
    cached = pickle.loads(content)  # noqa: S301
    with zipfile.ZipFile(io.BytesIO(base64.b64decode(cached.zip_data))) as archive:
        return (
            cached.metadata,
            cached.source_mapping,
            [(i.filename, i.compress_type, archive.read(i)) for i in archive.infolist()],
        )


def taught(payloads: Payloads) -> bool:
    """Have the server learn what it has heard; tell whether there was something."""
    heard = payloads.hear()
    if heard:
        taught_more(payloads)
    return heard


def taught_more(payloads: Payloads) -> bool:
    while payloads.learn():
        pass
    return payloads.hear()


@pytest.fixture
def endless(place: Place) -> Iterator[building.Wanted]:
    """What it takes forever to build: the module has no end."""
    path = place.root / "endless.py"
    os.mkfifo(path)
    writing = os.open(path, os.O_RDWR)
    yield building.Wanted("endless", "ansible.legacy.endless", str(path), "ZIP_DEFLATED", (), ())
    os.close(writing)


def test_a_server_that_ends_leaves_nothing_at_work(endless: building.Wanted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ensign_warm.payloads._PATIENCE", 600)

    def at_work() -> int:
        importlib.import_module("ansible.executor.module_common")  # As in a server.
        builder = Builder(endless)._pid
        await_that(lambda: endless.path in files_of(builder))
        return builder

    builder = in_fork(at_work)
    assert isinstance(builder, int), builder
    await_that(lambda: state_of(builder) in ("", "Z"))


def await_that(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end


def files_of(pid: int) -> list[str]:
    """Return what the process has open but what is being closed."""
    found = []
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            found.append(str(link.readlink()))
    return found


def somewhere() -> Payloads:
    return Payloads(tempfile.mkdtemp())


def state_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def test_a_server_goes_on_while_a_payload_is_built(endless: building.Wanted) -> None:
    def server() -> tuple[list[bool], bool, int]:
        importlib.import_module("ansible.executor.module_common")
        payloads = somewhere()
        payloads._wanted.append(endless)
        begun = payloads.learn()
        assert payloads._builder is not None
        builder = payloads._builder._pid
        await_that(lambda: endless.path in files_of(builder))
        goes_on = [begun, payloads.learn(), payloads.hear()]
        os.kill(builder, signal.SIGKILL)
        return goes_on, taught_more(payloads), len(payloads._known)

    assert in_fork(server) == ([True] * 3, False, 0)


def test_a_server_may_have_reaped_what_has_built(endless: building.Wanted) -> None:
    builder = Builder(endless)
    os.kill(builder._pid, signal.SIGKILL)
    os.waitpid(builder._pid, 0)
    assert builder.ended()
    assert builder.take() is None
    for descriptor in (builder.reading, builder.handle):
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(descriptor)


def test_a_server_that_may_not_fork_builds_nothing(endless: building.Wanted, monkeypatch: pytest.MonkeyPatch) -> None:
    def full() -> int:
        raise BlockingIOError

    payloads, before = somewhere(), os.listdir("/proc/self/fd")
    payloads._wanted.append(endless)
    monkeypatch.setattr(os, "fork", full)
    assert not payloads.learn()
    assert os.listdir("/proc/self/fd") == before


def core(name: str) -> str:
    return str(Path(str(importlib.import_module("ansible").__file__)).with_name("modules") / f"{name}.py")


def kubernetes() -> str:
    return str(Path(core("ping")).parents[2] / "ansible_collections/kubernetes/core/plugins/modules/k8s.py")


MODULES = {
    "Ansible's own": lambda _: (core("ping"), "ping"),
    "one of a collection": lambda place: (str(place.root / COLLECTION / "modules" / "collected.py"), "collected"),
    "Kubernetes'": lambda _: (kubernetes(), "kubernetes.core.k8s"),
    "a role's": lambda place: (str(place.root / "role" / "library" / "own.py"), "own"),
}


@pytest.mark.parametrize("which", MODULES)
def test_it_is_the_same_and_built_once(place: Place, which: str) -> None:
    path, name = MODULES[which](place)
    payloads = somewhere()
    first, built = find(place, path, name, payloads)
    assert built
    assert taught(payloads)
    second, built = find(place, path, name, payloads)
    assert not built
    assert second == first
    assert not payloads.hear()


CHANGES: dict[str, Callable[[Place], object]] = {
    "a file that is in it": lambda place: place.write("role/module_utils/ours.py", UTILITY.replace("1", "2")),
    "one that hides it": lambda place: place.write("first/module_utils/ours.py", UTILITY.replace("1", "2")),
    "a package that hides it": lambda place: place.write(
        "role/module_utils/ours/__init__.py", UTILITY.replace("1", "2")
    ),
    "the module": lambda place: place.write("role/library/own.py", MODULE + "x = 1\n"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_it_is_built_anew_after_a_change_of(place: Place, change: str) -> None:
    path, name = MODULES["a role's"](place)
    payloads = somewhere()
    first, _ = find(place, path, name, payloads)
    assert taught(payloads)
    CHANGES[change](place)
    place.settle()
    second, built = find(place, path, name, payloads)
    assert built
    assert second != first
    assert taught(payloads)
    assert find(place, path, name, payloads) == (second, False)


COLLECTED_CHANGES: dict[str, Callable[[Place], object]] = {
    "a file beside the one that asks for it": lambda place: place.write(f"{COLLECTION}/module_utils/d.py", "x = 2\n"),
    "a collection that was not there": lambda place: place.write(
        "ansible_collections/not_/there/plugins/module_utils/y.py", "z = 1\n"
    ),
    "a collection's routing": lambda place: place.write(
        "ansible_collections/a/b/meta/runtime.yml", "plugin_routing: {module_utils: {c: {redirect: a.b.d}}}\n"
    ),
}


@pytest.mark.parametrize("change", COLLECTED_CHANGES)
def test_it_is_built_anew_after_a_change_in_collections_of(place: Place, change: str) -> None:
    path, name = MODULES["one of a collection"](place)
    payloads = somewhere()
    first, _ = find(place, path, name, payloads)
    assert taught(payloads)
    COLLECTED_CHANGES[change](place)
    second, built = find(place, path, name, payloads)
    assert built
    assert second != first


def test_what_has_just_changed_is_not_kept(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    path, name = MODULES["a role's"](place)
    payloads = somewhere()
    monkeypatch.setattr(building, "_UNSETTLED", 1 << 62)
    assert find(place, path, name, payloads)[1]
    assert taught(payloads)
    assert find(place, path, name, payloads)[1]


def test_a_warning_is_heard_each_time(place: Place) -> None:
    removal = "plugin_routing: {module_utils: {c: {deprecation: {removal_version: 9.0.0, warning_text: x}}}}\n"
    place.write("ansible_collections/a/b/meta/runtime.yml", removal)
    place.settle()
    path, name = MODULES["one of a collection"](place)
    payloads = somewhere()
    assert find(place, path, name, payloads)[1]
    assert taught(payloads)
    assert find(place, path, name, payloads)[1]
    assert not payloads.hear()  # It is known for that.


def test_ansible_tells_what_it_builds_when_asked_to(place: Place) -> None:
    payloads = somewhere()
    assert find(place, core("ping"), "ping", payloads, verbosity=3)[1]
    assert not payloads.hear()


def test_notes_that_are_none_are_nothing(place: Place) -> None:
    payloads = somewhere()
    for note in (b"\xff\n", b"{}\n", b"[1, 2, 3, 4, 5, 6]\n", b'["a", "b", "/nowhere", "ZIP_DEFLATED", [], []]\n'):
        payloads._notes.leave(note)
    assert taught(payloads)
    assert find(place, core("ping"), "ping", payloads)[1]
