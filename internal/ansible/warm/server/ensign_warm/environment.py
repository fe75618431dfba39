"""Which environments are as good as the one that a server has imported with."""

import fnmatch
import os
from collections.abc import Iterator

# What differs from run to run and is resolved anew in each fork, or is read when it
# is needed only. Shells set the last four.
OF_ONE_RUN = frozenset(
    (
        b"JOB_ID",
        b"KUBECONFIG",
        b"K8S_AUTH_KUBECONFIG",
        b"ANSIBLE_LOCAL_TEMP",
        b"AWX_ISOLATED_DATA_DIR",
        b"ANSIBLE_CACHE_PLUGIN_CONNECTION",
        b"ANSIBLE_ROLES_PATH",
        b"PWD",
        b"OLDPWD",
        b"SHLVL",
        b"_",
    )
)

# What the interpreter, the C library, or a library below Python reads when it starts.
_AT_START = (
    "PYTHON*",
    "LC_*",
    "LANG",
    "LANGUAGE",
    "LD_*",
    "GLIBC_*",
    "MALLOC_*",
    "LOCPATH",
    "GCONV_PATH",
    "TZ",
    "TZDIR",
    "OPENSSL_*",
)

# Room in the server's environment for that of a run: see process.mark.
ROOM = b"ENSIGN_WARM_ROOM"
_ROOM_BYTES = 64 << 10

EVERYTHING = "*"


class Recorder:
    """Notes which variables are read while it is in use."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self._class = type(os.environ)

    def __enter__(self) -> "Recorder":
        names = self.names

        class Recorded(self._class):  # type: ignore[name-defined]
            def __getitem__(self, name: str) -> str:
                names.add(name)
                return str(super().__getitem__(name))

            def __iter__(self) -> Iterator[str]:
                names.add(EVERYTHING)
                return iter(super().__iter__())

        os.environ.__class__ = Recorded
        return self

    def __exit__(self, *_: object) -> None:
        os.environ.__class__ = self._class


def current() -> dict[bytes, bytes]:
    return {name: value for name, value in os.environb.items() if name != ROOM}


def of_server(environment: dict[bytes, bytes], temporary: bytes) -> dict[bytes, bytes]:
    """Return what a server for such environments is started with."""
    kept = {name: value for name, value in environment.items() if name not in OF_ONE_RUN and name != ROOM}
    kept[b"ANSIBLE_LOCAL_TEMP"] = temporary
    return kept | {ROOM: b"." * _ROOM_BYTES}


def difference(one: dict[bytes, bytes], other: dict[bytes, bytes], read: set[str] | None = None) -> str:
    """Name a variable that differs and matters; "" if there is none.

    What matters is all but OF_ONE_RUN or, with read, what was read by name and what
    is read at the start of an interpreter.
    """
    for name in sorted(one.keys() | other.keys()):
        if name not in OF_ONE_RUN and one.get(name) != other.get(name) and _matters(os.fsdecode(name), read):
            return os.fsdecode(name)
    return ""


def _matters(name: str, read: set[str] | None) -> bool:
    if read is None or EVERYTHING in read or name in read:
        return True
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in _AT_START)


def replace(environment: dict[bytes, bytes]) -> None:
    """Make it this process' environment. os.environ stays the same object, because modules hold it."""
    os.environ.clear()
    for name, value in environment.items():
        os.environb[name] = value
