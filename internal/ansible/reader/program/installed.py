"""Which plugins are installed, what they import, and which variables set their options."""

from __future__ import annotations

import ast
import importlib.util
import re
import sys
from pathlib import Path
from typing import Any

import ensign_near
import jinja2.defaults
from ansible.plugins import loader as plugins
from ansible.utils.plugin_docs import get_docstring

# Kinds of plugins whose options variables can set.
OPTION_KINDS = (
    *("lookup", "connection", "become", "shell", "vars", "callback", "cache", "strategy"),
    *("httpapi", "netconf", "cliconf", "terminal"),
)


def near(kind: str, name: str) -> list[str]:
    """Return the names of plugins that may be meant by one that is not there."""
    if kind == "module":
        return ensign_near.modules(name)
    others: set[str] = set()
    if kind != "lookup":  # Files of filters and tests have several.
        loader, own = {
            "filter": (plugins.filter_loader, jinja2.defaults.DEFAULT_FILTERS),
            "test": (plugins.test_loader, jinja2.defaults.DEFAULT_TESTS),
        }[kind]
        others = {str(plugin.ansible_name).removeprefix("ansible.builtin.") for plugin in loader.all()} | set(own)
    return ensign_near.plugins(name, (kind,), f"ansible.plugins.{kind}", others)


def module(name: str, collections: list[str]) -> dict[str, Any]:
    """Return what is known of a module or an action."""
    first = find(plugins.module_loader, name, collections)
    found = first
    # Ansible looks among its own modules after the collections of a role or a play.
    for loader, where in (
        (plugins.action_loader, collections),
        (plugins.module_loader, []),
        (plugins.action_loader, []),
    ):
        if not found.get("path"):
            found = find(loader, name, where)
    if not found.get("path"):
        return first
    if found.get("path"):
        found["missing"] = missing_libraries(Path(found["path"]))
    return found


def find(loader: Any, name: str, collections: list[str]) -> dict[str, Any]:
    """Return where a plugin is, or why it is not used."""
    try:
        context = loader.find_plugin_with_context(name, collection_list=collections or None)
    except Exception as error:  # Ansible raises many classes of its own for plugins that were removed.
        return {"error": str(error).split("\n", 1)[0]}
    if not context.resolved:
        return {"error": "; ".join(str(e) for e in context.error_list[:1])}
    return {"path": str(context.plugin_resolved_path or ""), "fqcn": str(context.resolved_fqcn or name)}


def has_filter(name: str) -> bool:
    """Report whether there is such a filter."""
    return name in jinja2.defaults.DEFAULT_FILTERS or has(plugins.filter_loader, name)


def has_test(name: str) -> bool:
    """Report whether there is such a test."""
    return name in jinja2.defaults.DEFAULT_TESTS or has(plugins.test_loader, name)


def has(loader: Any, name: str) -> bool:
    """Report whether the loader has the plugin. A plugin that can't be imported is there."""
    try:
        return loader.get(name) is not None
    except Exception as error:  # Its import fails, or it says that it was removed.
        return "unable to locate" not in str(error).lower() and not isinstance(error, KeyError)


def imports(path: Path) -> tuple[set[str], set[str], set[str]]:
    """Return the libraries and module_utils that a file imports, and the libraries that it asks for by name."""
    libraries: set[str] = set()
    helpers: set[str] = set()
    asked: set[str] = set()
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, OSError, ValueError):
        return libraries, helpers, asked
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        else:
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "missing_required_lib" and node.args:
                first = node.args[0]
                if isinstance(first, ast.Constant):
                    asked.add(normal(str(first.value)))
            elif isinstance(node, ast.Assign) and any(getattr(t, "id", "") == "DOCUMENTATION" for t in node.targets):
                asked |= requirements(node.value)
            continue
        for name in names:
            (helpers if name.startswith("ansible_collections.") else libraries).add(name)
    return {name.split(".")[0] for name in libraries}, helpers, asked


def requirements(value: ast.expr) -> set[str]:
    """Return the libraries that the documentation requires."""
    text = value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else ""
    if inline := re.search(r"^requirements:[ ]*\[([^\]\n]*)\]", text, re.MULTILINE):
        return {normal(word.strip(" \"'")) for word in inline[1].split(",") if word.strip()}
    block = re.search(r"^requirements:\n((?:[ ]*- .*\n?)+)", text, re.MULTILINE)
    if not block:
        return set()
    words = re.findall(r"^[ ]*-\s*[\"']?([A-Za-z0-9_.-]+)", block[1], re.MULTILINE)
    return {normal(word) for word in words}


def normal(name: str) -> str:
    """Return a library's name as it is imported."""
    return re.split(r"[ <>=!]", name.strip().lower())[0].replace("-", "_")


def missing_libraries(path: Path) -> list[str]:
    """Return libraries that a module needs, says so, and can't import."""
    wanted: set[str] = set()
    asked: set[str] = set()
    todo, seen = [path], {path}
    while todo:
        libraries, helpers, names = imports(todo.pop())
        wanted |= libraries
        asked |= names
        for helper in helpers:
            file = helper_file(helper, path)
            if file and file not in seen:
                seen.add(file)
                todo.append(file)
    known = set(sys.stdlib_module_names) | {"ansible", "ansible_collections", "__main__"}
    return sorted(name for name in wanted - known if normal(name) in asked and not importable(name))


def helper_file(name: str, path: Path) -> Path | None:
    """Return the file of a module_utils of the same collection."""
    parts = name.split(".")
    roots = [parent for parent in path.parents if parent.name == "ansible_collections"]
    if not roots:
        return None
    file = roots[0].joinpath(*parts[1:]).with_suffix(".py")
    return file if file.is_file() else None


def importable(name: str) -> bool:
    """Report whether a library is installed."""
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def option_variables(collection_dir: str, collection: str) -> list[dict[str, str]]:
    """Return the variables that set options of a collection's plugins."""
    found = []
    for kind in OPTION_KINDS:
        for path in sorted(Path(collection_dir, "plugins", kind).glob("*.py")):
            for name in variables_of(path, kind, collection):
                found.append({"variable": name, "plugin": f"{collection}.{path.stem}", "kind": kind})
    return found


def own_variables(directory: str) -> list[dict[str, str]]:
    """Return the variables that set options of the plugins of a role or beside a playbook."""
    return [
        {"variable": name, "plugin": path.stem, "kind": kind, "directory": directory}
        for kind in OPTION_KINDS
        for path in sorted(Path(directory, f"{kind}_plugins").glob("*.py"))
        for name in variables_of(path, kind, "")
    ]


def variables_of(path: Path, kind: str, collection: str) -> list[str]:
    """Return the variables that set the options of one plugin."""
    try:
        documentation = get_docstring(
            str(path), plugins.fragment_loader, collection_name=collection, plugin_type=kind, is_module=False
        )[0]
    except Exception:  # A plugin without documentation has no options.
        return []
    options = (documentation or {}).get("options") or {}
    known = [option for option in options.values() if isinstance(option, dict)]
    return sorted({v["name"] for option in known for v in option.get("vars") or [] if "name" in v})
