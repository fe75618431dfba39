"""Names of modules, roles and other plugins that may be meant by a name that is not there."""

import glob
import importlib
import os
from collections.abc import Iterable

_MAX_NAMES = 3


def among(name: str, known: Iterable[str]) -> list[str]:
    """Return the known names that are most similar, the best first; [] if none is similar enough."""
    difflib = importlib.import_module("difflib")  # Few runs need it.
    return list(difflib.get_close_matches(name, sorted(known), _MAX_NAMES, cutoff=0.7))


def roles(name: str, places: list[str]) -> list[str]:
    """Return roles in the places, which are directories of roles."""
    return among(name, {role for place in places if os.path.isdir(place) for role in os.listdir(place)})


def modules(name: str) -> list[str]:
    """Return modules and actions that are installed."""
    # A module of this very name in another collection: the collection was left out, or is another one.
    return plugins(name, ("modules", "action"), "ansible.modules") or installed(
        "*.*", ("modules", "action"), name.rpartition(".")[2]
    )


def plugins(name: str, folders: tuple[str, ...], builtin: str, others: Iterable[str] = ()) -> list[str]:
    """Return plugins of the name's collection; of a name without a collection those of the package, and the others."""
    collection = name.rpartition(".")[0]
    if collection:
        return among(name, installed(collection, folders))
    own = stems(os.path.dirname(str(importlib.import_module(builtin).__file__)), "*")
    return among(name, own | set(others))


def installed(collection: str, folders: tuple[str, ...], short: str = "*") -> list[str]:
    """Return the full names of plugins in the collections that are installed."""
    found: set[str] = set()
    roots = importlib.import_module("ansible.utils.collection_loader").AnsibleCollectionConfig.collection_paths
    for root in roots if collection.count(".") == 1 else []:
        for place in glob.glob(os.path.join(root, "ansible_collections", *collection.split("."))):
            owner = ".".join(place.split(os.sep)[-2:])
            for folder in folders:
                found |= {f"{owner}.{stem}" for stem in stems(os.path.join(place, "plugins", folder), short)}
    return sorted(found) if short == "*" else sorted(found)[:_MAX_NAMES]


def stems(folder: str, name: str) -> set[str]:
    """Return the names of Python files in the folder."""
    return {os.path.basename(path)[:-3] for path in glob.glob(os.path.join(glob.escape(folder), f"{name}.py"))} - {
        "__init__"
    }
