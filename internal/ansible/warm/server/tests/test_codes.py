"""Sources of a payload that are compiled once are what they would be in a new interpreter."""

import base64
import io
import zipfile
import zipimport
from pathlib import Path

import pytest
from conftest import Server
from ensign_warm import codes

MODULE = """
import inspect, sys, traceback
from given import one, again, broken_later
print(one.__file__, one.__spec__, type(one.__loader__).__name__, one.__cached__, one.f.__code__.co_filename, __file__)
print(one.C.m.__code__.co_filename, [c.__code__.co_filename for c in one.nested()])
print(again.f.__code__.co_filename, again.__spec__.origin, inspect.getsource(again.f), inspect.getsource(one))
print(one.__doc__, one.C.__doc__, one.f.__annotations__)
for bad in (one.fail, lambda: __import__('given.broken'), broken_later.fail):
    try:
        bad()
    except Exception:
        traceback.print_exc()
print('end', file=sys.stderr)
1/0
"""
ONE = """'''Text.'''
def f(x: int = 3): return lambda: x
class C:
    '''Of a class.'''
    def m(self): return [i for i in range(3)]
def nested(): return [f(), f(2)]
def fail():
    raise KeyError('x')
"""
FILES = {
    "given/__init__.py": "",
    "given/one.py": ONE,
    "given/again.py": ONE,
    "given/broken.py": "def f():\n    return 1\nreturn 2\n",
    "given/broken_later.py": "import re\r\nP = '\\d'\r\ndef fail(): re.compile('(')\r\n",
    "given/module.py": MODULE,
}


def script(place: Path, files: dict[str, str], before: str = "") -> bytes:
    """Return what does with a payload what Ansible does with its own."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as payload:
        for name, text in files.items():
            payload.writestr(zipfile.ZipInfo(name), text)
    path = str(place / "ansible_x_payload_1" / "ansible_x_payload.zip")
    return f"""
{before}
import base64, os, runpy, sys
os.makedirs(os.path.dirname({path!r}), exist_ok=True)
open({path!r}, 'wb').write(base64.b64decode({base64.b64encode(content.getvalue())!r}))
sys.path.insert(0, {path!r})
runpy.run_module('given.module', run_name='__main__', alter_sys=True)
""".encode()


COUNTED = """
import atexit, sys
counted = []
sys.addaudithook(lambda event, args: counted.append(args[1]) if event == 'compile' and 'payload' in str(args[1]) else None)
atexit.register(lambda: print(len(counted)))
"""


def await_learned(server: Server, program: bytes) -> None:
    """Run a program that says how much it has compiled until that is nothing."""
    while not server.run(stdin=program).out.endswith(b"\n0\n"):
        pass


def test_looks_as_in_a_new_interpreter(server: Server, tmp_path: Path) -> None:
    program = script(tmp_path, FILES)
    cold = server.run_cold(stdin=program)
    assert b"SyntaxWarning" in cold.err
    assert b"'return' outside function" in cold.err
    learned = script(tmp_path, {k: v for k, v in FILES.items() if "broken" not in k} | {"given/module.py": "print()"})
    assert server.run(stdin=program) == cold
    await_learned(server, COUNTED.encode() + learned)
    assert server.run(stdin=program) == cold


def test_compiles_once(server: Server, tmp_path: Path) -> None:
    files = {"given/__init__.py": f"a = {str(tmp_path)!r}", "given/module.py": f"print({str(tmp_path)!r})"}
    program = script(tmp_path, files, COUNTED)
    assert not server.run(stdin=program).out.endswith(b"\n0\n")
    await_learned(server, program)


def test_other_bytes_are_another_source(server: Server, tmp_path: Path) -> None:
    files = {"given/__init__.py": "", "given/module.py": "from given import x\nprint(x.a)", "given/x.py": "a = 1"}
    await_learned(server, script(tmp_path, files, COUNTED))
    assert server.run(stdin=script(tmp_path, files | {"given/x.py": "a = 2"})).out == b"2\n"
    assert server.run(stdin=script(tmp_path, files)).out == b"1\n"


@pytest.fixture
def learned(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> codes.Codes:
    monkeypatch.setattr(zipimport, "_compile_source", zipimport._compile_source)  # type: ignore[attr-defined]
    return codes.Codes(str(tmp_path))


def teach(learned: codes.Codes, *sources: bytes) -> None:
    learned._missed = set(sources)
    learned.note()
    more = learned.hear()
    while more:
        more = learned.learn()


def test_knows_what_it_was_told(learned: codes.Codes) -> None:
    teach(learned, b"a = 1", b"b = 2")
    teach(learned)
    assert set(learned._known) == {b"a = 1", b"b = 2"}


@pytest.mark.parametrize("source", [b"a = '\\d'", b"return", b"a = (", b"\xff", b"# coding: nonsense\n", b"a\0"])
def test_compiles_each_time_what_warns_or_fails(learned: codes.Codes, source: bytes) -> None:
    teach(learned, source)
    assert learned._known == {source: None}


def test_keeps_the_newest_within_its_limit(learned: codes.Codes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codes, "_MOST", 10)
    for source in (b"a=1", b"b=123", b"c=2", b"d = 1234567890"):
        teach(learned, source)
    assert set(learned._known) == {b"b=123", b"c=2"}


def test_notes_that_are_none_are_no_sources() -> None:
    assert list(codes._parse(b"\1\0\0\0a" + b"\xff\0\0\0b" + b"x")) == [b"a", b"bx"]
    assert list(codes._parse(b"\0\0")) == []


def test_leaves_no_note_where_the_server_was(learned: codes.Codes, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_bytes(b"theirs")
    learned._notes._path, learned._missed = str(other), {b"a"}
    learned.note()
    assert other.read_bytes() == b"theirs"


def test_gives_a_source_its_own_name_each_time(learned: codes.Codes) -> None:
    teach(learned, b"f = lambda: 1")
    learned.use()
    give = zipimport._compile_source  # type: ignore[attr-defined]
    one, two = give("/one", b"f = lambda: 1"), give("/two", b"f = lambda: 1")
    assert (one.co_filename, one.co_consts[0].co_filename) == ("/one", "/one")
    assert (two.co_filename, two.co_consts[0].co_filename) == ("/two", "/two")
    assert give("/one", b"f = lambda: 1") is one
