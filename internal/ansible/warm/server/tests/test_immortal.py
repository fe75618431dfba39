"""What is immortal, in an interpreter of its own, because it stays that."""

import pytest
from conftest import in_forks

BEFORE = """
import gc, sys, types
from ensign_warm import immortal

class Thing:
    def method(self, argument="a default " * 2):
        return "a constant " * 2, [1.5 for _ in (2.5, 3.5)]

things = {"a key " * 2: Thing(), "others": ["a text " * 2, (4.5, 5.5)]}
inner = next(c for c in Thing.method.__code__.co_consts if isinstance(c, str) and c)
kept = (things, Thing, Thing.method, Thing.method.__code__, inner, *things, things["others"], *things["others"])
gc.disable()
assert immortal.keep()
later = [object()]
"""

CASES = {
    "references of what there is are not counted": """
before = [sys.getrefcount(x) for x in kept]
more = [kept] * 5 + [x for x in kept for _ in range(5)]
assert [sys.getrefcount(x) for x in kept] == before, before
""",
    "what was there is never freed": """
import weakref
gone = []
weakref.finalize(things["a key " * 2], gone.append, 1)
things.clear()
assert not gone
""",
    "what is made later is freed": """
count = sys.getrefcount(later[0])
more = [later[0]] * 5
assert sys.getrefcount(later[0]) == count + 5
""",
    "collectors pass over what there was": """
assert not any(x is things for x in gc.get_objects())
assert any(x is later for x in gc.get_objects())
""",
    "it can be done again": """
immortal.keep()
count = sys.getrefcount(later[0])
more = [later[0]] * 5
assert sys.getrefcount(later[0]) == count
""",
    "an interpreter that counts otherwise is left alone": """
import ctypes
immortal._COUNT = ctypes.c_uint16
more = [object()]
assert not immortal.keep()
count = sys.getrefcount(more[0])
others = [more[0]] * 5
assert sys.getrefcount(more[0]) == count + 5
""",
}


@pytest.fixture(scope="module")
def results() -> dict[str, str]:
    return in_forks(BEFORE, CASES)


@pytest.mark.parametrize("name", CASES)
def test_immortal(results: dict[str, str], name: str) -> None:
    assert results[name] == "passed"
