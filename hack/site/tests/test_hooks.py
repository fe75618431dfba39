import importlib.util
from pathlib import Path
from textwrap import dedent

import pytest

spec = importlib.util.spec_from_file_location("hooks", Path(__file__).parents[1] / "hooks.py")
assert spec
assert spec.loader
hooks = importlib.util.module_from_spec(spec)
spec.loader.exec_module(hooks)


def test_the_nav_is_what_the_tables_of_the_index_list() -> None:
    index = dedent("""\
        # Title
        [not a row](other.md)
        ## One
        | | |
        |---|---|
        | [First](a.md) | see [another](b.md) |
        | [Out](../examples/x/README.md) | |
        ## Two
        ### Below
        | [Second](b.md) | |
        ## Empty
        words
        """)
    assert hooks.nav(index) == [
        {"Home": "README.md"},
        {"One": [{"First": "a.md"}, {"Out": "examples/x/README.md"}]},
        {"Two": [{"Below": [{"Second": "b.md"}]}]},
    ]
    assert hooks.paths(hooks.nav(index)) == ["README.md", "a.md", "examples/x/README.md", "b.md"]


@pytest.mark.parametrize(
    ("source", "text", "want"),
    [
        ("docs/a.md", "[b](b.md#x)", "[b](b.md#x)"),
        ("docs/a.md", "[me](#x) [out](https://x.example/docs/b.md)", "[me](#x) [out](https://x.example/docs/b.md)"),
        ("docs/a.md", "[c](../examples/x/README.md)", "[c](examples/x/README.md)"),
        ("examples/x/README.md", "[b](../../docs/b.md#x)", "[b](../../b.md#x)"),
        ("CHANGELOG.md", "[b](docs/b.md)", "[b](b.md)"),
        ("docs/a.md", "[code](../go.mod)", "[code](repo/blob/main/go.mod)"),
        ("docs/a.md", "[code](../hack)", "[code](repo/tree/main/hack)"),
        ("docs/a.md", "[gone](../none.md)", "[gone](../none.md)"),
        (
            "docs/a.md",
            "`[code](../go.mod)`\n```\n[code](../go.mod)\n```\n",
            "`[code](../go.mod)`\n```\n[code](../go.mod)\n```\n",
        ),
    ],
)
def test_a_link_holds_on_the_site(source: str, text: str, want: str) -> None:
    assert hooks.relinked(text, source, {"a.md", "b.md", "examples/x/README.md", "CHANGELOG.md"}, "repo") == want


def test_the_pictures_of_a_page_are_on_the_site() -> None:
    page, picture = "examples/visitors/README.md", "examples/visitors/page.png"
    assert hooks.pictures(page) == [picture]
    assert hooks.relinked("![a](page.png)", page, {page, picture}, "repo") == "![a](page.png)"


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("1. a\n\n   ```\n   code\n   ```\n2. b\n", "1. a\n\n    ```\n    code\n    ```\n\n2. b\n"),
        ("- a\n  more\n- b\n", "- a\n    more\n- b\n"),
        ("words\n- a\n- b\n2. c\n", "words\n\n- a\n- b\n2. c\n"),
        ("words\n\n    code\n", "words\n\n    code\n"),
        ("- a\n\n```\n  code\n```\n", "- a\n\n```\n  code\n```\n"),
    ],
)
def test_a_list_is_written_as_pythons_markdown_reads_it(text: str, want: str) -> None:
    assert hooks.indented(text) == want


def test_a_list_that_is_shown_as_text_is_found() -> None:
    assert hooks.lost_items("words\n- a\n- b\n```\n- c\n```\n", "<p>words - a - b</p>") == 2
    assert hooks.lost_items("- a\n- b\n", "<ul><li>a</li><li>b</li></ul>") == 0


def test_a_bar_in_a_table_is_shown_without_its_backslash() -> None:
    assert hooks.unescaped("| `a\\|b` | c\\|d |\n`a\\|b`") == "| `a|b` | c\\|d |\n`a\\|b`"


@pytest.mark.parametrize(
    ("heading", "anchor"),
    [
        ("A, the first (§1)", "a-the-first-1"),
        ("A name that is . or ..", "a-name-that-is--or-"),
        ("snake_case", "snake_case"),
    ],
)
def test_an_anchor_is_that_of_the_repository(heading: str, anchor: str) -> None:
    assert hooks.slug(heading, "-") == anchor
