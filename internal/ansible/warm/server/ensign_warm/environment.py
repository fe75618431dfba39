"""Which environments are as good as the one that a server has imported with."""

import os

# What differs from run to run and is resolved anew in each fork, or is read when it
# is needed only. ansible-runner sets the last three for the playbook.
OF_ONE_RUN = frozenset(
    b"JOB_ID KUBECONFIG K8S_AUTH_KUBECONFIG ANSIBLE_LOCAL_TEMP"
    b" AWX_ISOLATED_DATA_DIR ANSIBLE_CACHE_PLUGIN_CONNECTION ANSIBLE_ROLES_PATH".split()
)

# What the interpreter, the C library, or a library below Python reads when it starts.
AT_START = "PYTHON* LC_* LANG LANGUAGE LD_* GLIBC_* MALLOC_* LOCPATH GCONV_PATH TZ TZDIR OPENSSL_*"

# Room in the server's environment for that of a run: see process.mark.
_ROOM = b"ENSIGN_WARM_ROOM"


def current() -> dict[bytes, bytes]:
    return {name: value for name, value in os.environb.items() if name != _ROOM}


def difference(one: dict[bytes, bytes], other: dict[bytes, bytes]) -> str:
    """Name a variable that differs and is not of one run; "" if there is none."""
    names = sorted(n for n in one.keys() | other.keys() if n not in OF_ONE_RUN and one.get(n) != other.get(n))
    return os.fsdecode(names[0]) if names else ""


def replace(environment: dict[bytes, bytes]) -> None:
    """Make it this process' environment. os.environ stays the same object, because modules hold it."""
    for name in list(os.environb):  # That is what clear does, more slowly.
        del os.environb[name]
    for name, value in environment.items():
        os.environb[name] = value
