"""Tables that are made ahead are those that Ansible uses."""

import importlib
import sys

from ensign_warm import run


def test_ansible_finds_its_tables_made() -> None:
    importlib.import_module("ansible.executor.process.worker")  # With what a server has.
    before = set(sys.modules)
    run.prime()
    assert set(sys.modules) == before
    results = importlib.import_module("ansible._internal._task").UnifiedTaskResult
    tables = (
        results.get_result_key_to_resolved_field_mapping.__func__,
        results._get_field_name_to_result_key_mapping.__func__,
    )
    missed = [table.cache_info().misses for table in tables]
    results.from_action_result_dict({"changed": True}).as_result_dict(for_callback=True)
    assert [table.cache_info().misses for table in tables] == missed
    assert tables[0].cache_info().hits > 0
