"""What stands over a module, for those who are to get something else of it."""

from types import ModuleType
from typing import Any


class Overlay:
    """A module with other values for some of its names."""

    def __init__(self, module: ModuleType, **others: Any) -> None:
        self.__dict__.update(others)
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)
