"""Templates of the content, compiled once: a run compiles each anew in every task that has it.

A fork compiles a text itself unless it is known, and the environment is as usual. The code gets
filters and tests of the fork's own, and depends on what they are passed beside values.
"""

import contextlib
import importlib
import json
import sys
import warnings
from types import CodeType, SimpleNamespace
from typing import Any

# What the code of templates may depend on; see trial.py.
TEXTS = [
    "{{ 'x' | upper ~ numbers | map('string') | join(',') }}{{ [numbers[0] + 1, 1] | first == 4 }}",
    "{% set x = numbers | default([]) %}{% for n in x if n is odd %}{{ loop.index }}{% else %}-{% endfor %}",
    "{% macro m(a, b=2) %}{{ a ~ b }}{% endmacro %}{{ m(1) }}{% if x is not defined %}{{ '{{ numbers }}' }}{% endif %}",
]
EXPRESSION = "numbers | length == 3 and missing is not defined"
# What it does not depend on, beside the filters and tests that the text names.
_IRRELEVANT = {"filters", "tests", "globals", "cache", "loader", "overlayed", "linked_to", "extensions"}


class Templates:
    """Texts, and which of them are expressions, with what they were compiled to."""

    def __init__(self) -> None:
        # With the code, of what it uses: "filters" or "tests", the name, and Jinja's _PassArg or None.
        self._known: dict[tuple[str, bool], tuple[CodeType, tuple[tuple[str, str, object], ...]]] = {}
        self._usual: object = None

    def load(self, path: str) -> None:
        """Compile, in the server, the templates that the file has."""
        texts = [(text, False) for text in TEXTS] + [(EXPRESSION, True)]
        with contextlib.suppress(Exception), open(path, encoding="utf-8") as file:  # Runs do without.
            self._compile(texts + [(template["text"], template["expression"]) for template in json.load(file)])

    def _compile(self, texts: list[tuple[str, bool]]) -> None:
        defaults, uses = importlib.import_module("jinja2.defaults"), list[tuple[str, str, object]]()

        def presumed(kind: str, name: str) -> object:
            plugin = getattr(defaults, f"DEFAULT_{kind.upper()}").get(name, len)  # Most others are passed values only.
            uses.append((kind, name, _passed(plugin)))
            return plugin

        environment, limit = _environment()(), sys.getrecursionlimit()
        self._usual = _state(environment)
        environment.filters = SimpleNamespace(get=lambda name: presumed("filters", name))
        environment.tests = SimpleNamespace(get=lambda name: presumed("tests", name))
        environment.template_class = SimpleNamespace(from_code=lambda _environment, code, *_: code)
        sys.setrecursionlimit(limit // 2)  # As a run, which is deep in its own calls, has it at least.
        with warnings.catch_warnings(action="error"):
            for text, expression in texts:
                uses.clear()
                with contextlib.suppress(Exception):  # Runs compile it, and say what is wrong.
                    made = environment.compile_expression(text) if expression else environment.from_string(text)
                    self._known[text, expression] = made._template if expression else made, tuple(uses)
        sys.setrecursionlimit(limit)

    def give_out(self, tried: bool = False) -> None:
        """Have Ansible ask here, in a fork. In one that is tried, each answer has to be what Ansible would make."""
        if not self._known:
            return
        base, made = _environment(), importlib.import_module("jinja2.environment").TemplateExpression
        compile_text, compile_expression = base.compile, base.compile_expression

        def compiled(own: Any, source: Any, *args: Any, **options: Any) -> Any:
            plain = isinstance(source, str) and not args and not options
            code = self._find(own, source, False) if plain else None
            if tried and code is not None and code != compile_text(own, source):
                raise RuntimeError(f"a template is compiled otherwise: {source}")
            return code or compile_text(own, source, *args, **options)

        def expression(own: Any, source: str, undefined_to_none: bool = True) -> Any:
            code = self._find(own, source, True)
            if tried or code is None:
                return compile_expression(own, source, undefined_to_none)
            return made(own.template_class.from_code(own, code, own.make_globals(None), None), undefined_to_none)

        base.compile, base.compile_expression = compiled, expression

    def _find(self, environment: Any, text: str, expression: bool) -> CodeType | None:
        code, uses = self._known.get((text, expression), (None, ()))
        if code is None or _state(environment) != self._usual:
            return None
        plugins = ((getattr(environment, kind).get(name), passed) for kind, name, passed in uses)
        return code if all(plugin is not None and _passed(plugin) is passed for plugin, passed in plugins) else None


def _environment() -> Any:
    return importlib.import_module("ansible._internal._templating._jinja_bits").AnsibleEnvironment


def _state(environment: Any) -> object:
    """Return what of an environment the code of a template depends on."""
    own = {name: value for name, value in vars(environment).items() if name not in _IRRELEVANT}
    return type(environment), own, [*environment.extensions]


def _passed(plugin: object) -> object:
    return importlib.import_module("jinja2.compiler")._PassArg.from_obj(plugin)
