"""Scripts that are compiled in two parts."""

import contextlib
import traceback
from types import CodeType
from typing import Any

import pytest
from ensign_warm import script

HEAD = """from __future__ import annotations
import datetime

def _ansiballz_main(zip_data: Unknown, params, **others):
    done.append((zip_data, params, others, __name__))
    if params == "fail":
        raise ValueError(zip_data)
"""
CALL = """
if __name__ == "__main__":
    _ansiballz_main(
date_time=datetime.datetime(2026, 11, 22, tzinfo=datetime.timezone.utc),
params={params},
zip_data='{payload}',
)
"""
USUAL = HEAD + CALL.format(params="'one'", payload="UEsDBBQAAAAI+/==")

IN_PARTS = {
    "Ansible's": USUAL,
    "a failure of what is called": USUAL.replace("'one'", "'fail'"),
    "a failure of the call": USUAL.replace("'one'", "1 / 0"),
    "a payload that is given twice": USUAL.replace("'one'", "'UEsDBBQAAAAI+/=='"),
}
AS_A_WHOLE = {
    "nothing of Ansible's": "done.append(1)\n",
    "something after the call": USUAL + "done.append(1)\n",
    "a text that is the mark": USUAL.replace("'one'", "'@payload@'"),
    "a text with another alphabet": USUAL.replace("one", "öne"),
    "a text of several lines": USUAL.replace("'one'", "'''\n'''"),
    "a call in a text": HEAD + 'x = """' + CALL.format(params="'one'", payload="UEs") + '"""\n',
    "a call in a text that does not end": HEAD + 'x = """' + CALL.format(params="'one'", payload="UEs"),
    "a payload in a text that does not end": USUAL.replace("'one'", "'''"),
    "a payload with an escape": USUAL.replace("UEs", "UEs\\n"),
    "another condition before the call": HEAD + "if 0:\n    pass\nel" + CALL.format(params="1", payload="UEs")[1:],
    "a rule for all of the source": USUAL.replace("annotations", "barry_as_FLUFL").replace("'one'", "1 != 2"),
    "a payload that is no text": USUAL.replace("'one',", "'one' \\\n'\\").replace("==',\n", "'',\n"),
    "a mistake before the call": "1 +\n" + USUAL,
    "a mistake in the call": USUAL.replace("'one'", "1 +"),
    "a decorator before the call": HEAD + "@done.append" + CALL.format(params="1", payload="UEs"),
    "a byte that is none in a source": USUAL.replace("'one'", "'\0'"),
}


def unknown(file: str, source: bytes) -> CodeType | None:
    del file, source
    return None


def both(text: str, known: script.Known = unknown) -> tuple[Any, Any]:
    """Return what comes of a script in parts and as a whole."""

    def run(codes: list[CodeType]) -> Any:
        done: list[Any] = []
        space = {"done": done, "__name__": "__main__"}
        try:
            for code in codes:
                exec(code, space)  # noqa: S102
        except Exception as error:
            return done, repr(error), traceback.format_tb(error.__traceback__)[1:], sorted(space)
        return done, "", [], sorted(space)

    source = text.encode()
    try:
        whole = run([compile(source, "<stdin>", "exec", dont_inherit=True)])
    except (SyntaxError, ValueError) as error:
        with pytest.raises(type(error)) as raised:
            script.compiled(source, "<stdin>", known)
        return repr(raised.value), repr(error)
    return run(script.compiled(source, "<stdin>", known)), whole


@pytest.mark.parametrize("name", IN_PARTS | AS_A_WHOLE)
def test_does_the_same(name: str) -> None:
    one, other = both((IN_PARTS | AS_A_WHOLE)[name])
    assert one == other


@pytest.mark.parametrize("name", IN_PARTS)
def test_is_compiled_in_parts(name: str) -> None:
    assert len(script.compiled(IN_PARTS[name].encode(), "<stdin>", unknown)) == 2


@pytest.mark.parametrize("name", AS_A_WHOLE)
def test_is_compiled_as_a_whole(name: str) -> None:
    codes: list[CodeType] = []
    with contextlib.suppress(SyntaxError, ValueError):
        codes = script.compiled(AS_A_WHOLE[name].encode(), "<stdin>", unknown)
    assert len(codes) < 2


def test_what_is_before_the_call_is_asked_for() -> None:
    asked = []

    def known(file: str, source: bytes) -> CodeType | None:
        asked.append((file, source))
        return compile(source.replace(b"done.append", b"done.extend"), file, "exec", dont_inherit=True)

    one, _ = both(USUAL, known)
    assert one[0][:2] == ["UEsDBBQAAAAI+/==", "one"]
    assert asked == [("<stdin>", (HEAD + "\n").encode())]
