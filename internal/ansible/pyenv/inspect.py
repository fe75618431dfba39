"""Prints what is installed in the environment of this interpreter as JSON."""

import importlib.metadata
import json
import os
import platform
import re
import sys


def version(name):
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


def metadata(places):
    """Yield place, entry, name and version, all from names: reading a hundred files takes too long."""
    for place in places:
        for entry in entries(place):
            if match := METADATA.fullmatch(entry.name):
                yield place, entry, re.sub("[-_.]+", "-", match["name"]).lower(), match["version"]


def distributions(places):
    """Return name → version."""
    found: dict[str, str] = {}
    for _, _, name, installed in metadata(places):
        found.setdefault(name, installed)
    return found


def marks(places):
    """Return paths of which one changes whenever something is installed or removed."""
    found = dict.fromkeys(p for p in places if p.endswith(("site-packages", "dist-packages")))
    for place, entry, name, _ in metadata(places):
        found[place] = None
        if name in ("ansible-core", "ansible-runner"):
            found[entry.path] = None
    return list(found)


def collections(places):
    """Return name → version; one without a manifest, as a checkout, has none."""
    found: dict[str, str] = {}
    for place in places:
        for namespace, name in subdirectories(place):
            found.setdefault(f"{namespace}.{name}", manifest_version(os.path.join(place, namespace, name)))
    return found


def subdirectories(place):
    for namespace in packages(place):
        yield from ((namespace.name, c.name) for c in packages(namespace.path))


def packages(place):
    return (e for e in entries(place) if e.name.isidentifier() and not e.name.startswith("__") and e.is_dir())


def entries(place):
    """Return what is in a directory, sorted; nothing of one that can't be read."""
    try:
        return sorted(os.scandir(place), key=lambda e: e.name)
    except OSError:
        return []


def manifest_version(directory):
    try:
        with open(os.path.join(directory, "MANIFEST.json"), encoding="utf-8") as manifest:
            return str(json.load(manifest)["collection_info"]["version"])
    except (OSError, ValueError, LookupError, TypeError):
        return ""


METADATA = re.compile(r"(?P<name>[^-]+)-(?P<version>[^-]+)(-[^-]+)?\.(dist|egg)-info")

places = [p for p in dict.fromkeys(os.path.abspath(p) for p in sys.path if p) if os.path.isdir(p)]
trees = [c for c in (os.path.join(p, "ansible_collections") for p in places) if os.path.isdir(c)]
json.dump(
    {
        "python": platform.python_version(),
        "ansible_core": version("ansible-core"),
        "ansible_runner": version("ansible-runner"),
        "collections": trees,
        "distributions": distributions(places),
        "collection_versions": collections(trees),
        "marks": marks(places),
    },
    sys.stdout,
)
