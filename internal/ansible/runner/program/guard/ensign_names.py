"""Names and namespaces in the paths of requests to the API server: quoted, or refused.

The dynamic client of Kubernetes, which kubernetes.core uses, puts a name into a path as it is, and urllib3 then
resolves ".." and cuts off what follows "#": the name "../secrets/x" of a ConfigMap became the Secret x. The API
proxy sees the resolved path only. So what is imported as one of the modules below gets the checks that it lacks.

This file runs in every Python process of a run, of any version from Python 3.6 on: it must be short, and import little.
"""

import sys

# What may stand in a part of a path as it is (RFC 3986, pchar): a valid name makes the same request as without quotes.
_SAFE = "!$&'()*+,;=:@~"
_DOTS = (".", "..")


def segment(what: str, value: object) -> object:
    """Return a name, or a namespace, as it has to stand in a path. Raise a ValueError if no object can have it."""
    if value is None or value == "":
        return value
    from urllib.parse import quote  # noqa: PLC0415

    text = str(value)
    if text in _DOTS or "/" in text or "%" in text:
        raise ValueError(f'the {what} {text!r} is refused: a {what} is never "." or "..", and has no "/" or "%"')
    return quote(text, safe=_SAFE)


def check_url(url: object) -> None:
    """Raise a ValueError if the path of a request would be resolved to another one, or cut off."""
    path = str(url).partition("?")[0]
    if "#" in path or any(part in _DOTS for part in path.split("/")):
        raise ValueError(f'the path {path!r} is refused: a part of it is "." or "..", or has "#"')


def guard_resources(module: object) -> None:
    """Change kubernetes.dynamic.resource."""
    resource = module.Resource  # type: ignore[attr-defined]
    original = resource.path

    def path(self: object, name: object = None, namespace: object = None) -> str:
        return str(original(self, name=segment("name", name), namespace=segment("namespace", namespace)))

    resource.path = path


def guard_requests(module: object) -> None:
    """Change kubernetes.client.rest: paths that other code of the client, or a module's own, has made."""
    client = module.RESTClientObject  # type: ignore[attr-defined]
    original = client.request

    def request(self: object, method: str, url: str, *args: object, **options: object) -> object:
        check_url(url)
        return original(self, method, url, *args, **options)

    client.request = request


GUARDS = {"kubernetes.dynamic.resource": guard_resources, "kubernetes.client.rest": guard_requests}


class UnguardedError(ImportError):
    """Raised in the place of a module that cannot be changed."""


class Finder:
    """Finds the modules of GUARDS where the other finders do, and changes them once they are executed."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> object:
        guard = GUARDS.get(name)
        if guard is None:
            return None
        spec: object = None
        for finder in sys.meta_path:
            if finder is not Finder and hasattr(finder, "find_spec"):
                spec = finder.find_spec(name, path, target)  # type: ignore[arg-type]
                if spec is not None:
                    break
        loader = getattr(spec, "loader", None)
        if loader is None:
            return None
        execute = loader.exec_module

        def exec_module(module: object) -> None:
            execute(module)
            try:
                guard(module)
            except AttributeError as error:
                raise UnguardedError(f"{name} is of a version that is not known: {error}", name=name) from error

        loader.exec_module = exec_module
        return spec
