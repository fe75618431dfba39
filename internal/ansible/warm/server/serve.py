"""Start of a warm server: python serve.py KIND NAME=VALUE…; see ensign_warm."""

import sys

before = set(sys.modules)
writes_bytecode, sys.dont_write_bytecode = sys.dont_write_bytecode, True
from ensign_warm import noting  # noqa: E402

noting.begin()
from ensign_warm import main  # noqa: E402

sys.dont_write_bytecode = writes_bytecode
del sys.path[0]  # What is run finds modules where a new interpreter would.

main.run(sys.argv[1:], before)
