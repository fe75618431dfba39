"""What the first runs of a server call is moved, once, and does what it did."""

import pytest
from conftest import in_forks

BEFORE = """
import gc, os, sys, types
from ensign_warm import immortal
from ensign_warm.hot import Hot

def made(number, rest=()):
    scope = {"held": number}
    exec(f'''
def called_{number}(first, second={number}, *others, key="k"):
    "It is documented."
    def inner():
        return [first + value for value in (second, *others)]
    return inner(), key, (lambda: held)()
''', scope)
    return scope[f"called_{number}"]

functions = [made(number) for number in range(400)]
rarely, twice, often = functions[::20], functions[5::20], functions[10::20]
moved = rarely + twice + often
assert immortal.keep()
gc.disable()
before = {f: f.__code__ for f in functions}

def begin(possible=True):
    global hot
    hot = Hot(possible=possible)  # What is noted is shared with all forks.
    return hot

def run(*kinds):
    # Each kind of process is a fork of the one before.
    pid = os.fork()
    if pid:
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        hot.ended()
        return
    hot.note()
    for depth, called in enumerate(kinds):
        if depth and (pid := os.fork()):
            os._exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        for function in called:
            function(1)
    os._exit(0)

def pages(some):
    return {id(f.__code__) // 4096 for f in some}
"""
CASES = {
    "the first runs show what is called, and it is moved after them": """
hot = begin()
run(rarely, twice)
hot.ended()  # As of a fork that refused.
run([], [], often)
assert all(f.__code__ is before[f] for f in functions)
run([])
assert {f for f in functions if f.__code__ is not before[f]} == set(moved)
run(functions)
assert {f for f in functions if f.__code__ is not before[f]} == set(moved)
""",
    "it lies together, by the kind of process": """
begin()
scattered = len(pages(moved))
for _ in range(3):
    run(rarely, twice, often)
assert len(pages(moved)) * 3 < scattered, (len(pages(moved)), scattered)
for one, other in ((rarely, twice), (twice, often), (rarely, often)):
    assert len(pages(one) & pages(other)) <= 2, (pages(one), pages(other))
""",
    "it does what it did, and tells the same of itself": """
begin()
def told(f):
    return f(1, 2, 3, key="x"), f(5), f.__doc__, f.__qualname__, f.__code__.co_firstlineno, f.__code__
first = {f: told(f) for f in functions}
for _ in range(3):
    run(moved)
assert {f: told(f) for f in functions} == first
assert rarely[0](1)[0] == [1 + 0]
""",
    "what lies in it is moved too, if it was called": """
begin()
for _ in range(3):
    run(moved)
def inner(code):
    return [c for c in code.co_consts if isinstance(c, types.CodeType)]
pairs = [(old, new) for f in moved for old, new in zip(inner(before[f]), inner(f.__code__))]
assert len(pairs) == 2 * len(moved)
assert all(old == new and old is not new for old, new in pairs)
""",
    "to use it writes nothing": """
begin()
for _ in range(3):
    run(moved)
codes = [f.__code__ for f in moved] + [f.__code__.co_consts for f in moved]
counts = [sys.getrefcount(c) for c in codes]
more = [codes] * 3 + [c for c in codes for _ in range(3)]
assert [sys.getrefcount(c) for c in codes] == counts
tracked = gc.get_objects()
assert not any(x is c for x in tracked for c in (*moved, *codes)) and gc.get_count()[0] < 100
""",
    "an interpreter without immortal objects leaves it where it is": """
begin(possible=False)
for _ in range(5):
    run(moved)
assert all(f.__code__ is before[f] for f in functions)
""",
    "who forges notes has all moved, which does what it did": """
hot = begin()
import argparse, dataclasses, email.parser, json, logging, typing  # With functions of every kind.
immortal.keep()
hot._notes[:] = b"\\xff" * len(hot._notes)
run()
assert all(f.__code__ is not before[f] for f in functions)
assert functions[7](1) == ([8], "k", 7)
@dataclasses.dataclass
class Point:
    x: int
    y: typing.Any = 2
parser = argparse.ArgumentParser()
parser.add_argument("--size", type=int, default=3)
assert json.loads(json.dumps(vars(parser.parse_args(["--size=4"])))) == {"size": 4}
assert Point(1) == Point(1, 2) and email.parser.Parser().parsestr("a: b\\n\\nc")["a"] == "b"
assert logging.getLogger("x").isEnabledFor(logging.ERROR)
""",
    "a tool that content has is left alone": """
sys.monitoring.use_tool_id(5, "of content")
begin()
for _ in range(3):
    run(moved)
assert all(f.__code__ is before[f] for f in functions)
""",
    "forks may be deep": """
hot = begin()
run(*[moved] * 12)
assert max(hot._notes[: 1 << 20]) == 7 and hot._notes[1 << 20] == 1
for _ in range(2):
    run()
assert {f for f in functions if f.__code__ is not before[f]} == set(moved)
""",
}


@pytest.fixture(scope="module")
def results() -> dict[str, str]:
    return in_forks(BEFORE, CASES)


@pytest.mark.parametrize("name", CASES)
def test_hot(results: dict[str, str], name: str) -> None:
    assert results[name] == "passed"
