#!/usr/bin/python
# Copyright The Ensign authors
# SPDX-License-Identifier: Apache-2.0

"""Posts a metric to the manager."""

from __future__ import annotations

DOCUMENTATION = r"""
module: osdk_metric
short_description: Change a metric that the operator shows
version_added: 1.0.0
author: The Ensign authors (@ensign-operator)
description:
  - Changes a metric that the operator shows to Prometheus, beside its own at its metrics endpoint. The first
    use of a name makes the metric.
  - Exactly one of O(counter), O(gauge), O(histogram) and O(summary) is given. A name keeps its kind as long as
    the operator's process lives, and metrics begin again with it.
options:
  name:
    description: Name of the metric.
    type: str
    required: true
  description:
    description: What the metric counts or measures. The one that was given first stays.
    type: str
    default: ""
    aliases: [help]
  counter:
    description: A number that only grows.
    type: dict
    suboptions:
      increment:
        description: Add 1.
        type: bool
        default: false
      add:
        description: Add a number, which must not be negative.
        type: float
  gauge:
    description: A number that goes up and down. Of several changes the order is that of this list.
    type: dict
    suboptions:
      increment:
        description: Add 1.
        type: bool
        default: false
      decrement:
        description: Subtract 1.
        type: bool
        default: false
      add:
        description: Add a number.
        type: float
      subtract:
        description: Subtract a number.
        type: float
        aliases: [sub]
      set:
        description: Become a number, V(0) included.
        type: float
      set_to_current_time:
        description: Become the seconds since 1970.
        type: bool
        default: false
  histogram:
    description: Observations, counted in buckets.
    type: dict
    suboptions:
      observe:
        description: The value that was observed; V(0) if not given.
        type: float
  summary:
    description: Observations, of which sum and number are shown.
    type: dict
    suboptions:
      observe:
        description: The value that was observed; V(0) if not given.
        type: float
  address:
    description:
      - Where to post, such as V(127.0.0.1:5050) or V(http://127.0.0.1:5050/metrics). Without it, where
        E(ENSIGN_USER_METRICS) says, which the operator sets for its runs. Where that is not set, nothing is posted.
      - The token of E(K8S_AUTH_KUBECONFIG) goes along there and to this host, and nowhere else.
    type: str
    aliases: [endpoint]
extends_documentation_fragment:
  - ensign.operator.attributes
attributes:
  check_mode:
    support: full
    details: Nothing is posted.
  diff_mode:
    support: none
notes:
  - The metric is the operator's, not the system's that the role manages, so the module never says C(changed).
"""

EXAMPLES = r"""
- name: Count backups
  ensign.operator.osdk_metric:
    name: memcached_backups_total
    description: Backups that were taken
    counter:
      increment: true

- name: Show how full the cache is
  ensign.operator.osdk_metric:
    name: memcached_fill_ratio
    description: Part of the memory that is in use
    gauge:
      set: "{{ used | float / total | float }}"

- name: Measure the backup
  ensign.operator.osdk_metric:
    name: memcached_backup_seconds
    description: How long backups took
    histogram:
      observe: "{{ backup.delta_seconds }}"
"""

RETURN = r"""
msg:
  description: Why nothing was posted.
  returned: outside of an operator's run, or where the operator takes no metrics of roles
  type: str
metric:
  description: What was posted, or would be.
  returned: success
  type: dict
  sample:
    name: memcached_backups_total
    description: Backups that were taken
    counter:
      increment: true
"""

import ipaddress
import json
import os
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.urls import open_url

try:
    import yaml
except ImportError:  # Then nothing is known of a token.
    yaml = None  # type: ignore[assignment]

