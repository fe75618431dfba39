"""A run's kubeconfig is read as YAML would be."""

import importlib
import io
import random
import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
from ensign_warm import kubeconfig

_WRITTEN = """apiVersion: v1
clusters:
- cluster:
    certificate-authority-data: LS0tLS1CRUdJTg==
    server: https://127.0.0.1:40001
  name: ensign
contexts:
- context:
    cluster: ensign
    namespace: default
    user: ensign
  name: ensign
current-context: ensign
kind: Config
users:
- name: ensign
  user:
    token: _x-Token
"""


class Own(Exception):  # noqa: N818
    """The other reader was asked."""


@pytest.fixture
def reader() -> kubeconfig.Reader:
    return kubeconfig.Reader(yaml)


def without(text: str) -> Callable[[str], str]:
    return lambda written: re.sub(text, "", written)


@pytest.mark.parametrize("change", [str, without(".*namespace.*\n")], ids=["all", "no namespace"])
def test_what_the_manager_writes_is_read(reader: kubeconfig.Reader, change: Callable[[str], str]) -> None:
    text = change(_WRITTEN)
    read = reader.parsed(text)
    assert read == yaml.safe_load(text)
    assert repr(read) == repr(yaml.safe_load(text))  # In the same order too.


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("_x-Token", "12345678"),
        ("_x-Token", "1_000"),
        ("_x-Token", "-1"),
        ("_x-Token", "true"),
        ("_x-Token", "0x1F"),
        ("_x-Token", "2001-01-01"),
        ("_x-Token", "--"),
        ("_x-Token", "- x"),
        ("_x-Token", "x # y"),
        ("_x-Token", '"x"'),
        ("_x-Token", "x\n    other: y"),
        ("_x-Token", "ü"),
        ("LS0tLS1CRUdJTg==", "="),
        ("LS0tLS1CRUdJTg==", "12"),
        ("default", '"123"'),
        ("default", "123"),
        ("default", "on"),
        ("default", "no"),
        ("default", "1e3"),
        ("kind: Config\n", ""),
        ("https://127.0.0.1:40001", "https://127.0.0.1:"),
        (_WRITTEN, ""),
        (_WRITTEN, f"{_WRITTEN}---\n"),
        (_WRITTEN, _WRITTEN[:-1]),
        (_WRITTEN, _WRITTEN.replace("\n", "\r\n")),
    ],
)
def test_what_is_read_is_what_yaml_reads(reader: kubeconfig.Reader, old: str, new: str) -> None:
    text = _WRITTEN.replace(old, new)
    assert text != _WRITTEN
    read = reader.parsed(text)
    assert read is None or repr(read) == repr(yaml.safe_load(text))


def test_values_at_random_are_read_as_yaml_reads_them(reader: kubeconfig.Reader) -> None:
    chance = random.Random(7)  # noqa: S311
    read = 0
    for _ in range(500):
        token = "".join(chance.choices("0123456789eExX_-.abcABC", k=chance.randint(1, 8)))
        text = _WRITTEN.replace("_x-Token", token)
        ours = reader.parsed(text)
        if ours is not None:
            assert repr(ours) == repr(yaml.safe_load(text)), token
            read += 1
    assert read > 100


def opened(directory: Path, text: str) -> io.TextIOWrapper:
    file = directory / "kubeconfig"
    file.write_text(text)
    return file.open(encoding="utf-8")


def test_only_another_form_is_left_to_the_other_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def own(_: object) -> Any:
        raise Own

    monkeypatch.setattr(yaml.SafeLoader, "get_single_data", own)
    reader = kubeconfig.Reader(yaml)
    with opened(tmp_path, _WRITTEN) as file:
        assert reader.safe_load(file)["kind"] == "Config"
    with opened(tmp_path, "kind: Other\n") as file, pytest.raises(Own):
        reader.safe_load(file)
    with pytest.raises(Own):
        reader.safe_load(io.StringIO(_WRITTEN))
    monkeypatch.undo()
    with opened(tmp_path, "kind: Other\n") as file:
        assert reader.safe_load(file) == {"kind": "Other"}


def test_yaml_that_a_module_has_changed_reads_itself(
    reader: kubeconfig.Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed = yaml.SafeLoader.yaml_constructors | {"tag:yaml.org,2002:str": lambda *_: "changed"}
    monkeypatch.setattr(yaml.SafeLoader, "yaml_constructors", changed)
    with opened(tmp_path, _WRITTEN) as file:
        assert set(reader.safe_load(file)) == {"changed"}


def test_yaml_whose_tables_have_more_in_them_reads_itself(reader: kubeconfig.Reader, tmp_path: Path) -> None:
    resolvers = yaml.SafeLoader.yaml_implicit_resolvers["k"] = []
    try:
        assert reader._as_at_the_start() is False
        resolvers.append(("tag:yaml.org,2002:null", re.compile("kind")))
        with opened(tmp_path, _WRITTEN) as file:
            assert None in reader.safe_load(file)
    finally:
        del yaml.SafeLoader.yaml_implicit_resolvers["k"]
    assert reader._as_at_the_start()


def test_the_client_reads_by_it(tmp_path: Path) -> None:
    names = ("kubernetes.config.kube_config", "yaml")
    modules: dict[str, ModuleType] = {name: importlib.import_module(name) for name in names}
    client = modules[names[0]]
    own = client.__dict__["yaml"]
    try:
        kubeconfig.give(modules)
        assert isinstance(client.__dict__["yaml"], kubeconfig.Reader)
        with opened(tmp_path, _WRITTEN) as file:
            assert client.KubeConfigMerger(file.name).config["current-context"] == "ensign"
        assert client.__dict__["yaml"].safe_dump is yaml.safe_dump
    finally:
        client.__dict__["yaml"] = own
