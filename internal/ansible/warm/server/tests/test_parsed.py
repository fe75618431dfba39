"""What was parsed ahead is what Ansible would parse."""

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ensign_warm.parsed import Parsed

LOADER = "ansible.plugins.loader"
FINDER = "ansible.utils.collection_loader._collection_finder"


@pytest.fixture(scope="module")
def loaded() -> Parsed:
    parsed = Parsed()
    parsed.load()
    return parsed


@pytest.fixture
def parsed(loaded: Parsed) -> Iterator[Parsed]:
    """What a fork has, with the effects of give_out undone."""
    fork = Parsed()
    fork._documents, fork._routing = dict(loaded._documents), dict(loaded._routing)
    names = (LOADER, "ansible.utils.plugin_docs", FINDER)
    kept = {name: dict(importlib.import_module(name).__dict__) for name in names}
    fork.give_out()
    yield fork
    for name, variables in kept.items():
        importlib.import_module(name).__dict__.update(variables)


def kept(parsed: Parsed) -> int:
    """Return how many texts are there to be given out."""
    return len(parsed._documents) + len(parsed._routing)


def tagged(text: str, path: str) -> Any:
    tags = importlib.import_module("ansible._internal._datatag._tags")
    return tags.Origin(path=path).tag(tags.TrustedAsTemplate().tag(text))


def plugin(name: str) -> tuple[str, str]:
    """Return the path and the documentation of a plugin, as Ansible's loader has them."""
    module = importlib.import_module(f"ansible.plugins.{name}")
    return str(module.__file__), module.DOCUMENTATION


def parse(stream: Any, user: str = LOADER) -> Any:
    loader = importlib.import_module("ansible.parsing.yaml.loader").AnsibleLoader
    return importlib.import_module(user).yaml.load(stream, Loader=loader)


def whole(value: Any) -> Any:
    """Return the value with the tags of everything in it."""
    tags = importlib.import_module("ansible.module_utils._internal._datatag").AnsibleTagHelper.tags(value)
    shown = sorted(map(repr, tags))
    if isinstance(value, dict):
        return shown, [(whole(k), whole(v)) for k, v in value.items()]
    if isinstance(value, list):
        return shown, [whole(v) for v in value]
    return shown, type(value).__name__, str(value)


@pytest.mark.parametrize(
    "name", ["connection.local", "connection.ssh", "shell.sh", "callback.default", "lookup.env", "become.su"]
)
def test_documentation_is_the_same(parsed: Parsed, name: str) -> None:
    path, text = plugin(name)
    before = kept(parsed)
    given = parse(tagged(text, path))
    assert kept(parsed) == before - 1
    fresh = parse(tagged(text, path))
    assert kept(parsed) == before - 1
    assert given is not fresh
    assert whole(given) == whole(fresh)


def test_fragments_are_the_same(parsed: Parsed) -> None:
    path, _ = plugin("shell.sh")
    text = importlib.import_module("ansible.plugins.doc_fragments.shell_common").ModuleDocFragment.DOCUMENTATION
    before = kept(parsed)
    given, fresh = (parse(tagged(text, path), "ansible.utils.plugin_docs") for _ in range(2))
    assert kept(parsed) == before - 1
    assert whole(given) == whole(fresh)


def test_another_text_or_place_is_parsed(parsed: Parsed) -> None:
    path, text = plugin("connection.local")
    before = kept(parsed)
    assert parse(tagged(text + "    more: 1\n", path))["more"] == 1
    assert whole(parse(tagged(text, "/a/role/connection_plugins/local.py")))[0][0].count("/a/role/") == 1
    assert parse(text) == parse(tagged(text, "/x"))
    assert kept(parsed) == before


def test_another_loader_is_asked_itself(parsed: Parsed) -> None:
    module = importlib.import_module(LOADER)
    before = kept(parsed)
    _, text = plugin("connection.local")
    assert module.yaml.load(str(text), Loader=module.yaml.SafeLoader)["name"] == "local"
    assert module.yaml.safe_load("a: 1") == {"a": 1}
    assert kept(parsed) == before


def test_routing_is_the_same(parsed: Parsed) -> None:
    finder = importlib.import_module(FINDER)
    text = Path(str(importlib.import_module("ansible").__file__)).with_name("config") / "ansible_builtin_runtime.yml"
    before = kept(parsed)
    given, fresh = (finder._meta_yml_to_dict(text.read_bytes(), ("ansible.builtin", "runtime.yml")) for _ in range(2))
    assert kept(parsed) == before - 1
    assert given is not fresh
    assert given == fresh
    assert finder._meta_yml_to_dict(b"plugin_routing: {}", ("a.b", "runtime.yml")) == {"plugin_routing": {}}


# Callbacks, and what is wrong with them.
STRANGE = {
    "a key that is there twice": "DOCUMENTATION = 'name: one\\nname: other\\n'\n",
    "no YAML": "DOCUMENTATION = 'name: ['\n",
    "a fragment that is none": "DOCUMENTATION = 'extends_documentation_fragment: 1'\n",
    "no Python": 'print "no"\n',
    "nothing": "DOCUMENTATION = 'name: fine'\n",
}


@pytest.mark.parametrize("source", STRANGE.values(), ids=STRANGE.keys())
def test_what_others_have_written_is_parsed_by_who_reads_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    place = tmp_path / "ansible_runner" / "callback"
    place.mkdir(parents=True)
    (place / "one.py").write_text(source)
    own = str(Path(str(importlib.import_module("ansible_runner").__file__)).parent / "display_callback" / "callback")
    monkeypatch.setattr("ansible.constants.DEFAULT_CALLBACK_PLUGIN_PATH", [str(place), own])
    warned: list[object] = []
    display = importlib.import_module("ansible.utils.display").Display()
    monkeypatch.setattr(type(display), "warning", lambda *_, **text: warned.append(text))
    parsed = Parsed()
    parsed.load()
    documents = [str(document) for document in parsed._documents]
    assert [text for text in documents if str(tmp_path) in text] == warned == []
    assert any(own in text for text in documents)


def test_a_version_that_does_it_otherwise_does_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("ansible._internal._datatag._tags.TrustedAsTemplate")
    parsed = Parsed()
    parsed.load()
    before = importlib.import_module(LOADER).yaml
    parsed.give_out()
    assert importlib.import_module(LOADER).yaml is before