OBSERVE = {"observe": {"type": "float"}}
KINDS: dict[str, dict[str, dict[str, Any]]] = {
    "counter": {"increment": {"type": "bool", "default": False}, "add": {"type": "float"}},
    "gauge": {
        "increment": {"type": "bool", "default": False},
        "decrement": {"type": "bool", "default": False},
        "add": {"type": "float"},
        "subtract": {"type": "float", "aliases": ["sub"]},
        "set": {"type": "float"},
        "set_to_current_time": {"type": "bool", "default": False},
    },
    "histogram": OBSERVE,
    "summary": OBSERVE,
}
TIMEOUT = 10


def metric(params: dict[str, Any]) -> dict[str, Any]:
    """Return what to post: nothing that is not asked for."""
    body: dict[str, Any] = {"name": params["name"], "description": params["description"]}
    for kind, options in KINDS.items():
        given = params[kind]
        if given is not None:
            # Without the other names of options, which are in there too.
            body[kind] = {name: given[name] for name in options if given[name] is not None and given[name] is not False}
    return body


def token(path: str) -> str:
    """Return the token of a kubeconfig's current context; "" if there is none."""
    if not path or yaml is None:
        return ""
    try:
        with open(path, encoding="utf-8") as kubeconfig:
            found = yaml.safe_load(kubeconfig)
        contexts = {context["name"]: context["context"] for context in found["contexts"]}
        users = {user["name"]: user["user"] for user in found["users"]}
        return str(users[contexts[found["current-context"]]["user"]].get("token") or "")
    except (OSError, yaml.YAMLError, KeyError, TypeError, AttributeError):
        return ""


def is_local(url: str) -> bool:
    """Tell whether a URL leads to this host."""
    host = urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def url_of(address: str) -> str:
    """Return the URL that an address means, which may lack the scheme and the path."""
    url = urlsplit(address if "://" in address else f"http://{address}")
    if url.scheme not in ("http", "https") or not url.hostname:  # file: would be read, and ftp: asked.
        raise ValueError(f'address: "{address}" is neither host:port nor a URL of http or https')
    return url._replace(path="/metrics").geturl() if url.path in ("", "/") else url.geturl()


def post(url: str, body: dict[str, Any], bearer: str) -> None:
    """Post the metric, or raise OSError with the reason why it was not taken."""
    headers = {"Content-Type": "application/json"}
    if bearer:
        headers["Authorization"] = f"Bearer {bearer}"
    try:
        open_url(
            url,
            method="POST",
            data=json.dumps(body),
            headers=headers,
            timeout=TIMEOUT,
            use_proxy=False,
            follow_redirects="none",
        )
    except HTTPError as error:
        reason = error.read().decode("utf-8", "replace").strip()
        raise OSError(f"the endpoint for metrics refuses it: {reason or error}") from error
    except URLError as error:
        raise OSError(f"could not reach the endpoint for metrics at {url}: {error.reason}") from error


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "name": {"type": "str", "required": True},
            "description": {"type": "str", "default": "", "aliases": ["help"]},
            **{kind: {"type": "dict", "options": options} for kind, options in KINDS.items()},
            "address": {"type": "str", "aliases": ["endpoint"]},
        },
        mutually_exclusive=[list(KINDS)],
        required_one_of=[list(KINDS)],
        supports_check_mode=True,
    )
    body = metric(module.params)
    address = module.params["address"]
    to = address or os.environ.get("ENSIGN_USER_METRICS", "")
    if not to:
        # Whoever listens at the usual port here is not known.
        note = "nothing was posted: outside of an operator's run ENSIGN_USER_METRICS is not set; address says where to"
        module.exit_json(changed=False, metric=body, msg=note)
    if not module.check_mode:
        try:
            url = url_of(to)
            bearer = token(os.environ.get("K8S_AUTH_KUBECONFIG", "")) if not address or is_local(url) else ""
            post(url, body, bearer)
        except (OSError, ValueError) as error:
            module.fail_json(msg=f"{module.params['name']}: {error}", metric=body)
    module.exit_json(changed=False, metric=body)


if __name__ == "__main__":
    main()
