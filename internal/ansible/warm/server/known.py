"""Add the sources of the interpreter's own versions to ensign_warm/known.json.

python known.py, with each Python environment that has versions which were tried.
"""

import json
from pathlib import Path

from ensign_warm.bound import KNOWN, digest

if __name__ == "__main__":
    known = json.loads(Path(KNOWN).read_text())
    for functions in known.values():
        for function, digests in functions.items():
            functions[function] = sorted({*digests, digest(function)})  # "" is that of one that a version lacks.
    Path(KNOWN).write_text(json.dumps(known, indent=1) + "\n")
