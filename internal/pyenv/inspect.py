"""Prints what is installed in the environment of this interpreter as JSON."""

import importlib.metadata
import json
import os
import platform
import sys


def version(name):
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


places = [p for p in dict.fromkeys(os.path.abspath(p) for p in sys.path if p) if os.path.isdir(p)]
collections = [c for c in (os.path.join(p, "ansible_collections") for p in places) if os.path.isdir(c)]
json.dump(
    {
        "python": platform.python_version(),
        "ansible_core": version("ansible-core"),
        "ansible_runner": version("ansible-runner"),
        "collections": collections,
    },
    sys.stdout,
)
