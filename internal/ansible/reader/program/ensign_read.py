"""Answers questions about Ansible content: a line of JSON on standard input, and one on standard output for each."""

from __future__ import annotations

import gc
import json
import os
import sys
from typing import Any

import expressions


def main() -> None:
    """Read questions and write answers."""
    gc.disable()  # Trees of syntax have many objects, and the process ends soon.
    # Nothing but answers may reach the output, whatever a plugin prints when it is imported.
    output = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    for line in sys.stdin:
        question = json.loads(line)
        texts = [expressions.analyse(t["text"], t["bare"], t["delimiters"]) for t in question["texts"] or []]
        answer: dict[str, Any] = {"texts": texts}
        if question.get("installed") is not None or question.get("syntax") is not None:
            answer |= with_ansible(question)
        output.write(json.dumps(answer, default=str) + "\n")  # Much faster than json.dump.
        output.flush()


def with_ansible(question: dict[str, Any]) -> dict[str, Any]:
    """Answer what needs Ansible's own modules, whose import takes half a second."""
    from ansible.plugins.loader import init_plugin_loader  # noqa: PLC0415
    from ansible.utils.collection_loader import AnsibleCollectionConfig  # noqa: PLC0415

    init_plugin_loader([])
    AnsibleCollectionConfig.playbook_paths = question.get("playbooks") or []
    import arguments  # noqa: PLC0415
    import installed  # noqa: PLC0415
    import syntax  # noqa: PLC0415

    asked = question.get("installed") or {}
    checker = syntax.Checker(question["directory"], question.get("image") or "")
    for item in question.get("syntax") or []:
        if item["kind"] == "playbook":
            checker.playbook(item["path"])
        elif item["kind"] == "role":
            checker.role(item["role"], item["path"])
        else:
            checker.tasks(item["path"], item.get("collections") or [], item["kind"] == "handlers")
    names = {kind: asked.get(f"{kind}s") or [] for kind in ("filter", "test", "lookup")}
    names["module"] = [m["name"] for m in asked.get("modules") or []]
    found: dict[str, list[Any]] = {
        "module": [installed.module(m["name"], m["collections"] or []) for m in asked.get("modules") or []],
        "filter": [installed.filter_plugin(name) for name in names["filter"]],
        "test": [installed.test_plugin(name) for name in names["test"]],
        "lookup": [installed.lookup_plugin(name) for name in names["lookup"]],
    }
    missing = [
        (kind, name)
        for kind, all_found in found.items()
        for name, one in zip(names[kind], all_found, strict=True)
        if not one.get("path")
    ]
    return {
        "faults": checker.faults,
        **{f"{kind}s": all_found for kind, all_found in found.items()},
        "arguments": [arguments.refused(a["spec"], a["values"]) for a in question.get("arguments") or []],
        "near": {f"{kind} {name}": installed.near(kind, name) for kind, name in missing},
    }


if __name__ == "__main__":
    main()
