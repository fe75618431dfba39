"""Filters of the operator."""

from __future__ import annotations

from collections.abc import Callable


def sentence(names: list[str], word: str) -> str:
    """Greets everybody in one sentence."""
    return f"{word}, {' and '.join(names)}!"


class FilterModule:
    """What Ansible looks for."""

    def filters(self) -> dict[str, Callable[..., str]]:
        return {"sentence": sentence}
