"""Tables that each process of Ansible makes when it first needs them, and each task has its own process.

They are functions of Ansible's own classes and of its configuration, and Ansible keeps
them itself; made in the server, they are there in each fork.
"""

import contextlib
import importlib
from collections.abc import Callable, Iterator
from functools import partial


def prime() -> None:
    """Make the tables. A version of Ansible that has others makes them later."""
    for table in _tables():
        with contextlib.suppress(ImportError, AttributeError, TypeError):
            table()


def _tables() -> Iterator[Callable[[], object]]:
    yield _lexer
    for yes in (False, True):
        yield partial(_of_results, "get_result_key_to_resolved_field_mapping", source_is_module=yes)
        for other in (False, True):
            yield partial(_of_results, "_get_field_name_to_result_key_mapping", for_callback=yes, for_round_trip=other)


def _lexer() -> object:
    """Jinja's, for templates with the usual delimiters."""
    bits = importlib.import_module("ansible._internal._templating._jinja_bits")
    return bits.AnsibleEnvironment().lexer


def _of_results(name: str, **options: bool) -> object:
    return getattr(importlib.import_module("ansible._internal._task").UnifiedTaskResult, name)(**options)
