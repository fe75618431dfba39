"""Filters that need a package from pip."""

from __future__ import annotations

import inflection


def dashed(text: str) -> str:
    """Return the text in the form of an object's name: `Coffee Bar` gives `coffee-bar`."""
    return str(inflection.parameterize(text))


class FilterModule:
    """Offers the filters to Ansible."""

    def filters(self) -> dict[str, object]:
        return {"dashed": dashed}
