"""What Ansible parses in each run, and is always the same.

That is its own routing of plugins, and the documentation of its plugins that can be configured, and of
ansible-runner's: 0.1 s of YAML. Each text is parsed once, in the server, and given out to who has the very
same text, once in a process: its copy is its own. What others have written may warn, and each run parses it.
"""

import ast
import hashlib
import importlib
import importlib.util
import os
import re
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

_KINDS = ("become", "cache", "callback", "connection", "inventory", "lookup", "shell", "strategy", "vars")
# To parse whole files takes memory that stays taken, 1 MiB.
_ASSIGNED = re.compile(r"""^ *DOCUMENTATION = (r?(\"{3}|'{3}).*?\2)""", re.MULTILINE | re.DOTALL)
_EXTENDED = "extends_documentation_fragment"
_MISSING = object()


class Parsed:
    """Texts with what they were parsed to."""

    def __init__(self) -> None:
        self._documents: dict[object, Any] = {}  # by text and tags
        self._routing: dict[object, Any] = {}  # by name and a digest of the text, which is long

    def load(self) -> None:
        """Parse, in the server. A version of Ansible that does it otherwise does without."""
        try:
            self._load_routing()
            self._load_documents()
        except Exception:
            self._documents, self._routing = {}, {}

    def give_out(self) -> None:
        """Have Ansible ask here, in a fork."""
        if not self._documents:
            return
        finder = importlib.import_module("ansible.utils.collection_loader._collection_finder")
        finder.__dict__["_meta_yml_to_dict"] = self._routing_of(finder._meta_yml_to_dict)
        for user in ("ansible.plugins.loader", "ansible.utils.plugin_docs"):
            module = importlib.import_module(user)
            module.__dict__["yaml"] = SimpleNamespace(**(vars(module.yaml) | {"load": self._reading(module.yaml.load)}))

    def _routing_of(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def parse(text: object, name: object) -> Any:
            key = (name, _digest(text)) if isinstance(text, bytes) else None
            found = self._routing.pop(key, _MISSING)
            return original(text, name) if found is _MISSING else found

        return parse

    def _reading(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def load(stream: Any, *args: Any, **options: Any) -> Any:
            known = isinstance(stream, str) and not args and options == {"Loader": _loader()}
            found = self._documents.pop(_key(stream), _MISSING) if known else _MISSING
            return original(stream, *args, **options) if found is _MISSING else found

        return load

    def _load_routing(self) -> None:
        with open(_directory("config", "ansible_builtin_runtime.yml"), "rb") as file:
            text = file.read()
        parse = importlib.import_module("ansible.utils.collection_loader._collection_meta")._meta_yml_to_dict
        name = "ansible.builtin", "runtime.yml"
        self._routing[name, _digest(text)] = parse(text, name)

    def _load_documents(self) -> None:
        places = (*(("plugins", kind) for kind in _KINDS), *((place,) for place in _callbacks()))
        for path in (path for place in places for path in _files(*place)):
            document = self._parse(_documentation(path), path)
            names = document.get(_EXTENDED, ()) if isinstance(document, dict) else ()
            for name in names.split(",") if isinstance(names, str) else names:
                self._parse(_documentation(_directory("plugins", "doc_fragments", f"{name.strip()}.py")), path)

    def _parse(self, text: str | None, path: str) -> object:
        if text is None:
            return None
        tags = importlib.import_module("ansible._internal._datatag._tags")
        tagged = tags.Origin(path=path).tag(tags.TrustedAsTemplate().tag(text))
        found = importlib.import_module("yaml").load(tagged, Loader=_loader())
        self._documents[_key(tagged)] = found
        return found


def _loader() -> Any:
    return importlib.import_module("ansible.parsing.yaml.loader").AnsibleLoader


def _digest(text: bytes) -> bytes:
    return hashlib.sha256(text).digest()


def _key(text: object) -> object:
    helper = importlib.import_module("ansible.module_utils._internal._datatag").AnsibleTagHelper
    return helper.untag(text), helper.tags(text)


def _directory(*names: str) -> str:
    return os.path.join(os.path.dirname(str(importlib.import_module("ansible").__file__)), *names)


def _files(*names: str) -> Iterator[str]:
    """Return the plugins' files in a directory, which is named as it is below Ansible's package."""
    place = _directory(*names)
    for name in sorted(os.listdir(place)) if os.path.isdir(place) else ():
        if name.endswith(".py") and name[0] != "_":
            yield os.path.join(place, name)


def _callbacks() -> Iterator[str]:
    """Return where ansible-runner's are, by the names that the setting has for it."""
    runner = importlib.util.find_spec("ansible_runner")
    for own in (runner.submodule_search_locations or ()) if runner is not None else ():
        for place in importlib.import_module("ansible.constants").DEFAULT_CALLBACK_PLUGIN_PATH or ():
            if os.path.realpath(place).startswith(os.path.join(os.path.realpath(own), "")):
                yield place


def _documentation(path: str) -> str | None:
    """Return the text that is assigned to DOCUMENTATION in a file or in its class; None if there is none."""
    if not os.path.exists(path):
        return None
    with open(path, encoding="utf-8") as file:
        found = _ASSIGNED.search(file.read())
    return str(ast.literal_eval(found[1])) if found else None
