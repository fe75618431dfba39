# Copyright The Ensign authors
# SPDX-License-Identifier: Apache-2.0

"""A few requests to the Kubernetes API.

Much less than kubernetes.core does, and therefore in a fraction of its time: one kind is looked up, one
object read and one written. The options that lead to the API server are the same.
"""

from __future__ import annotations

import json
import os
import re
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from ansible.module_utils.basic import AnsibleModule, missing_required_lib

try:
    import urllib3
    from kubernetes import client, config
except ImportError:
    IMPORT_ERROR: str | None = traceback.format_exc()
else:
    IMPORT_ERROR = None

Object = dict[str, Any]

# Option of kubernetes.core, and what it sets of the client's configuration.
SETTINGS = {
    "host": "host",
    "client_cert": "cert_file",
    "client_key": "key_file",
    "ca_cert": "ssl_ca_cert",
    "validate_certs": "verify_ssl",
    "proxy": "proxy",
    "no_proxy": "no_proxy",
}


def argument_spec() -> dict[str, Any]:
    """Return the options that lead to an API server."""
    return {
        "kubeconfig": {"type": "raw"},
        "context": {"type": "str"},
        "host": {"type": "str"},
        "api_key": {"type": "str", "no_log": True},
        "username": {"type": "str"},
        "password": {"type": "str", "no_log": True},
        "client_cert": {"type": "path", "aliases": ["cert_file"]},
        "client_key": {"type": "path", "aliases": ["key_file"], "no_log": False},
        "ca_cert": {"type": "path", "aliases": ["ssl_ca_cert"]},
        "validate_certs": {"type": "bool", "aliases": ["verify_ssl"]},
        "proxy": {"type": "str"},
        "no_proxy": {"type": "str"},
        "proxy_headers": {
            "type": "dict",
            "options": {
                "proxy_basic_auth": {"type": "str", "no_log": True},
                "basic_auth": {"type": "str", "no_log": True},
                "user_agent": {"type": "str"},
            },
        },
        "persist_config": {"type": "bool"},
        "impersonate_user": {"type": "str"},
        "impersonate_groups": {"type": "list", "elements": "str"},
    }


class APIError(Exception):
    """A request that was not answered as it should be."""

    def __init__(self, message: str, status: int = 0, reason: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason

    def result(self) -> Object:
        """Return what a module says that fails of it."""
        return {"msg": str(self), "status": self.status, "reason": self.reason}


@dataclass(frozen=True)
class Resource:
    """A kind as the API server serves it."""

    api_version: str
    kind: str
    plural: str
    namespaced: bool
    has_status: bool

    def path(self, namespace: str | None, name: str, subresource: str | None = None) -> str:
        """Return the path of an object."""
        parts = [self.collection(namespace), segment("name", name)]
        if subresource:
            parts.append(segment("subresource", subresource))
        return "/".join(parts)

    def collection(self, namespace: str | None) -> str:
        """Return the path of all objects of the kind in the namespace."""
        parts = [root(self.api_version)]
        if self.namespaced:
            if not namespace:
                raise APIError(f"namespace: {self.kind} is of a namespace, and none is given")
            parts += ["namespaces", segment("namespace", namespace)]
        parts.append(segment("kind", self.plural))
        return "/".join(parts)


def segment(option: str, value: str) -> str:
    """Return a value as one part of a path, or raise APIError where it would lead to another path.

    Quoting is not enough: HTTP libraries resolve "." and ".." before they send a request, with "" the path of an
    object is that of all objects, and servers decode a quoted slash. The API server takes none of these for a name.
    """
    if value in ("", ".", "..") or "/" in value or "%" in value:
        raise APIError(
            f'{option}: "{value}" would address something else at the API: it must not be empty, "." or "..",'
            ' nor have a "/" or "%"'
        )
    return quote(value, safe="")


def root(api_version: str) -> str:
    """Return the path of a version of an API group, or raise APIError where it is none."""
    if not re.fullmatch(r"([a-z0-9]([a-z0-9.-]*[a-z0-9])?/)?[a-z0-9]+", api_version):
        raise APIError(f'api_version: invalid version "{api_version}": use for example "v1" or "apps/v1"')
    return f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"


def find_resource(api_version: str, kind: str, served: list[Object]) -> Resource | None:
    """Find a kind by its name, or by another of its names, in what the API server says of its group."""
    main = [r for r in served if "/" not in r["name"]]
    for matches in (
        lambda r: r["kind"] == kind,
        lambda r: kind.lower() in (r["kind"].lower(), r["name"], r.get("singularName")),
        lambda r: kind in r.get("shortNames", ()),
    ):
        for r in filter(matches, main):
            has_status = any(s["name"] == f"{r['name']}/status" for s in served)
            return Resource(api_version, r["kind"], r["name"], r["namespaced"], has_status)
    return None


class API:
    """The API server that a module's options lead to."""

    def __init__(self, module: AnsibleModule) -> None:
        if IMPORT_ERROR:
            module.fail_json(msg=missing_required_lib("kubernetes"), exception=IMPORT_ERROR)
        try:
            options = Options(module.params)
            self._client = client.ApiClient(options.configuration())
            self._served: dict[str, list[Object]] = {}
            self.answered: Mapping[str, str] = {}
            for name, value in options.headers().items():
                self._client.set_default_header(name, value)
        except (config.ConfigException, OSError, ValueError) as error:
            raise APIError(f"could not find the API server: {error}") from error

    def resource(self, api_version: str, kind: str) -> Resource:
        """Return the kind as it is served now."""
        if api_version not in self._served:
            self._served[api_version] = (self.read(root(api_version)) or {"resources": []})["resources"]
        found = find_resource(api_version, kind, self._served[api_version])
        if found is None:
            raise APIError(f"the API server has no kind {kind} in {api_version}", HTTPStatus.NOT_FOUND, "NotFound")
        return found

    def read(self, path: str) -> Object | None:
        """Return what is at a path, None where there is nothing."""
        try:
            return self.request("GET", path)
        except APIError as error:
            if error.status == HTTPStatus.NOT_FOUND:
                return None
            raise

    def select(self, resource: Resource, namespace: str | None, selectors: list[str]) -> list[Object]:
        """Return the objects of a kind that have the labels."""
        path = f"{resource.collection(namespace)}?labelSelector={quote(','.join(selectors), safe='')}"
        # Those of a list do not say of which kind they are.
        identity = {"apiVersion": resource.api_version, "kind": resource.kind}
        return [{**found, **identity} for found in self.request("GET", path)["items"]]

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        content_type: str = "application/json",
        headers: dict[str, str] | None = None,
    ) -> Object:
        """Return the object that the API server answers with. answered has the headers of the last answer."""
        try:
            response = self._client.call_api(
                path,
                method,
                header_params={"Accept": "application/json", "Content-Type": content_type, **(headers or {})},
                body=body,
                auth_settings=["BearerToken"],
                _preload_content=False,
                _return_http_data_only=True,
            )
        except client.ApiException as error:
            raise APIError(explain(error), error.status, error.reason) from error
        except urllib3.exceptions.HTTPError as error:
            raise APIError(f"could not reach the API server: {error}") from error
        self.answered = response.headers
        answer: Object = json.loads(response.data)
        return answer


