"""A template that was compiled ahead is what Ansible would compile."""

import importlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ensign_warm import templates as ahead
from ensign_warm.templates import Templates

BASE = importlib.import_module("ansible._internal._templating._jinja_bits").AnsibleEnvironment
engine = importlib.import_module("ansible._internal._templating._engine")
tags = importlib.import_module("ansible._internal._datatag._tags")
jinja2 = importlib.import_module("jinja2")

VARIABLES = {"name": "ensign", "numbers": [3, 1, 2], "nested": {"a": [{"b": 1}], "none": None}, "yes": True}
TEXTS = [
    "{{ name }}",
    "{{ name }}-{{ numbers[0] }}",
    "{{ nested.a[0].b + 1 }}",
    "{{ numbers }}",
    "{{ numbers | sort | first }} and {{ numbers | map('string') | join(', ') }}",
    "{{ nothing | default('other') }}",
    "{{ nested | to_json }}",
    "{{ name | regex_replace('^e', 'E') }}",
    "{% for n in numbers %}{{ loop.index }}:{{ n }}\n{% endfor %}{# no #}",
    "{% if name is match('ens') and nested.none is none %}yes{% else %}no{% endif %}",
    "{% set x = name %}{{ x ~ x }}",
    "{{ lookup('vars', 'name') }}",
    "{{ nothing }}",
    "{{ numbers | missing }}",
    "{{ numbers is missing }}",
    "{{ 1 / 0 }}",
    "{{ yes }}",
    "{% macro twice(x) %}{{ x }}{{ x }}{% endmacro %}{{ twice(name) }}{% call twice(1) %}{% endcall %}",
    "{% filter upper %}{{ name }}{% endfilter %}{% raw %}{{ name }}{% endraw %}",
    "{% include 'none' %}",
    "{{ '{{ name }}' }}",
]
EXPRESSIONS = [
    "name",
    "yes and not nested.none",
    "numbers | length > 2",
    "name is match('x')",
    "nothing",
    "nothing is defined",
]
Kept = dict[tuple[str, bool], Any]


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Return a list of what is compiled after all."""
    found: list[object] = []
    original = jinja2.Environment._generate

    def generate(own: object, source: object, *args: object, **options: object) -> object:
        found.append(source)
        return original(own, source, *args, **options)

    monkeypatch.setattr(jinja2.Environment, "_generate", generate)
    return found


@pytest.fixture
def have(tmp_path: Path, compiled: list[object]) -> Iterator[Any]:
    """Have templates compiled ahead, and Ansible ask for them."""
    kept = BASE.compile, BASE.compile_expression

    def have(texts: list[str], expressions: list[str] = EXPRESSIONS) -> Kept:
        path = tmp_path / "templates.json"
        listed = [(text, False) for text in texts] + [(text, True) for text in expressions]
        path.write_text(json.dumps([{"text": text, "expression": expression} for text, expression in listed]))
        templates = Templates()
        templates.load(str(path))
        templates.give_out()
        compiled.clear()
        return {key: code for key, code in templates._known.items() if key[0] not in (*ahead.TEXTS, ahead.EXPRESSION)}

    yield have
    BASE.compile, BASE.compile_expression = kept


def outcome(text: str, expression: bool = False, **options: Any) -> object:
    """Return what comes of a template, or what is wrong with it."""
    trusted = tags.Origin(path="/a", line_num=7).tag(tags.TrustedAsTemplate().tag(text))
    ours = engine.TemplateEngine(variables=VARIABLES)
    try:
        if expression:
            return ours.evaluate_expression(trusted)
        return ours.template(trusted, options=engine.TemplateOptions(**options))
    except Exception as error:
        return type(error), str(error)


def origins(value: object) -> list[str]:
    helper = importlib.import_module("ansible.module_utils._internal._datatag").AnsibleTagHelper
    return sorted(map(repr, helper.tags(value)))


@pytest.mark.parametrize(
    ("text", "expression"), [(text, False) for text in TEXTS] + [(text, True) for text in EXPRESSIONS]
)
def test_nothing_else_comes_of_it(have: Any, compiled: list[object], text: str, expression: bool) -> None:
    fresh = outcome(text, expression)
    assert compiled
    assert (text, expression) in have(TEXTS)
    again = outcome(text, expression)
    assert (again, type(again), origins(again)) == (fresh, type(fresh), origins(fresh))
    assert len(compiled) == int("missing" in text)  # To compile it says what is wrong.


def test_the_same_text_may_be_both(have: Any, compiled: list[object]) -> None:
    have(["name"], ["name"])
    assert outcome("{{ name }}") == outcome("name", expression=True) == "ensign"
    assert len(compiled) == 1
    assert outcome("name") == "name"


def test_a_text_that_is_not_trusted_stays_one(have: Any, compiled: list[object]) -> None:
    have(["{{ name }}"])
    value = engine.TemplateEngine(variables={"text": "{{ name }}", **VARIABLES})
    assert value.template("{{ name }}") == "{{ name }}"
    assert value.template(tags.TrustedAsTemplate().tag("{{ text }}")) == "{{ name }}"
    assert len(compiled) == 1


def test_a_text_that_is_not_known_is_compiled(have: Any, compiled: list[object]) -> None:
    have([])
    assert outcome("{{ name }}") == "ensign"
    assert outcome("name ~ 1", expression=True) == "ensign1"
    assert len(compiled) == 2


def test_other_delimiters_are_others(have: Any, compiled: list[object]) -> None:
    have(["{{ name }}[[ name ]]"])
    overrides = engine.TemplateOverrides(variable_start_string="[[", variable_end_string="]]")
    assert outcome("{{ name }}[[ name ]]", overrides=overrides) == "{{ name }}ensign"
    assert len(compiled) == 1
    assert outcome("{{ name }}[[ name ]]") == "ensign[[ name ]]"
    assert len(compiled) == 1


def test_an_environment_that_is_not_as_usual_compiles(have: Any, compiled: list[object]) -> None:
    have(["{{ name }}"])
    usual = BASE()
    for other in (
        {"finalize": str.upper},
        {"autoescape": True},
        {"extensions": ["jinja2.ext.do"]},
        {"trim_blocks": False},
    ):
        usual.overlay(**other).compile("{{ name }}")
    assert len(compiled) == 4
    usual.overlay().compile("{{ name }}")
    usual.compile("{{ name }}", "a file")
    assert len(compiled) == 5


@pytest.mark.parametrize("name", ["ours", "first", "default"])
def test_a_filter_that_is_passed_something_else(
    have: Any, compiled: list[object], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    text = f"{{{{ name | {name} }}}}"
    have([text])

    @jinja2.pass_context
    def own(context: Any, value: str) -> str:
        return f"{value} of {len(context['numbers'])}"

    original = BASE.__init__

    def made(self: Any, *args: Any, **options: Any) -> None:
        original(self, *args, **options)
        self.filters._wrapped_funcs[name] = own

    monkeypatch.setattr(BASE, "__init__", made)
    assert outcome(text) == "ensign of 3"
    assert len(compiled) == 1


@pytest.mark.parametrize(
    "text",
    ["{{ name", "{% frob %}", "{{ .Values.name }}", "{{ 1[0:1] }}", "{{ " + "(" * 66 + "name" + ")" * 66 + " }}"],
)
def test_what_is_wrong_or_warned_of_is_left_to_runs(have: Any, text: str) -> None:
    assert have([text], []) == {}


@pytest.mark.parametrize("content", [None, "", "null", "[1]", '[{"text": "{{ name }}"}]'])
def test_runs_do_without_a_file(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "templates.json").write_text(content)
    before, templates = BASE.compile, Templates()
    templates.load(str(tmp_path / "templates.json"))
    templates.give_out()
    assert BASE.compile is before


def test_runs_say_what_is_wrong_with_the_environment(have: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BASE, "__init__", lambda *_: importlib.import_module("no.such.extension"))
    assert have(["{{ name }}"]) == {}


def test_nothing_of_roles_is_loaded(have: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    loader = importlib.import_module("ansible.plugins.loader")
    monkeypatch.setattr(loader.Jinja2Loader, "get", lambda *_: pytest.fail("a plugin was loaded"))
    assert len(have(["{{ name | a.b.c | ours }}", "{{ name is ours }}"], [])) == 2


def test_all_templates_share_a_lexer(have: Any) -> None:
    have([])
    before = len(BASE._lexer_cache)
    assert BASE(ansible_basedir="/").lexer is BASE().lexer
    assert len(BASE._lexer_cache) == before > 0
