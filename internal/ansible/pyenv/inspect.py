"""Print what is installed in the environment of this interpreter, as JSON."""

import importlib
import importlib.metadata
import json
import os
import platform
import re
import sys
from types import ModuleType


def version(name):
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


def metadata(directories):
    """Yield directory, entry, name and version, from the names of files: reading a hundred files takes too long."""
    for directory in directories:
        for entry in entries(directory):
            if match := METADATA.fullmatch(entry.name):
                yield directory, entry, re.sub("[-_.]+", "-", match["name"]).lower(), match["version"]


def distributions(directories):
    """Return name → version."""
    found: dict[str, str] = {}
    for _, _, name, installed in metadata(directories):
        found.setdefault(name, installed)
    return found


def stamp_paths(directories):
    """Return paths of which at least one changes when something is installed or removed."""
    found = dict.fromkeys(d for d in directories if d.endswith(("site-packages", "dist-packages")))
    for directory, entry, name, _ in metadata(directories):
        found[directory] = None
        if name in ("ansible-core", "ansible-runner"):
            found[entry.path] = None
    return list(found)


def collections(trees):
    """Return name → version; the version of a collection without a manifest, such as a checkout, is ""."""
    found: dict[str, str] = {}
    for tree in trees:
        for namespace, name in collection_names(tree):
            found.setdefault(f"{namespace}.{name}", manifest_version(os.path.join(tree, namespace, name)))
    return found


def collection_names(tree):
    for namespace in packages(tree):
        yield from ((namespace.name, c.name) for c in packages(namespace.path))


def packages(directory):
    return (e for e in entries(directory) if e.name.isidentifier() and not e.name.startswith("__") and e.is_dir())


def entries(directory):
    """Return the entries of a directory, sorted; none if it cannot be read."""
    try:
        return sorted(os.scandir(directory), key=lambda e: e.name)
    except OSError:
        return []


def manifest_version(directory):
    try:
        with open(os.path.join(directory, "MANIFEST.json"), encoding="utf-8") as manifest:
            return str(json.load(manifest)["collection_info"]["version"])
    except (OSError, ValueError, LookupError, TypeError):
        return ""


def unguarded():
    """Return in which way a name of a CR could lead a request to another object; "" if in none.

    The guard is that of runs: PYTHONPATH begins with its directory here, too.
    """
    for load in (alone, importlib.import_module):
        try:
            resources, requests = load("kubernetes.dynamic.resource"), load("kubernetes.client.rest")
        except Exception as error:
            if type(error).__name__ == "UnguardedError":
                return str(error)
        else:
            return names_in_paths(resources.Resource) or names_in_urls(requests.RESTClientObject)
    return ""  # There is no client that content could import.


def alone(module):
    """Import a module without its packages, which import a thousand others."""
    first, *parts = module.split(".")[:-1]
    for depth in range(len(parts) + 1):
        package = ".".join((first, *parts[:depth]))
        sys.modules[package] = stub = ModuleType(package)
        stub.__path__ = [os.path.join(d, *package.split(".")) for d in sys.path]
    try:
        return importlib.import_module(module)
    finally:
        for name in [n for n in sys.modules if n.partition(".")[0] == first]:
            del sys.modules[name]


def names_in_paths(resource):
    scale = {"scale": {"kind": "Scale", "name": "pods/scale", "namespaced": True}}
    pods = resource(prefix="api", api_version="v1", kind="Pod", name="pods", namespaced=True, subresources=scale)
    for paths in (pods, pods.subresources["scale"]):
        for name in (".", "..", "../secrets/x", "a/b", "a%2fb"):
            for values in ({"name": name, "namespace": "n"}, {"name": "n", "namespace": name}):
                if not refuses(paths.path, **values):
                    return f"the name {name!r} is accepted"
    path = pods.path(name="a?b#c", namespace="d:e")
    return "" if path == "/api/v1/namespaces/d:e/pods/a%3Fb%23c" else f"the path is {path!r}"


def names_in_urls(client):
    for url in ("https://h/api/v1/pods/..", "https://h/api/../x?a=b", "https://h/api/v1/pods/a#b"):
        if not refuses(client.request, None, "GET", url):
            return f"the URL {url!r} is accepted"
    return ""


def refuses(function, *arguments, **values):
    try:
        function(*arguments, **values)
    except ValueError:
        return True
    except Exception:
        return False
    return False


METADATA = re.compile(r"(?P<name>[^-]+)-(?P<version>[^-]+)(-[^-]+)?\.(dist|egg)-info")

directories = [p for p in dict.fromkeys(os.path.abspath(p) for p in sys.path if p) if os.path.isdir(p)]
trees = [c for c in (os.path.join(d, "ansible_collections") for d in directories) if os.path.isdir(c)]
json.dump(
    {
        "python": platform.python_version(),
        "ansible_core": version("ansible-core"),
        "ansible_runner": version("ansible-runner"),
        "collections": trees,
        "distributions": distributions(directories),
        "collection_versions": collections(trees),
        "stamp_paths": stamp_paths(directories),
        "unguarded": unguarded() if sys.argv[1] == "prove" else "",
    },
    sys.stdout,
)
