"""Compiles scripts, without what is always the same in those of Ansible's.

Such a script ends with a call that has the payload, as a text of 200 KiB, and only
the call differs from one task to the next. It is compiled by itself, and the text
is put in afterwards; what is before it is code that an earlier fork had to compile.
"""

import __future__

import re
from collections.abc import Callable
from types import CodeType

# The call, with a literal as it stands in the source. That has no escapes, so it is its own value.
_CALL = re.compile(
    rb"""^if __name__ == "__main__":\n    _ansiballz_main\(\n(?:\w+=.*\n)*?zip_data='([\w+/=]+)',\n\)\n\Z""",
    re.M,
)
_MARK = "@payload@"  # nothing that a literal like that holds
_FUTURE = sum(getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)

Known = Callable[[str, bytes], CodeType | None]


def compiled(text: bytes, file: str, known: Known) -> list[CodeType]:
    """Return the code of a script, to be executed one after the other."""
    try:
        parts = _parts(text, file, known)
    except (SyntaxError, ValueError):
        parts = []  # What is wrong shows when the whole is compiled.
    return parts or [compile(text, file, "exec", dont_inherit=True)]


def _parts(text: bytes, file: str, known: Known) -> list[CodeType]:
    call = _CALL.search(text)
    if call is None or _MARK.encode() in text or not text[call.start() : call.start(1)].isascii():
        return []
    first, (begin, end) = text[: call.start()], call.span(1)
    # The lines have the numbers that they have in the whole.
    lines = b"\n" * first.count(b"\n")
    rest = lines + text[call.start() : begin] + _MARK.encode() + text[end:]
    head = known(file, first) or compile(first, file, "exec", dont_inherit=True)
    tail = compile(rest, file, "exec", head.co_flags & _FUTURE, dont_inherit=True)
    if tail.co_consts.count(_MARK) != 1:
        return []
    payload = text[begin:end].decode()
    return [head, tail.replace(co_consts=tuple(payload if value == _MARK else value for value in tail.co_consts))]
