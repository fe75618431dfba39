"""Filters of the collection."""

from __future__ import annotations

from collections.abc import Callable


def money(amount: float, currency: str) -> str:
    """Writes an amount."""
    return f"{float(amount):.2f} {currency}"


class FilterModule:
    """What Ansible looks for."""

    def filters(self) -> dict[str, Callable[..., str]]:
        return {"money": money}
