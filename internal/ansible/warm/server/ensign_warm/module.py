"""Modules that Ansible runs by this interpreter."""

import atexit
import os
import sys
from types import CodeType, ModuleType
from typing import NoReturn

from ensign_warm import codes, environment, kubeconfig, leave, library, noting, process, script, stash
from ensign_warm.wire import Refused, Request

_ONE = 1
# What the client of Kubernetes has read of KUBECONFIG.
_PLACE = "KUBE_CONFIG_DEFAULT_LOCATION"

# What modules of Kubernetes and most others import, as far as it is installed.
_NAMES = (
    "kubernetes",
    "kubernetes.dynamic",
    "kubernetes.dynamic.resource",
    "kubernetes.dynamic.exceptions",
    "kubernetes.client.rest",
    "kubernetes.config",
    "urllib3",
    "yaml",
    "jinja2",
    "jsonpatch",
    "requests",
    "argparse",
    "base64",
    "concurrent.futures.thread",
    "configparser",
    "cryptography.hazmat.backends",
    "cryptography.x509",
    "ctypes",
    "datetime",
    "decimal",
    "difflib",
    "distro",
    "email.mime.application",
    "email.mime.multipart",
    "encodings.cp437",
    "encodings.idna",
    "fcntl",
    "filecmp",
    "getpass",
    "gettext",
    "glob",
    "grp",
    "gzip",
    "hashlib",
    "hmac",
    "http.client",
    "http.cookiejar",
    "json",
    "locale",
    "logging",
    "mimetypes",
    "multiprocessing.pool",
    "netrc",
    "pkgutil",
    "platform",
    "pwd",
    "random",
    "resource",
    "runpy",
    "select",
    "selectors",
    "shlex",
    "shutil",
    "socket",
    "ssl",
    "subprocess",
    "syslog",
    "tempfile",
    "traceback",
    "typing",
    "urllib.request",
    "uuid",
    "zipfile",
    "zipimport",
)


class Module:
    """A script file, or a script that comes on the standard input."""

    command = b"python"

    def __init__(self, before: set[str], directory: str, with_library: bool = True) -> None:
        self.lessons = codes.Codes(directory)
        self._before = before
        self._with_library = with_library
        self._recorder = environment.Recorder()
        self._own: dict[bytes, bytes] = {}
        self._tempfile: ModuleType | None = None
        self._platform: ModuleType | None = None
        self._ahead: list[ModuleType] = []
        self._locating: list[ModuleType] = []
        self._codes: list[CodeType] = []

    def load(self) -> list[ModuleType]:
        self._own = environment.current()
        with self._recorder:
            stash.load(_NAMES)
            given = library.Library() if self._with_library else None
            if given is not None:
                given.load()
        noting.end()
        modules = stash.take(self._before, noting.graph)
        if given is not None:
            given.settle(modules, noting.graph)
        # What was asked for and was not there is missed in the same places.
        path = stash.SearchPath(set().union(modules, *noting.graph.values()))
        sys.meta_path.insert(0, stash.Stash(modules, noting.graph, path.same, given))
        noting.graph.clear()
        kubeconfig.give(modules)
        self._tempfile = modules.get("tempfile")
        self._platform = modules.get("platform")
        self._locating = [m for m in modules.values() if _PLACE in m.__dict__]
        self._ahead = list(modules.values())
        return self._ahead

    def admit(self, request: Request) -> None:
        if name := environment.difference(self._own, request.environment, self._recorder.names):
            raise Refused(f"variable {name}")
        if len(request.arguments) > _ONE:
            raise Refused("arguments")
        for argument in request.arguments:
            self._codes = self._read(argument)

    def _read(self, path: bytes) -> list[CodeType]:
        if path.startswith(b"-") or not path.endswith(b".py"):
            raise Refused("arguments")
        try:
            with open(path, "rb") as file:
                return script.compiled(file.read(), os.fsdecode(path), self.lessons.take)
        except (OSError, ValueError, SyntaxError) as error:
            raise Refused("script") from error

    def become(self, request: Request) -> NoReturn:
        self._refresh(request)
        arguments = [os.fsdecode(argument) for argument in request.arguments]
        sys.argv = arguments or [""]
        sys.orig_argv = [sys.executable, *arguments]
        process.show_arguments([os.fsencode(argument) for argument in sys.orig_argv])
        self.lessons.use()
        atexit.register(self.lessons.note)  # It is called last.
        if self._codes:
            leave.run(self._codes, arguments[0], os.path.dirname(os.path.realpath(arguments[0])), self._ahead)
        leave.run(self._from_stdin(), "<stdin>", "", self._ahead)

    def _from_stdin(self) -> list[CodeType]:
        """Read the whole script first, as an interpreter does."""
        text = sys.stdin.buffer.read()
        try:
            return script.compiled(text, "<stdin>", self.lessons.take)
        except (SyntaxError, ValueError) as error:
            leave.show(error)
            sys.stderr.flush()
            os._exit(1)

    def _refresh(self, request: Request) -> None:
        """Set what modules have read of the environment when they were imported."""
        place = request.environment.get(b"KUBECONFIG", b"~/.kube/config")
        for module in self._locating:
            module.__dict__[_PLACE] = os.fsdecode(place)
        if self._tempfile is not None:
            self._tempfile.__dict__["tempdir"] = None
        if self._platform is not None:
            self._platform.__dict__["_uname_cache"] = None  # It has the host's name.
