"""Reads the kubeconfig of a run as the client of Kubernetes would.

Python's own reader of YAML takes 3 ms for it, in each module. What looks exactly like
the manager writes it is read here; everything else is left to that reader.
"""

import copy
import io
import re
from types import ModuleType
from typing import Any

_CLIENT = "kubernetes.config.kube_config"
# With values that YAML takes for text, unless it resolves one to something else.
_FORM = re.compile(
    r"""apiVersion: v1
clusters:
- cluster:
    certificate-authority-data: (?P<authority>[A-Za-z0-9+/]+=*)
    server: (?P<server>https://[A-Za-z0-9.-]+:[0-9]+)
  name: ensign
contexts:
- context:
    cluster: ensign
(?:    namespace: (?P<namespace>[a-z0-9][a-z0-9-]*)
)?    user: ensign
  name: ensign
current-context: ensign
kind: Config
users:
- name: ensign
  user:
    token: (?P<token>[A-Za-z0-9_-]{2,})
"""
)


class Reader:
    """The module yaml, for the client."""

    def __init__(self, yaml: ModuleType) -> None:
        self._yaml = yaml
        self._functions = self._entries()
        self._classes = [
            {n: copy.deepcopy(v) if isinstance(v, dict) else v for n, v in c.items()} for c in self._parts()
        ]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._yaml, name)

    def safe_load(self, stream: Any) -> Any:
        """Return what the file holds, as yaml.safe_load does."""
        if type(stream) is io.TextIOWrapper and stream.seekable() and self._as_at_the_start():
            place = stream.tell()
            read = self.parsed(stream.read())
            if read is not None:
                return read
            stream.seek(place)
        return self._yaml.safe_load(stream)

    def _entries(self) -> tuple[object, ...]:
        return self._yaml.safe_load, self._yaml.load, self._yaml.SafeLoader

    def _parts(self) -> list[dict[str, Any]]:
        return [dict(vars(part)) for part in self._yaml.SafeLoader.__mro__]

    def _as_at_the_start(self) -> bool:
        return self._entries() == self._functions and self._parts() == self._classes

    def parsed(self, text: str) -> dict[str, Any] | None:
        """Return what a text holds that has this form; None if another reader has to be asked."""
        form = _FORM.fullmatch(text)
        if form is None or not all(self._is_text(value) for value in form.groups() if value is not None):
            return None
        context = {"cluster": "ensign", "namespace": form["namespace"], "user": "ensign"}
        if form["namespace"] is None:
            del context["namespace"]
        cluster = {"certificate-authority-data": form["authority"], "server": form["server"]}
        return {
            "apiVersion": "v1",
            "clusters": [{"cluster": cluster, "name": "ensign"}],
            "contexts": [{"context": context, "name": "ensign"}],
            "current-context": "ensign",
            "kind": "Config",
            "users": [{"name": "ensign", "user": {"token": form["token"]}}],
        }

    def _is_text(self, value: str) -> bool:
        resolvers = self._yaml.SafeLoader.yaml_implicit_resolvers
        return not any(form.match(value) for _, form in resolvers.get(value[0], []) + resolvers.get(None, []))


def give(modules: dict[str, ModuleType]) -> None:
    """Let the client, if it is there, read by this."""
    client, yaml = modules.get(_CLIENT), modules.get("yaml")
    if yaml is not None and client is not None and vars(client).get("yaml", client) == yaml:
        client.__dict__["yaml"] = Reader(yaml)
