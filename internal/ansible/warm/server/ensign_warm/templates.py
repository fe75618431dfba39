"""Templates of the content, compiled once: a run compiles each anew in every task that has it.

A fork compiles a text itself unless it is known, and the delimiters are the usual ones. Filters
and tests are the fork's own in any case, and decide how some of a template is compiled.
"""

import contextlib
import importlib
import json
import warnings
from types import CodeType, SimpleNamespace
from typing import Any


class Templates:
    """Texts, and which of them are expressions, with what they were compiled to."""

    def __init__(self) -> None:
        # With the code, what it takes filters or tests for: "filters" or "tests", name, what that is passed besides.
        self._known: dict[tuple[str, bool], tuple[CodeType, tuple[tuple[str, str, object], ...]]] = {}
        self._lexer: object = None

    def load(self, path: str) -> None:
        """Compile, in the server, the templates that the file has."""
        usual, uses = importlib.import_module("jinja2.defaults"), list[tuple[str, str, object]]()

        def presumed(kind: str, name: str) -> object:
            plugin = getattr(usual, f"DEFAULT_{kind.upper()}").get(name, len)  # Most others are functions like len.
            uses.append((kind, name, _passed(plugin)))
            return plugin

        environment = _environment()()
        self._lexer = environment.lexer
        environment.filters = SimpleNamespace(get=lambda name: presumed("filters", name))
        environment.tests = SimpleNamespace(get=lambda name: presumed("tests", name))
        environment.template_class = SimpleNamespace(from_code=lambda _environment, code, *_: code)
        with open(path, encoding="utf-8") as file, warnings.catch_warnings(action="error"):
            for text, expression in ((template["text"], template["expression"]) for template in json.load(file)):
                uses.clear()
                with contextlib.suppress(Exception):  # Runs compile it, and say what is wrong.
                    made = environment.compile_expression(text) if expression else environment.from_string(text)
                    self._known[text, expression] = made._template if expression else made, tuple(uses)

    def give_out(self) -> None:
        """Have Ansible ask here, in a fork."""
        if not self._known:
            return
        base, made = _environment(), importlib.import_module("jinja2.environment").TemplateExpression
        compile_text, compile_expression = base.compile, base.compile_expression

        def compiled(own: Any, source: Any, *args: Any, **options: Any) -> Any:
            plain = isinstance(source, str) and not args and not options
            return (self._find(own, source, False) if plain else None) or compile_text(own, source, *args, **options)

        def expression(own: Any, source: str, undefined_to_none: bool = True) -> Any:
            code = self._find(own, source, True)
            if code is None:
                return compile_expression(own, source, undefined_to_none)
            return made(own.template_class.from_code(own, code, own.make_globals(None), None), undefined_to_none)

        base.compile, base.compile_expression = compiled, expression

    def _find(self, environment: Any, text: str, expression: bool) -> CodeType | None:
        code, uses = self._known.get((text, expression), (None, ()))
        plugins = ((getattr(environment, kind).get(name), passed) for kind, name, passed in uses)
        if environment.lexer is self._lexer and all(p is not None and _passed(p) is passed for p, passed in plugins):
            return code
        return None


def _environment() -> Any:
    return importlib.import_module("ansible._internal._templating._jinja_bits").AnsibleEnvironment


def _passed(plugin: object) -> object:
    return importlib.import_module("jinja2.compiler")._PassArg.from_obj(plugin)
