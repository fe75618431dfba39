"""Start of a warm server: python serve.py PATH-OF-ENSIGN_RUN TEMPLATES.JSON room=SPACES; see ensign_warm."""

import sys

# Bytecode that a server wrote would look like a change of what it has imported. Forks write it again.
sys.dont_write_bytecode = True
from ensign_warm import main  # noqa: E402

del sys.path[0]  # What is run finds modules where a new interpreter would.

main.run(*sys.argv[1:3])
