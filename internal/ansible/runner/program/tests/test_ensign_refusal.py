"""Which errors refuse content, and what is said of them."""

from pathlib import Path

import ensign_refusal
import pytest
from ansible.errors import AnsibleError, AnsibleFileNotFound, AnsibleOptionsError, AnsibleParserError
from ansible.parsing.dataloader import DataLoader
from ansible.parsing.vault import AnsibleVaultError
from ansible.plugins.loader import init_plugin_loader


@pytest.fixture(scope="module", autouse=True)
def _collections() -> None:
    """Have collections found as in a run."""
    init_plugin_loader([])


def tagged(tmp_path: Path) -> object:
    """Return a value that Ansible has read from the second line of a file."""
    (tmp_path / "main.yml").write_text("- first\n- second\n")
    return DataLoader().load_from_file(str(tmp_path / "main.yml"))[1]


@pytest.mark.parametrize(
    ("error", "is_refusal"),
    [
        (AnsibleParserError("no YAML"), True),
        (AnsibleFileNotFound("no file"), True),
        (AnsibleError("The requested handler 'x' was not found in either list"), True),
        (AnsibleError("A worker was found in a dead state"), False),
        (AnsibleError("Specified inventory, host pattern and/or --limit leaves us with no hosts to target."), False),
        (AnsibleVaultError("The vault password file was not found"), False),
        (AnsibleOptionsError("no such option"), False),
        (OSError("no space left"), False),
    ],
)
def test_what_refuses_content(error: Exception, is_refusal: bool) -> None:
    assert (ensign_refusal.refusal_of(error) is not None) is is_refusal


def test_an_error_that_points_to_a_file_refuses_content(tmp_path: Path) -> None:
    refusal = ensign_refusal.refusal_of(AnsibleError("Invalid play strategy specified: x", obj=tagged(tmp_path)))
    assert refusal == {"task_path": f"{tmp_path}/main.yml:2", "res": {"near": []}}


def test_roles_of_a_similar_name(tmp_path: Path) -> None:
    for name in ("mysqlcluster", "mysqlbackup", "other"):
        (tmp_path / name).mkdir()
    message = f"The role 'mysqlclustr' was not found in: /nowhere:{tmp_path}"
    assert ensign_refusal.near_names(message)[0] == "mysqlcluster"


@pytest.mark.parametrize(
    ("name", "want"),
    [
        ("debugg", "debug"),
        ("kubernetes.core.k8_info", "kubernetes.core.k8s_info"),
        ("k8s_exec", "kubernetes.core.k8s_exec"),
        ("kubernets.core.k8s_exec", "kubernetes.core.k8s_exec"),
    ],
)
def test_modules_of_a_similar_name(name: str, want: str) -> None:
    assert want in ensign_refusal.near_names(f"couldn't resolve module/action '{name}'. This often indicates")


def test_nothing_is_made_up() -> None:
    assert ensign_refusal.near_names("couldn't resolve module/action 'zzzzqqqq'.") == []
    assert ensign_refusal.near_names("YAML parsing failed") == []
