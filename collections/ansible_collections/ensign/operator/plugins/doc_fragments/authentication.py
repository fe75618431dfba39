# Copyright The Ensign authors
# SPDX-License-Identifier: Apache-2.0

"""Documentation of the options that lead to an API server."""

from __future__ import annotations


class ModuleDocFragment:
    """What ansible-doc looks for."""

    DOCUMENTATION = r"""
notes:
  - Within a run of the operator none of the options for the connection is needed. The run's own kubeconfig,
    which E(K8S_AUTH_KUBECONFIG) names, leads to the operator's proxy for the API.
  - An option that is not given is taken from the environment variable E(K8S_AUTH_...) of its name, such as
    E(K8S_AUTH_CONTEXT).
requirements:
  - kubernetes >= 24.2.0
options:
  kubeconfig:
    description:
      - Path of a kubeconfig, or its content as a dictionary.
      - Without it, and without O(context), the account of the pod is taken, or else E(KUBECONFIG) or
        C(~/.kube/config). O(host) with credentials needs none of them.
    type: raw
  context:
    description: Name of a context in the kubeconfig.
    type: str
  host:
    description: URL of the API server.
    type: str
  api_key:
    description: Token for the API server.
    type: str
  username:
    description: Name for basic authentication.
    type: str
  password:
    description: Password for basic authentication.
    type: str
  client_cert:
    description: Path of a certificate to authenticate with.
    type: path
    aliases: [cert_file]
  client_key:
    description: Path of the certificate's key.
    type: path
    aliases: [key_file]
  ca_cert:
    description: Path of the certificates of authorities by which the API server's is verified.
    type: path
    aliases: [ssl_ca_cert]
  validate_certs:
    description: Whether the API server's certificate is verified.
    type: bool
    aliases: [verify_ssl]
  proxy:
    description: URL of an HTTP proxy.
    type: str
  no_proxy:
    description: Hosts that are reached without the proxy, joined by commas.
    type: str
  proxy_headers:
    description: Headers for the HTTP proxy.
    type: dict
    suboptions:
      proxy_basic_auth:
        description: C(name:password) for basic authentication at the proxy.
        type: str
      basic_auth:
        description: C(name:password) for basic authentication.
        type: str
      user_agent:
        description: The user agent.
        type: str
  persist_config:
    description: Whether a token that had to be refreshed is written to the kubeconfig.
    type: bool
  impersonate_user:
    description: Whom to impersonate. The proxy of the operator drops it.
    type: str
  impersonate_groups:
    description: A group to impersonate; more than one is refused. The proxy of the operator drops it.
    type: list
    elements: str
"""
