"""Tests of the options that lead to an API server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.ensign.operator.plugins.module_utils import api


@pytest.fixture(autouse=True)
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Take away what would lead to an API server."""
    for name in ("K8S_AUTH_KUBECONFIG", "KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("kubernetes.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION", str(tmp_path / "absent"))


def kubeconfig() -> dict[str, Any]:
    """Return a kubeconfig with two contexts."""
    names = ("one", "two")
    return {
        "current-context": "one",
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}} for name in names],
        "clusters": [{"name": name, "cluster": {"server": f"https://{name}:6443"}} for name in names],
        "users": [{"name": name, "user": {"token": f"token-{name}"}} for name in names],
    }


def seen(**params: Any) -> tuple[str, str | None]:
    """Return host and Authorization header of what the options lead to."""
    found = api.Options(params).configuration()
    settings = found.auth_settings()
    return found.host, settings["BearerToken"]["value"] if settings else None


SUFFICIENT: list[tuple[dict[str, Any], str | None]] = [
    ({"api_key": "k"}, "Bearer k"),
    ({"username": "u", "password": "p"}, "Basic dTpw"),
    ({"client_cert": "/c", "client_key": "/k"}, None),
]


@pytest.mark.parametrize(("credentials", "header"), SUFFICIENT)
def test_host_and_credentials_need_no_file(credentials: dict[str, Any], header: str | None) -> None:
    assert seen(host="https://there:1/", **credentials) == ("https://there:1", header)


def test_certificates() -> None:
    given = {
        "host": "https://there",
        "validate_certs": False,
        "ca_cert": "/ca",
        "client_cert": "/c",
        "client_key": "/k",
    }
    found = api.Options(given).configuration()
    assert (found.verify_ssl, found.ssl_ca_cert, found.cert_file, found.key_file) == (False, "/ca", "/c", "/k")


def test_a_kubeconfig_as_a_dictionary_and_its_contexts() -> None:
    assert seen(kubeconfig=kubeconfig()) == ("https://one:6443", "Bearer token-one")
    assert seen(kubeconfig=kubeconfig(), context="two") == ("https://two:6443", "Bearer token-two")
    assert seen(kubeconfig=kubeconfig(), host="https://other", api_key="k") == ("https://other", "Bearer k")


def test_the_environment_stands_in_for_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "config").write_text(yaml.safe_dump(kubeconfig()), encoding="utf-8")
    monkeypatch.setenv("K8S_AUTH_KUBECONFIG", str(tmp_path / "config"))
    monkeypatch.setenv("K8S_AUTH_CONTEXT", "two")
    monkeypatch.setenv("K8S_AUTH_VERIFY_SSL", "no")
    monkeypatch.setenv("K8S_AUTH_PROXY_HEADERS_USER_AGENT", "me")
    assert seen() == ("https://two:6443", "Bearer token-two")
    assert seen(context="one") == ("https://one:6443", "Bearer token-one")
    found = api.Options({}).configuration()
    assert (found.verify_ssl, found.proxy_headers) == (False, {"user-agent": "me"})
    assert api.Options({"validate_certs": True}).configuration().verify_ssl is True


def test_no_api_server_is_an_error() -> None:
    with pytest.raises(api.config.ConfigException):
        seen()


def test_impersonation() -> None:
    assert api.Options({}).headers() == {}
    assert api.Options({"impersonate_user": "u", "impersonate_groups": ["g"]}).headers() == {
        "Impersonate-User": "u",
        "Impersonate-Group": "g",
    }
    with pytest.raises(ValueError, match="more than one group"):
        api.Options({"impersonate_groups": ["g", "h"]}).headers()


def test_the_environments_groups_are_a_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("K8S_AUTH_IMPERSONATE_GROUPS", "g,")
    assert api.Options({}).headers() == {"Impersonate-Group": "g"}


POD = api.Resource("v1", "Pod", "pods", namespaced=True, has_status=True)
# What would lead a request to the collection, to what is above it, or to a subresource.
STRAY = ["", ".", "..", "../x", "a/b", "/", "a%2Fb", "%2e%2e", "%"]


def test_what_has_a_meaning_in_urls_is_quoted() -> None:
    assert POD.path("n s", "a?b#c;d", "status") == "/api/v1/namespaces/n%20s/pods/a%3Fb%23c%3Bd/status"
    assert POD.path("ns", "...") == "/api/v1/namespaces/ns/pods/..."
    assert POD.path("ns", "x\r\ny") == "/api/v1/namespaces/ns/pods/x%0D%0Ay"


@pytest.mark.parametrize("stray", STRAY)
def test_a_name_that_would_lead_to_another_path_is_refused(stray: str) -> None:
    with pytest.raises(api.APIError, match=r"^name: .* would address something else"):
        POD.path("ns", stray)


@pytest.mark.parametrize("stray", STRAY)
def test_a_namespace_that_would_lead_to_another_path_is_refused(stray: str) -> None:
    with pytest.raises(api.APIError, match=r"^namespace: "):
        POD.collection(stray)


@pytest.mark.parametrize("stray", STRAY[1:])
def test_what_an_api_server_serves_leads_to_no_other_path_either(stray: str) -> None:
    with pytest.raises(api.APIError, match="would address something else"):
        api.Resource("v1", "Pod", stray, namespaced=True, has_status=True).path("ns", "a")
    with pytest.raises(api.APIError, match="would address something else"):
        POD.path("ns", "a", stray)


STRAY_VERSIONS = [
    *(stray for stray in STRAY if stray != "a/b"),
    *("v1/", "/v1", "apps/v1/deployments", "a/../v1", "../v1", "apps/..", "apps/.", "v1?x=y", "v1#", "V 1", "v1\n"),
]


@pytest.mark.parametrize("stray", STRAY_VERSIONS)
def test_what_is_no_version_is_refused(stray: str) -> None:
    with pytest.raises(api.APIError, match=r'(?s)^api_version: invalid version ".*": use for example'):
        api.root(stray)


def test_versions() -> None:
    assert api.root("v1") == "/api/v1"
    assert api.root("cache.example.com/v1alpha1") == "/apis/cache.example.com/v1alpha1"