def explain(error: client.ApiException) -> str:
    """Return what the API server says about a request that it refused."""
    try:
        return str(json.loads(error.body)["message"])
    except (TypeError, ValueError, KeyError):
        return f"the API server answers {error.status} {error.reason}: {error.body}"


class Options:
    """A module's options, and for those not given the environment."""

    def __init__(self, params: Object) -> None:
        self._values = {name: self._value(name, spec, params) for name, spec in argument_spec().items()}

    def _value(self, name: str, spec: Object, params: Object) -> Any:
        if params.get(name) is not None:
            return params[name]
        for known_as in (name, *spec.get("aliases", ())):
            text = os.environ.get(f"K8S_AUTH_{known_as.upper()}")
            if text is None:
                continue
            if spec["type"] == "bool":
                return text.lower() not in ("0", "false", "no")
            return [part for part in text.split(",") if part] if spec["type"] == "list" else text
        return None

    def configuration(self) -> client.Configuration:
        """Return the client's configuration."""
        loaded = client.Configuration()
        if not self._sufficient():
            self._load(loaded)
        for option, name in SETTINGS.items():
            if self._values[option] is not None:
                setattr(loaded, name, self._values[option])
        loaded.host = loaded.host.rstrip("/")
        if authorization := self._authorization():
            # Not what a file holds, nor what would be read from it again.
            loaded.api_key, loaded.refresh_api_key_hook = {"authorization": authorization}, None
        if headers := self._proxy_headers():
            loaded.proxy_headers = urllib3.util.make_headers(**headers)
        return loaded

    def _authorization(self) -> str:
        """Return the header for the credentials that are given, "" if there are none."""
        name, password = self._values["username"], self._values["password"]
        if self._values["api_key"]:
            return f"Bearer {self._values['api_key']}"
        if name and password:
            return str(urllib3.util.make_headers(basic_auth=f"{name}:{password}")["authorization"])
        return ""

    def _sufficient(self) -> bool:
        """Tell whether host and credentials are given, so that no file is needed."""
        credentials = (("api_key",), ("username", "password"), ("client_cert", "client_key"))
        return bool(self._values["host"]) and any(all(self._values[name] for name in names) for names in credentials)

    def _load(self, into: client.Configuration) -> None:
        kubeconfig, context = self._values["kubeconfig"], self._values["context"]
        further = {"context": context, "client_configuration": into, "persist_config": self._values["persist_config"]}
        if isinstance(kubeconfig, dict):
            config.load_kube_config_from_dict(kubeconfig, **further)
            return
        if not kubeconfig and not context:
            try:
                config.load_incluster_config(client_configuration=into)
                return
            except config.ConfigException:
                pass  # Not in a pod.
        config.load_kube_config(kubeconfig, **further)

    def _proxy_headers(self) -> Object:
        names = ("proxy_basic_auth", "basic_auth", "user_agent")
        environment = {name: os.environ.get(f"K8S_AUTH_PROXY_HEADERS_{name.upper()}") for name in names}
        given = self._values["proxy_headers"] or environment
        return {name: value for name, value in given.items() if value}

    def headers(self) -> dict[str, str]:
        """Return the headers that every request carries."""
        groups = self._values["impersonate_groups"] or []
        if len(groups) > 1:
            raise ValueError(f"impersonate_groups: more than one group, {groups}, can't be impersonated")
        found = {"Impersonate-User": self._values["impersonate_user"], "Impersonate-Group": "".join(groups)}
        return {name: value for name, value in found.items() if value}
