"""Guards the Python processes of a run, and then does what the environment's own sitecustomize does.

Python imports this file at its start, because PYTHONPATH begins with its directory. It takes the place of another
file of this name, which is executed from here. See ensign_names.
"""

import os
import sys

import ensign_names

sys.meta_path.insert(0, ensign_names.Finder)  # type: ignore[arg-type]


def chain() -> None:
    """Execute the sitecustomize that Python would have found without this directory, if there is one."""
    from importlib.machinery import PathFinder  # noqa: PLC0415

    own = os.path.dirname(os.path.abspath(__file__))
    spec = PathFinder.find_spec(__name__, [place for place in sys.path if os.path.abspath(place) != own])
    if spec is None or spec.loader is None:
        return
    from importlib.util import module_from_spec  # noqa: PLC0415

    module = module_from_spec(spec)
    sys.modules[__name__] = module  # So that those who import it get that one.
    spec.loader.exec_module(module)


chain()
