"""Which names and paths the guard lets through, and that every interpreter of a run has it."""

import os
import re
import subprocess
import sys
from pathlib import Path

import ensign_names
import pytest

GUARD = Path(__file__).parents[1] / "guard"
# Calls the client as it is imported, without anything that is to be reached.
CLIENT = """
from kubernetes.dynamic.resource import Resource
from kubernetes.client.rest import RESTClientObject

scale = {"scale": {"kind": "Scale", "name": "pods/scale", "namespaced": True}}
pods = Resource(prefix="api", api_version="v1", kind="Pod", name="pods", namespaced=True, subresources=scale)
"""


def python(script: str, *path: Path, **environment: str) -> str:
    """Return what a script prints in an interpreter of a run."""
    places = os.pathsep.join(str(place) for place in (GUARD, *path))
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-B", "-c", script],
        env={"PYTHONPATH": places} | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.strip()


@pytest.mark.parametrize(
    "name", [".", "..", "../secrets/x", "../../other/configmaps/x", "a/b", "/", "a%2fb", "%", "%2e"]
)
def test_a_name_that_no_object_can_have_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"the namespace {re.escape(repr(name))} is refused"):
        ensign_names.segment("namespace", name)


@pytest.mark.parametrize(
    ("name", "quoted"),
    [
        ("a#b", "a%23b"),
        ("a?x=y", "a%3Fx=y"),
        ("a b\n", "a%20b%0A"),
        ("a\\b", "a%5Cb"),
        ("ü", "%C3%BC"),
        (7, "7"),
        # Requests for valid names are what they were.
        ("a.b-c", "a.b-c"),
        ("a" * 253, "a" * 253),
        ("...", "..."),
        ("system:node:x", "system:node:x"),
        ("me@example.com (a), b;c=d+e!$&'*~_", "me@example.com%20(a),%20b;c=d+e!$&'*~_"),
        # These make paths of collections.
        ("", ""),
        (None, None),
    ],
)
def test_what_has_a_meaning_in_urls_is_quoted(name: object, quoted: object) -> None:
    assert ensign_names.segment("name", name) == quoted


@pytest.mark.parametrize(
    "path", ["/api/..", "/api/v1/../x", "/./api", "/api/v1/pods/.?a=b", "/api/v1/pods/a#b", "/api#"]
)
def test_a_path_that_urllib3_would_change_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="is refused"):
        ensign_names.check_url("https://127.0.0.1:1" + path)


@pytest.mark.parametrize("path", ["", "/", "/api/", "/api/v1/pods/...?a=../b", "/apis/a.b/v1/namespaces/d:e/f/%23"])
def test_other_paths_are_not(path: str) -> None:
    ensign_names.check_url("https://127.0.0.1:1" + path)


def test_the_client_of_kubernetes_has_the_guard() -> None:
    said = python(
        CLIENT
        + """
print(pods.path(name="a#b", namespace="d:e"), pods.path(), pods.path(namespace="n"), pods.subresources["scale"].path("a?b", "n"))
for call in (
    lambda: pods.path("../secrets/x", "n"),
    lambda: pods.path(name="x", namespace=".."),
    lambda: pods.subresources["scale"].path(name="a/b", namespace="n"),
    lambda: RESTClientObject.request(None, "DELETE", "https://h/api/../x"),
):
    try:
        print("accepted", call())
    except ValueError as error:
        print(error)
"""
    )
    assert said.splitlines() == [
        "/api/v1/namespaces/d:e/pods/a%23b /api/v1/pods /api/v1/namespaces/n/pods /api/v1/namespaces/n/pods/a%3Fb/scale",
        """the name '../secrets/x' is refused: a name is never "." or "..", and has no "/" or "%\"""",
        """the namespace '..' is refused: a namespace is never "." or "..", and has no "/" or "%\"""",
        """the name 'a/b' is refused: a name is never "." or "..", and has no "/" or "%\"""",
        """the path 'https://h/api/../x' is refused: a part of it is "." or "..", or has "#\"""",
    ]


def test_a_program_that_the_run_starts_has_it_too() -> None:
    inner = CLIENT + "print(pods.path(name='a#b'))"
    assert python(f"import subprocess, sys; subprocess.run([sys.executable, '-c', {inner!r}])").endswith("a%23b")


def test_a_client_that_cannot_be_guarded_cannot_be_imported(tmp_path: Path) -> None:
    for package in ("kubernetes", "kubernetes/dynamic"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").write_text("")
    (tmp_path / "kubernetes/dynamic/resource.py").write_text("class Resource:\n    def address(self): pass\n")
    script = "try:\n    import kubernetes.dynamic.resource\nexcept ImportError as error:\n    print(error)"
    assert "is of a version that is not known" in python(script, tmp_path)


def test_the_environments_own_sitecustomize_is_executed(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import os\nVALUE = 7\nos.environ['SEEN'] = __name__ + ' ' + __file__\n")
    said = python("import os, sitecustomize; print(os.environ['SEEN'], sitecustomize.VALUE)", tmp_path)
    assert said == f"sitecustomize {tmp_path}/sitecustomize.py 7"
    assert python(CLIENT + "print(pods.path(name='a#b'))", tmp_path).endswith("a%23b")


def test_its_failure_is_shown_as_python_shows_it(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("raise RuntimeError('mine')\n")
    places = os.pathsep.join(map(str, (GUARD, tmp_path)))
    run = [sys.executable, "-B", "-c", CLIENT + "print(pods.path(name='a#b'))"]
    done = subprocess.run(run, env={"PYTHONPATH": places}, capture_output=True, text=True, check=True)  # noqa: S603
    assert "RuntimeError: mine" in done.stderr
    assert done.stdout.strip().endswith("a%23b")


def test_little_is_imported_for_it() -> None:
    script = "import sys; print(sorted(set(sys.modules) - {'ensign_names'}))"
    bare = subprocess.run([sys.executable, "-B", "-c", script], env={}, capture_output=True, text=True, check=True)  # noqa: S603
    more = set(eval(python(script))) - set(eval(bare.stdout))  # noqa: S307
    assert more <= {
        "sitecustomize",
        "importlib",
        "importlib._bootstrap",
        "importlib._bootstrap_external",
        "importlib.machinery",
        "importlib.util",
        "importlib._abc",
        "warnings",
        "types",
        "contextlib",
        "_imp",
    }
