"""Tables that each process of Ansible makes when it first needs them, and each task has its own process.

They are functions of Ansible's own classes; made in the server, they are there in each fork.
"""

import contextlib
import importlib


def prime() -> None:
    """Make the tables. A version of Ansible that has others makes them later."""
    with contextlib.suppress(ImportError, AttributeError, TypeError):
        results = importlib.import_module("ansible._internal._task").UnifiedTaskResult
        for yes in (False, True):
            results.get_result_key_to_resolved_field_mapping(source_is_module=yes)
            for other in (False, True):
                results._get_field_name_to_result_key_mapping(for_callback=yes, for_round_trip=other)
