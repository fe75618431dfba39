"""Objects that are there for good, so that to use them writes nothing.

A reference that is taken or given back is counted in the object, and the first write to a page makes it
a fork's own: a third of what a short fork costs. Python 3.12 and later do not count the references of
what is immortal (PEP 683). What a server has lives as long as its forks, and is made that before.
"""

import ctypes
import gc
import sys
from types import CodeType, FrameType
from typing import Any

_COUNT = ctypes.c_uint32  # the lower half of an object's count, which is its first word
_IMMORTAL = 0xFFFFFFFF  # more than any version of Python takes for a count
_MANY = 1 << 30


def keep() -> bool:
    """Make immortal all that there is, and spare garbage collectors of forks from it.

    It is false where the former is not possible. It is for good.
    """
    gc.collect()
    possible = _possible()
    if possible:
        _mark_all()
    gc.freeze()
    return possible


def _possible() -> bool:
    """Tell whether objects of this interpreter begin with their count, and it heeds the mark."""
    if sys.implementation.name != "cpython" or sys.abiflags or sys.byteorder != "little" or sys.maxsize < _IMMORTAL:
        return False
    probe = object()
    count = _COUNT.from_address(id(probe))
    mortal = count.value
    if mortal != sys.getrefcount(probe) - 1:
        return False
    count.value = _IMMORTAL
    if [count.value for _ in (probe, probe)] == [_IMMORTAL, _IMMORTAL]:
        return True
    count.value = mortal
    return False


def _mark_all() -> None:
    """Mark all that garbage collectors know and are not spared from yet, with what only that refers to."""
    found: list[Any] = gc.get_objects()
    waiting: list[Any] = []
    own = {id(found), id(waiting)}
    for root in found:
        if id(root) in own or isinstance(root, FrameType):
            continue
        waiting.append(root)
        while waiting:
            item = waiting.pop()
            _COUNT.from_address(id(item)).value = _IMMORTAL
            waiting += [other for other in _held(item) if not gc.is_tracked(other) and _is_mortal(other)]


def _held(item: object) -> list[Any]:
    if isinstance(item, CodeType):  # Collectors do not look into it.
        return [item.co_consts, item.co_names, item.co_filename, item.co_name, item.co_qualname, item.co_linetable]
    return gc.get_referents(item)


def _is_mortal(item: object) -> bool:
    return sys.getrefcount(item) < _MANY
