"""Works with the API as a module of kubernetes.core does, and tells what it saw."""

import json
import sys

from kubernetes import config, dynamic
from kubernetes.dynamic.exceptions import NotFoundError


def main(namespace: str) -> None:
    """Lists, pages, watches, writes and reads what it wrote in a namespace."""
    client = dynamic.DynamicClient(config.new_client_from_config())
    maps = client.resources.get(api_version="v1", kind="ConfigMap")
    said: dict[str, object] = {}

    # As k8s_info asks: empty selectors are parameters without a value.
    said["listed"] = len(maps.get(namespace=namespace, label_selector="", field_selector="").items)
    chosen = maps.get(namespace=namespace, label_selector="number in (3,4)")
    said["selected"] = sorted(item.metadata.name for item in chosen.items)

    pages = []
    token = ""
    while True:
        page = maps.get(namespace=namespace, limit=10, _continue=token)
        pages.append(len(page.items))
        token = page.metadata["continue"] or ""
        if not token:
            break
    said["pages"] = pages

    stale = []
    rounds = 20
    for number in range(rounds):
        name = f"python-{number}"
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"n": "0"}}
        maps.create(body=body, namespace=namespace)
        for value in ("1", "2"):
            patch = {"metadata": {"name": name}, "data": {"n": value}}
            maps.patch(body=patch, namespace=namespace, content_type="application/merge-patch+json")
            read = maps.get(name=name, namespace=namespace).data["n"]
            listed = [item.data["n"] for item in maps.get(namespace=namespace).items if item.metadata.name == name]
            if read != value or listed != [value]:
                stale.append([name, value, read, listed])
        if number % 2:
            maps.delete(name=name, namespace=namespace)
            try:
                stale.append([name, "deleted", maps.get(name=name, namespace=namespace).metadata.name])
            except NotFoundError:
                pass
            if any(item.metadata.name == name for item in maps.get(namespace=namespace).items):
                stale.append([name, "deleted", "listed"])
    said["rounds"] = rounds
    said["stale"] = stale

    for event in maps.watch(namespace=namespace, timeout=60):
        said["watched"] = event["type"]
        break
    maps.delete(namespace=namespace, label_selector="app=one", body={})
    said["gone"] = not maps.get(namespace=namespace, label_selector="app=one").items
    print(json.dumps(said))


if __name__ == "__main__":
    main(sys.argv[1])
