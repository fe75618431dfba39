"""A module's process is as a new interpreter would make it."""

import os
import signal
import socket
from pathlib import Path

import pytest
from conftest import Server, ask, line_of

SCRIPTS = {
    "what it prints": "print('é'); import sys; print('x', file=sys.stderr)",
    "an exit code": "import sys; sys.exit(3)",
    "an exit code that is negative": "import sys; sys.exit(-1)",
    "an exit with a text": "import sys; print('a'); sys.exit('why')",
    "an exception": "def f():\n    raise ValueError('x')\nf()",
    "an exception with a cause": "try:\n    1/0\nexcept Exception as e:\n    raise OSError(1) from e",
    "an interrupt": "raise KeyboardInterrupt",
    "a death by signal": "import os, signal; os.kill(os.getpid(), signal.SIGTERM)",
    "an end without any": "import os; os._exit(7)",
    "handlers at the exit": "import atexit; atexit.register(print, 'bye'); print('hello')",
    "threads at the exit": "import threading as t; t.Thread(target=lambda: (t.main_thread().join(), print('late'))).start(); print('early')",
    "destructors at the exit": "class A:\n    def __del__(self): print('gone')\na = A()",
    "buffers at the exit": "import os; f = open(os.dup(1), 'w'); f.write('unflushed')",
    "a hook for exceptions": "import sys\ndef hook(*a): print('hook', a[0].__name__)\nsys.excepthook = hook\n1/0",
    "the names of a script": "print({k: type(v).__name__ for k, v in sorted(globals().items())}, __name__)",
    "its arguments": "import sys; print(sys.argv, sys.orig_argv[1:])",
    "where it finds modules": "import sys; print(sys.path)",
    "the interpreter": "import sys; print(sys.executable, sys.version, sys.prefix, sys.base_prefix, sys.flags, sys.warnoptions)",
    "the standard streams": "import sys\nfor s in (sys.stdin, sys.stdout, sys.stderr, sys.__stdout__):\n"
    "    print(s.name, s.mode, s.encoding, s.errors, s.line_buffering, s.write_through, s.newlines, s.isatty(), s.fileno(), type(s.buffer))",
    "what it has imported": "import sys; print(sorted(sys.modules))",
    "a package without its modules": "import importlib; print(hasattr(importlib, 'metadata'))",
    "a module's attributes": "import json.decoder as m; print(m.__spec__.name, m.__spec__.origin, type(m.__loader__).__name__, m.__file__)",
    "one copy of a module": "import datetime, yaml; print(type(yaml.safe_load('2001-01-01')) is datetime.date)",
    "another name of itself": "import multiprocessing, sys; print(sys.modules['__mp_main__'] is sys.modules['__main__'])",
    "its environment": "import os; print(sorted(k for k in os.environ if k != 'LC_CTYPE'), os.environ.get('SPECIAL'))",
    "the environment of its children": "import os; os.environ['NEW'] = '1'; print(os.popen('echo $SPECIAL $NEW').read())",
    "its environment as others see it": "print(sorted(e.split('=')[0] for e in open('/proc/self/environ').read().split('\\0') if e))",
    "its directory": "import os; print(os.getcwd())",
    "its descriptors": "import os; print(sorted(os.listdir('/proc/self/fd'))[:-1], [os.get_inheritable(n) for n in range(3)])",
    "its limits": "import resource; print([resource.getrlimit(n) for n in range(16)])",
    "its mask of modes": "import os; print(os.umask(0))",
    "its signals": "import signal; print([(s.name, signal.getsignal(s)) for s in sorted(signal.valid_signals()) if s.name != 'SIGINT' and s < 32])",
    "signals of its children": "import os; print(os.popen('grep Sig[BIC] /proc/self/status').read())",
    "an interrupt's handler": "import signal; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler, signal.pthread_sigmask(0, []))",
    "its standard input": "import sys; print(sys.stdin.read())",
    "the garbage collector": "import gc; print(gc.isenabled(), gc.get_threshold())",
    "the locale": "import locale; print(locale.setlocale(locale.LC_ALL), locale.getpreferredencoding())",
    "the time zone": "import time; print(time.tzname, time.timezone)",
    "what a stale import finds": "import sys; sys.path.insert(0, 'shadow'); import yaml; print(yaml.MARK)",
    "what uses a stale import": "import sys; sys.path.insert(0, 'shadow'); import kubernetes; print(kubernetes.config.kube_config.yaml.MARK)",
    "where Kubernetes is": "import kubernetes.config as c; print(c.KUBE_CONFIG_DEFAULT_LOCATION, c.kube_config.KUBE_CONFIG_DEFAULT_LOCATION)",
    "pickles": "import pickle, decimal; print(pickle.loads(pickle.dumps(decimal.Decimal(1))))",
    "an import of an import": "import importlib; print(importlib.import_module('http.client').HTTPConnection.__module__)",
    "a syntax error": "def f(:",
    "output that nobody takes": "import os, sys; os.close(1); print('x' * 100000)",
}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "shadow").mkdir()
    (tmp_path / "shadow" / "yaml.py").write_text("MARK = 'another'\n")
    return tmp_path


EXTRA = {b"SPECIAL": b"1", b"KUBECONFIG": b"/k", b"JOB_ID": b"12"}


