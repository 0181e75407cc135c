"""Pages of the site: parsed Markdown with its headings, links and plain text."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from markdown_it import MarkdownIt
from markdown_it.token import Token
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

DOCS = Path(__file__).parent
ROOT = DOCS.parent
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
ELSEWHERE = re.compile(r"^[a-z][a-z0-9+.-]*:")
ON_THE_PAGE = ("h2", "h3")


class BrokenLinkError(Exception):
    """A link has no target."""


@dataclass(frozen=True)
class Heading:
    """A heading with its level, its anchor, and the text below it."""

    level: int
    name: str
    text: str
    body: str


@dataclass(frozen=True)
class Page:
    """One page: its source file, its address in the site, and its content."""

    source: Path
    address: str
    title: str
    headings: tuple[Heading, ...]
    tokens: tuple[Token, ...]

    @property
    def contents(self) -> tuple[Heading, ...]:
        """The headings in the page's table of contents."""
        return tuple(h for h in self.headings if f"h{h.level}" in ON_THE_PAGE)


def address_of(source: Path) -> str:
    """Return the address in the site of a file of the repository."""
    if source.is_relative_to(DOCS):
        place = source.relative_to(DOCS)
        return (
            place.with_suffix(".html") if place.suffix == ".md" else place
        ).as_posix()
    suffix = ".html" if source.suffix == ".md" else ".txt"
    return source.with_suffix(suffix).name.lower()


def read(source: Path) -> Page:
    """Return the page of a Markdown file."""
    tokens = _parser().parse(COMMENT.sub("", source.read_text("utf-8")))
    headings = tuple(_headings(tokens))
    return Page(source, address_of(source), headings[0].text, headings, tuple(tokens))


def rendered(page: Page, pages: dict[Path, Page]) -> tuple[str, set[Path]]:
    """Return a page's HTML, and the files other than pages that it links to."""
    files: set[Path] = set()
    for token in page.tokens:
        for inner in token.children or ():
            for attribute in ("href", "src"):
                target = inner.attrGet(attribute)
                if isinstance(target, str):
                    found = _followed(page, target, pages, files)
                    inner.attrSet(attribute, found)
    html: str = _parser().renderer.render(list(page.tokens), _parser().options, {})
    return html.replace("<table>", WIDE).replace("</table>", "</table></div>"), files


WIDE = '<div class="wide" tabindex="0" role="group" aria-label="Table"><table>'


def _followed(
    page: Page, target: str, pages: dict[Path, Page], files: set[Path]
) -> str:
    """Return *target* as a link inside the site; raise if it is broken."""
    if ELSEWHERE.match(target):
        return target
    path, _, name = target.partition("#")
    source = (page.source.parent / unquote(path)).resolve() if path else page.source
    if source in pages:
        known = {heading.name for heading in pages[source].headings}
        if name and name not in known:
            msg = f"{os.path.relpath(page.source, ROOT)}: no heading for {target}"
            raise BrokenLinkError(msg)
    elif source.is_file() and source.is_relative_to(ROOT):
        files.add(source)
    else:
        msg = f"{os.path.relpath(page.source, ROOT)}: nothing at {target}"
        raise BrokenLinkError(msg)
    place = os.path.relpath(address_of(source), Path(page.address).parent)
    return f"{place}#{name}" if name else place


def _headings(tokens: list[Token]) -> Iterator[Heading]:
    """Yield the headings with GitHub's anchors and the text below each."""
    taken: dict[str, int] = {}
    starts = [i for i, token in enumerate(tokens) if token.type == "heading_open"]
    for start, end in zip(starts, [*starts[1:], len(tokens)], strict=True):
        text = _plain([tokens[start + 1]])
        name = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
        again = taken.get(name, 0)
        taken[name] = again + 1
        name = f"{name}-{again}" if again else name
        tokens[start].attrSet("id", name)
        body = _plain(tokens[start + 3 : end])
        yield Heading(int(tokens[start].tag[1]), name, text, body)


def _plain(tokens: list[Token]) -> str:
    """Return the plain text of tokens, without markup."""
    parts = [token.content for token in tokens if token.type == "fence"]
    parts += [
        "".join(
            inner.content if inner.type in ("text", "code_inline") else " "
            for inner in token.children
            if inner.nesting == 0
        )
        for token in tokens
        if token.children
    ]
    return " ".join(" ".join(parts).split())


def _parser() -> MarkdownIt:
    options = {"html": False, "highlight": _highlighted}
    return MarkdownIt("commonmark", options).enable("table")


def _highlighted(code: str, language: str, attributes: str) -> str:
    try:
        lexer = get_lexer_by_name(language or "text")
    except ClassNotFound:
        lexer = get_lexer_by_name("text")
    coloured = highlight(code, lexer, HtmlFormatter(nowrap=True))
    return f'<pre tabindex="0"><code>{coloured}</code></pre>'
