"""What mkdocs does not know of these documents.

They are written to be read in the repository, too. So the nav is made of the tables in
docs/README.md, which lists every page; a page of the repository that a table lists is
a page of the site, wherever it lies; and every other link out of docs/ becomes one to the repository.
"""

from __future__ import annotations

import logging
import posixpath
import re
import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # The tests need no mkdocs.
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

log = logging.getLogger("mkdocs.plugins.ensign")
ROOT = Path(__file__).parents[2]
INDEX = "docs/README.md"

HEADING = re.compile(r"(##+) (.+)")
ROW = re.compile(r"\| \[(?P<title>[^\]]+)\]\((?P<target>[^)\s#]+)\)")
# Code is matched first, so that a link in it is none.
LINK = re.compile(r"(?P<code>^ *```.*?^ *```|`[^`\n]+`)|\]\((?P<target>[^)\s#]+)(?P<anchor>#[^)\s]*)?\)", re.M | re.S)


def nav(index: str) -> list[Any]:
    """Return the nav: a section for each heading of the index, in it the rows of the tables."""
    top: list[Any] = [{"Home": "README.md"}]
    levels = {1: top}
    current = top
    for line in index.splitlines():
        if heading := HEADING.match(line):
            depth, title = len(heading[1]), heading[2]
            current = levels[depth] = []
            levels[depth - 1].append({title: current})
        elif row := ROW.match(line):
            current.append({row["title"]: site_path(posixpath.normpath(posixpath.join("docs", row["target"])))})
    return without_empty(top)


def without_empty(entries: list[Any]) -> list[Any]:
    """Leave out headings that have no table below them."""
    kept = []
    for entry in entries:
        ((title, value),) = entry.items()
        if isinstance(value, list):
            value = without_empty(value)
        if value:
            kept.append({title: value})
    return kept


def paths(entries: list[Any]) -> list[str]:
    """Return the pages of a nav."""
    found: list[str] = []
    for entry in entries:
        for value in entry.values():
            found += paths(value) if isinstance(value, list) else [value]
    return found


def site_path(path: str) -> str:
    """Return where a file of the repository lies below the site's root."""
    return path.removeprefix("docs/")


def pictures(path: str) -> list[str]:
    """Return the pictures that lie beside a page of the repository and are shown on it."""
    targets = [match["target"] or "" for match in LINK.finditer((ROOT / path).read_text())]
    beside = [target for target in targets if target.endswith((".png", ".svg")) and "/" not in target]
    return [posixpath.join(posixpath.dirname(path), target) for target in beside]


def relinked(markdown: str, source: str, pages: set[str], repository: str) -> str:
    """Return the text of the page at a path of the repository with links that hold on the site."""

    def relink(match: re.Match[str]) -> str:
        target, anchor = match["target"], match["anchor"] or ""
        if match["code"] or "://" in target:
            return match[0]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        if site_path(path) in pages or path.startswith("docs/"):
            return f"]({posixpath.relpath(site_path(path), posixpath.dirname(site_path(source)) or '.')}{anchor})"
        if not (ROOT / path).exists():
            return match[0]  # mkdocs says that it is broken.
        kind = "tree" if (ROOT / path).is_dir() else "blob"
        return f"]({repository}/{kind}/main/{path}{anchor})"

    return LINK.sub(relink, markdown)


ITEM = re.compile(r" *(?:-|\d+\.) +")
FENCE = re.compile(r"^( *)```.*?^\1```$", re.M | re.S)


def indented(markdown: str) -> str:
    """Write lists as Python's Markdown insists on.

    What belongs to an item is indented by four columns. A blank line is before a list, and before
    the next item where one is within the item.
    """
    lines, more, fenced, blank = [], 0, False, False
    for line in markdown.splitlines():
        if line.startswith("```"):
            fenced = not fenced
        if fenced or not line:
            blank = blank or not line
        elif line.startswith(" "):
            lines.append(" " * more + line)
            continue
        else:
            item = ITEM.match(line)
            begins = item and not more and lines and lines[-1] and item[0].strip() in ("-", "1.")
            if begins or (item and more and blank):
                lines.append("")
            more = 4 - len(item[0]) if item else 0
            blank = False
        lines.append(line)
    return "\n".join(lines) + "\n"


def unescaped(markdown: str) -> str:
    """Take the backslash off a bar in code in a table, which Python's Markdown shows."""

    def row(line: str) -> str:
        return re.sub(r"`[^`]+`", lambda code: code[0].replace(r"\|", "|"), line) if line.startswith("|") else line

    return "\n".join(map(row, markdown.split("\n")))


def lost_items(markdown: str, html: str) -> int:
    """Return how many list items of a page are shown as mere text."""
    return sum(1 for line in FENCE.sub("", markdown).splitlines() if ITEM.match(line)) - html.count("<li>")


def slug(heading: str, separator: str) -> str:
    """Return the anchor of a heading as GitHub makes it, so that links hold in both places."""
    text = unicodedata.normalize("NFC", heading.strip()).lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", separator)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    config.nav = nav((ROOT / INDEX).read_text())
    config.mdx_configs.setdefault("toc", {})["slugify"] = slug
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    from mkdocs.structure.files import File  # noqa: PLC0415

    for path in paths(config.nav or []):
        if files.get_file_from_path(path) is None and (ROOT / path).is_file():
            for part in (path, *pictures(path)):
                files.append(File.generated(config, part, abs_src_path=str(ROOT / part)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    source = page.file.src_uri if page.file.generated_by else f"docs/{page.file.src_uri}"
    return relinked(unescaped(indented(markdown)), source, {file.src_uri for file in files}, config.repo_url or "")


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> None:  # noqa: ARG001
    if lost := lost_items(page.markdown or "", html):
        log.warning("%s: %d list items are shown as text: is a blank line before the list?", page.file.src_uri, lost)
