"""Docstrings of functions that a server imports without: nobody reads them in a run.

Those of the client of Kubernetes are 11 MiB, a tenth of a server, whose page table each fork copies.
"""

import contextlib
import inspect
from collections.abc import Iterator
from importlib.machinery import SourceFileLoader
from types import CodeType

_DOCUMENTED = getattr(inspect, "CO_HAS_DOCSTRING", inspect.CO_NEWLOCALS)  # Before Python 3.14 no flag says it.


@contextlib.contextmanager
def imports(package: str) -> Iterator[None]:
    """Have what is imported of the package lack them."""
    original = SourceFileLoader.get_code

    def get_code(self: SourceFileLoader, fullname: str) -> CodeType | None:
        code = original(self, fullname)
        return _terse(code) if code is not None and fullname.startswith(f"{package}.") else code

    SourceFileLoader.get_code = get_code  # type: ignore[assignment, method-assign]
    try:
        yield
    finally:
        del SourceFileLoader.get_code  # It is inherited.


def _terse(code: CodeType) -> CodeType:
    constants = [_terse(c) if isinstance(c, CodeType) else c for c in code.co_consts]
    named = not code.co_name.startswith("<")  # The first constant of a generator expression is one of its own.
    if named and code.co_flags & _DOCUMENTED and constants and isinstance(constants[0], str):
        constants[0] = None
    return code.replace(co_consts=tuple(constants))