@pytest.mark.parametrize("name", SCRIPTS)
@pytest.mark.parametrize("way", ["file", "pipe"])
def test_as_in_a_new_interpreter(server: Server, place: Path, name: str, way: str) -> None:
    script, arguments, stdin = SCRIPTS[name], [], SCRIPTS[name].encode()
    if way == "file":
        path = place / "AnsiballZ_x.py"
        path.write_text(script)
        arguments, stdin = [str(path)], b"input"
    warm = server.run(*arguments, stdin=stdin, extra=EXTRA, directory=str(place))
    if name == "a syntax error" and way == "file":
        assert warm.how == "cold script"
        return
    assert warm == server.run_cold(*arguments, stdin=stdin, extra=EXTRA, directory=str(place))


@pytest.mark.parametrize(
    "names",
    ["json", "datetime", "ssl, urllib.request", "subprocess, tempfile", "kubernetes.config", "yaml", "requests"],
)
def test_an_import_brings_what_it_imports(server: Server, names: str) -> None:
    script = f"import {names}, sys; print(*sorted(sys.modules))".encode()
    warm, cold = server.run(stdin=script).out.split(), server.run_cold(stdin=script).out.split()
    # Left out is what compiled modules have imported, and another name of the main module.
    assert [n for n in cold if n not in warm and b"cython" not in n and not n.startswith((b"_", b"ctypes"))] == []


def test_leads_a_session_of_its_own(server: Server) -> None:
    assert server.run(stdin=b"import os; print(os.getsid(0) == os.getpid())").out == b"True\n"


@pytest.mark.parametrize(
    ("extra", "reason"),
    [
        ({b"PYTHONPATH": b"/x"}, "cold variable PYTHONPATH"),
        ({b"LANG": b"xx"}, "cold variable LANG"),
        ({b"LD_PRELOAD": b"/x"}, "cold variable LD_PRELOAD"),
        ({b"ANYTHING": b"else"}, "exit 0"),
    ],
)
def test_refuses_an_environment_that_matters_at_the_start(
    server: Server, extra: dict[bytes, bytes], reason: str
) -> None:
    assert server.run(stdin=b"pass", extra=extra).how == reason


@pytest.mark.parametrize("arguments", [["-c", "pass"], ["-m", "pip"], ["x.py", "y"], ["x"], ["missing.py"]])
def test_refuses_what_is_no_module(server: Server, arguments: list[str]) -> None:
    assert server.run(*arguments).how in ("cold arguments", "cold script")


def test_shows_its_own_arguments(server: Server, tmp_path: Path) -> None:
    path = tmp_path / "AnsiballZ_x.py"
    path.write_text("print(open('/proc/self/cmdline').read().rstrip('\\0').split('\\0')[1:])")
    assert server.run(str(path)).out == f"[{str(path)!r}]\n".encode()


def test_nothing_passes_to_the_next(server: Server) -> None:
    server.run(stdin=b"import os, yaml, random; yaml.left = 1; os.environ['LEFT'] = '1'; random.seed(1)")
    script = b"import os, yaml; print(hasattr(yaml, 'left'), 'LEFT' in os.environ)"
    assert server.run(stdin=script).out == b"False False\n"
    assert (
        server.run(stdin=b"import random; print(random.random())").out
        != server.run(stdin=b"import random; print(random.random())").out
    )


def test_nothing_begins_before_it_may(server: Server, tmp_path: Path) -> None:
    connection, pid = begun(server, tmp_path, f"open({str(tmp_path / 'ran')!r}, 'w')")
    connection.close()
    await_end(pid)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(("said", "count"), [(b"g", 0), (b"g", 2), (b"x", 3)])
def test_nothing_begins_without_all_it_needs(server: Server, tmp_path: Path, said: bytes, count: int) -> None:
    connection, _ = begun(server, tmp_path, f"open({str(tmp_path / 'ran')!r}, 'w')")
    socket.send_fds(connection, [said], [connection.fileno()] * count)
    assert line_of(connection) == "signal 9"
    assert not (tmp_path / "ran").exists()


def test_ends_with_its_standin(server: Server, tmp_path: Path) -> None:
    connection, pid = begun(server, tmp_path, "import time; time.sleep(600)")
    go(connection)
    connection.close()
    await_end(pid)
    assert server.run(stdin=b"print(1)").out == b"1\n"


def test_its_death_is_told(server: Server, tmp_path: Path) -> None:
    connection, pid = begun(server, tmp_path, "import time; time.sleep(600)")
    go(connection)
    os.kill(pid, signal.SIGKILL)
    assert line_of(connection) == "signal 9"


@pytest.mark.parametrize("request_", [b"", b"\xff\xff\xff\xff", b"\x02\0\0\0x\0", b"\x01\0\0\0"])
def test_survives_what_is_no_request(server: Server, request_: bytes) -> None:
    with server.connect() as connection:
        connection.sendall(request_)
    assert server.run(stdin=b"print(1)").out == b"1\n"


def begun(server: Server, directory: Path, script: str) -> tuple[socket.socket, int]:
    connection = server.connect()
    path = directory / "AnsiballZ_begun.py"
    path.write_text(script)
    ask(connection, (str(path),), server.environment, "/")
    return connection, int(line_of(connection).removeprefix("ready "))


def go(connection: socket.socket) -> None:
    with open(os.devnull, "r+b") as file:
        socket.send_fds(connection, [b"g"], [file.fileno()] * 3)


def await_end(pid: int) -> None:
    while True:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
