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


def names(path):
    try:
        return sorted(os.listdir(path))
    except OSError:
        return []


def collection_version(path):
    try:
        with open(os.path.join(path, "MANIFEST.json"), encoding="utf-8") as f:
            return str(json.load(f)["collection_info"]["version"])
    except (OSError, ValueError, KeyError, TypeError):
        return "?"


places = [p for p in dict.fromkeys(os.path.abspath(p) for p in sys.path if p) if os.path.isdir(p)]
collections = [c for c in (os.path.join(p, "ansible_collections") for p in places) if os.path.isdir(c)]
installed = [n for p in places for n in names(p) if n.endswith((".dist-info", ".egg-info"))]
contents = [
    f"{namespace}.{name} {collection_version(os.path.join(root, namespace, name))}"
    for root in collections
    for namespace in names(root)
    if os.path.isdir(os.path.join(root, namespace)) and not namespace.endswith(".info")
    for name in names(os.path.join(root, namespace))
    if os.path.isdir(os.path.join(root, namespace, name))
]
json.dump(
    {
        "python": platform.python_version(),
        "ansible_core": version("ansible-core"),
        "ansible_runner": version("ansible-runner"),
        "collections": collections,
        "installed": installed,
        "contents": contents,
    },
    sys.stdout,
)
