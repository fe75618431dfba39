"""An API server to test against, and a way to run a module's main."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.module_utils.testing import patch_module_args

Object = dict[str, Any]
Run = Callable[..., Object]

TOKEN = "a-token-of-a-run"  # noqa: S105


@dataclass
class Request:
    """What a module has sent."""

    method: str
    path: str
    content_type: str
    authorization: str
    body: Any
    types: str = ""


@dataclass
class Server:
    """A server that keeps objects by their path, and everything that was asked of it."""

    url: str = ""
    kubeconfig: str = ""
    objects: dict[str, Object] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)
    # Called before a request is answered; what it returns is the answer, if anything.
    before: Callable[[Request], tuple[int, Object] | None] = lambda _: None
    version: int = 10
    # The headers of every answer.
    headers: dict[str, str] = field(default_factory=dict)

    def written(self) -> list[Request]:
        """Return the requests that were to change something."""
        return [request for request in self.requests if request.method != "GET"]

    def add(self, path: str, **fields: Any) -> Object:
        """Keep an object."""
        self.version += 1
        name = path.rsplit("/", 1)[-1]
        metadata = {"name": name, "uid": f"uid-of-{name}", "resourceVersion": str(self.version)}
        self.objects[path] = {**fields, "metadata": metadata}
        return self.objects[path]

    def answer(self, request: Request) -> tuple[int, Object]:
        """Answer as the API server does."""
        if early := self.before(request):
            return early
        path = request.path.removesuffix("/status")
        if request.method == "POST":
            return 201, self.add(f"{path}/{request.body['metadata']['name']}", **request.body)
        if path not in self.objects:
            return 404, {"message": f"{path} not found"}
        if request.method == "PATCH":
            return self.patch(self.objects[path], request)
        return self.delete(path, request) if request.method == "DELETE" else (200, self.objects[path])

    def delete(self, path: str, request: Request) -> tuple[int, Object]:
        """Delete an object, if it is as the request expects it."""
        there, expected = self.objects[path]["metadata"], (request.body or {}).get("preconditions") or {}
        if any(there[key] != value for key, value in expected.items()):
            return 409, {"message": "the object is not the one that is expected"}
        return 200, self.objects.pop(path)

    def patch(self, there: Object, request: Request) -> tuple[int, Object]:
        """Patch an object."""
        body = request.body
        if isinstance(body, list):
            body = {operation["path"].strip("/"): operation["value"] for operation in body}
        wants = body.get("metadata", {}).get("resourceVersion")
        if wants not in (None, there["metadata"]["resourceVersion"]):
            return 409, {"message": "the object has been modified"}
        self.version += 1
        apply(there, body)
        there["metadata"]["resourceVersion"] = str(self.version)
        return 200, there


def apply(into: Object, patch: Object) -> None:
    """Apply a JSON merge patch, as RFC 7396 writes it down."""
    for key, value in patch.items():
        if value is None:
            into.pop(key, None)
        elif isinstance(value, dict):
            if not isinstance(into.get(key), dict):
                into[key] = {}
            apply(into[key], value)
        else:
            into[key] = value


def handler(server: Server) -> type[BaseHTTPRequestHandler]:
    """Return what answers for the server."""

    class Handler(BaseHTTPRequestHandler):
        def do(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            text = self.rfile.read(length) if length else b"null"
            request = Request(
                self.command,
                self.path,
                self.headers.get("Content-Type", ""),
                self.headers.get("Authorization", ""),
                json.loads(text),
                self.headers.get("Ensign-Condition-Types", ""),
            )
            server.requests.append(request)
            status, answer = server.answer(request)
            body = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            for name, value in server.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_PATCH = do_DELETE = do  # noqa: N815

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    return Handler


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """Give a server to which the environment leads, as that of a run does."""
    for name in ("HTTP_PROXY", "http_proxy", "ENSIGN_USER_METRICS", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    found = Server()
    found.objects["/api/v1"] = {"resources": [{"name": "pods", "kind": "Pod", "namespaced": True}]}
    found.objects["/apis/test.io/v1"] = {
        "resources": [
            {"name": "probes/status", "kind": "Probe", "namespaced": True},
            {"name": "probes", "singularName": "probe", "shortNames": ["pb"], "kind": "Probe", "namespaced": True},
            {"name": "wides", "kind": "Wide", "namespaced": False},
            {"name": "wides/status", "kind": "Wide", "namespaced": False},
            {"name": "plains", "kind": "Plain", "namespaced": True},
        ]
    }
    listener = ThreadingHTTPServer(("127.0.0.1", 0), handler(found))
    thread = threading.Thread(target=listener.serve_forever, args=(0.01,))
    thread.start()
    found.url = f"http://127.0.0.1:{listener.server_port}"
    found.kubeconfig = str(tmp_path / "kubeconfig")
    Path(found.kubeconfig).write_text(yaml.safe_dump(kubeconfig(found.url)), encoding="utf-8")
    monkeypatch.setenv("K8S_AUTH_KUBECONFIG", found.kubeconfig)
    yield found
    listener.shutdown()
    listener.server_close()
    thread.join()


def kubeconfig(url: str) -> Object:
    """Return a kubeconfig like that of a run."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "ensign",
        "clusters": [{"name": "ensign", "cluster": {"server": url}}],
        "users": [{"name": "ensign", "user": {"token": TOKEN}}],
        "contexts": [{"name": "ensign", "context": {"cluster": "ensign", "user": "ensign"}}],
    }


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Give a function that runs a module's main with its options, and returns its result."""

    def run_module(main: Callable[[], None], *, check: bool = False, diff: bool = False, **options: Any) -> Object:
        options = {name: value for name, value in options.items() if value is not None}
        options |= {"_ansible_check_mode": check, "_ansible_diff": diff}
        with patch_module_args(options), pytest.raises(SystemExit):
            main()
        result: Object = json.loads(capsys.readouterr().out)
        return result

    return run_module


@pytest.fixture
def merge() -> Callable[[Object, Object], None]:
    """Give a function that applies a JSON merge patch."""
    return apply
