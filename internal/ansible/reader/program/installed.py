"""Which plugins are installed, and what they import."""

from __future__ import annotations

import functools
import importlib.util
import os
import re
import sys
from pathlib import Path
from typing import Any

import ensign_near
import jinja2.defaults
from ansible.plugins import loader as plugins
from ansible.utils.plugin_docs import get_docstring


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
        found["options"] = options_of(found["path"], found["fqcn"])
    return found


def options_of(path: str, fqcn: str) -> dict[str, Any]:
    """Return the options of a module, as its documentation has them; none if it takes any."""
    try:
        documentation = get_docstring(
            path, plugins.fragment_loader, collection_name=fqcn.rpartition(".")[0], plugin_type="module", is_module=True
        )[0]
    except Exception:  # A module without documentation has no options that are known.
        return {}
    found = options((documentation or {}).get("options"))
    return {} if found.keys() & {"free_form", "key_value", "_raw_params"} else found


def options(documented: Any) -> dict[str, Any]:
    """Return options, with those within them, by their names."""
    if not isinstance(documented, dict):
        return {}
    return {
        str(name): {
            "type": str(option.get("type", "str")),
            "aliases": [str(alias) for alias in option.get("aliases") or []],
            "choices": [str(choice) for choice in option.get("choices") or []],
            "required": option.get("required") is True,
            "options": options(option.get("suboptions")),
        }
        for name, option in documented.items()
        if isinstance(option, dict)
    }


def find(loader: Any, name: str, collections: list[str]) -> dict[str, Any]:
    """Return where a plugin is, or why it is not used."""
    try:
        context = loader.find_plugin_with_context(name, collection_list=collections or None)
    except Exception as error:  # Ansible raises many classes of its own for plugins that were removed.
        return {"error": str(error).split("\n", 1)[0]}
    if not context.resolved:
        return {"error": "; ".join(str(e) for e in context.error_list[:1])}
    return {"path": str(context.plugin_resolved_path or ""), "fqcn": str(context.resolved_fqcn or name)}


def filter_plugin(name: str) -> dict[str, Any]:
    """Return where a filter is, and the libraries that it lacks."""
    return jinja_plugin(plugins.filter_loader, jinja2.defaults.DEFAULT_FILTERS, name)


def test_plugin(name: str) -> dict[str, Any]:
    """Return where a test is, and the libraries that it lacks."""
    return jinja_plugin(plugins.test_loader, jinja2.defaults.DEFAULT_TESTS, name)


def jinja_plugin(loader: Any, own: Any, name: str) -> dict[str, Any]:
    """Return where a filter or a test is; without a path there is none. One that can't be imported is there."""
    if name in own:
        return {"path": "jinja2"}
    try:
        found = loader.get(name)
    except Exception as error:  # Its import fails, or it says that it was removed.
        there = "unable to locate" not in str(error).lower() and not isinstance(error, KeyError)
        return {"path": name} if there else {}
    if found is None:
        return {}
    path = str(getattr(found, "_original_path", None) or name)
    return {
        "path": path,
        "fqcn": str(getattr(found, "ansible_name", None) or name),
        "missing": missing_libraries(Path(path)),
    }


def lookup_plugin(name: str) -> dict[str, Any]:
    """Return where a lookup is, and the libraries that it lacks."""
    found = find(plugins.lookup_loader, name, [])
    if found.get("path"):
        found["missing"] = missing_libraries(Path(found["path"]))
    return found


IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import[ \t]+(\([^)]*\)|[^\n]*)|import[ \t]+([\w., \t]+))", re.MULTILINE
)
ASKED = re.compile(r"missing_required_lib\(\s*[\"']([^\"']+)[\"']")


@functools.cache
def imports(path: str) -> tuple[set[str], set[str], set[str]]:
    """Return the libraries and module_utils that a file imports, and the libraries that it asks for by name.

    Its text is searched: a tree of its syntax takes ten times as long. A sentence that looks like an import does no
    harm, because the file must ask for the library too.
    """
    try:
        text = Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return set(), set(), set()
    names: set[str] = set()
    for package, parts, modules in IMPORT.findall(text):
        names |= {module.split()[0] for module in modules.split(",") if module.strip()}
        if package and not package.startswith("."):
            words = re.findall(r"\w+", re.sub(r"#[^\n]*|\bas\s+\w+", "", parts))
            names |= {package, *(f"{package}.{word}" for word in words)}
    helpers = {name for name in names if name.startswith("ansible_collections.")}
    asked = {normal(name) for name in ASKED.findall(text)} | requirements(text)
    return {name.split(".")[0] for name in names - helpers}, helpers, asked


def requirements(text: str) -> set[str]:
    """Return the libraries that the documentation in a file requires."""
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
    root = next((str(parent) for parent in path.parents if parent.name == "ansible_collections"), "")
    todo, seen = [str(path)], {str(path)}
    while todo:
        libraries, helpers, names = imports(todo.pop())
        wanted |= libraries
        asked |= names
        for helper in helpers:
            file = helper_file(helper, root)
            if file and file not in seen:
                seen.add(file)
                todo.append(file)
    known = set(sys.stdlib_module_names) | {"ansible", "ansible_collections", "__main__"}
    return sorted(name for name in wanted - known if normal(name) in asked and not importable(name))


@functools.cache
def helper_file(name: str, root: str) -> str:
    """Return the file of a module_utils in the same directory of collections; "" if there is none."""
    file = os.path.join(root, *name.split(".")[1:]) + ".py"
    return file if root and os.path.isfile(file) else ""


@functools.cache
def importable(name: str) -> bool:
    """Report whether a library is installed."""
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False
