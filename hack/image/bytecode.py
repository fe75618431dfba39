"""Fail when a Python file of this interpreter's packages has no bytecode that it would use.

Without it, each start of a process compiles what it imports, on a read-only root for ever.
"""

from __future__ import annotations

import importlib.util
import struct
import sys
import sysconfig
from pathlib import Path

TIME = slice(8, 12)  # of a .pyc: when the source was changed


def is_fresh(source: Path) -> bool:
    """Report whether the interpreter takes the file's bytecode."""
    compiled = Path(importlib.util.cache_from_source(str(source)))
    if not compiled.exists():
        return False
    (changed,) = struct.unpack("<I", compiled.read_bytes()[TIME])
    return bool(changed == int(source.stat().st_mtime) & 0xFFFFFFFF)


def main() -> None:
    sources = list(Path(sysconfig.get_path("purelib")).rglob("*.py"))
    stale = [str(source) for source in sources if not is_fresh(source)]
    if not sources or stale:
        sys.exit("\n".join([f"{len(stale)} of {len(sources)} files have no bytecode:", *stale[:20]]))


if __name__ == "__main__":
    main()
