"""Functions without docstrings do what they did."""

from pathlib import Path

from conftest import execute

PACKAGE = '''
"""Of a package."""
class Kept:
    """Of a class."""
    def method(self, argument="first"):
        """Of a method."""
        return [name for name in ("a", argument) if name != "a"], any("b" == name for name in "ab"), (lambda: "c")()
def bare():
    return "a constant, and no docstring"
def outer():
    """Of a function."""
    def inner():
        """Of a function in it."""
        return "inner"
    return inner
'''
PROGRAM = """
import sys
from importlib.machinery import SourceFileLoader
from ensign_warm import terse
sys.path.insert(0, sys.argv[1])
before = SourceFileLoader.get_code
with terse.imports("some"):
    import some.part, someother
assert SourceFileLoader.get_code is before and "get_code" not in vars(SourceFileLoader)
for module, kept in ((some.part, False), (someother, True)):
    inner = module.outer()
    assert [module.__doc__, module.Kept.__doc__] == ["Of a package.", "Of a class."]
    assert [bool(f.__doc__) for f in (module.Kept.method, module.outer, inner)] == [kept] * 3
    assert module.bare.__doc__ is None and module.bare() == "a constant, and no docstring"
    assert module.Kept().method() == (["first"], True, "c") and inner() == "inner"
"""


def test_functions_of_the_package_lack_docstrings_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "some").mkdir()
    for name in ("some/part.py", "someother.py"):
        (tmp_path / name).write_text(PACKAGE)
    execute(PROGRAM, str(tmp_path))
