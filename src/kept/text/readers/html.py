"""HTML: a page as clean text, its blocks as paragraphs."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import nh3
from selectolax.lexbor import LexborHTMLParser, LexborNode

_GONE = frozenset(
    ("script", "style", "template", "noscript", "title", "iframe", "object", "svg")
)
_HEADINGS = {f"h{level}": f"{'#' * level} " for level in range(1, 7)}
_BLOCKS = frozenset(_HEADINGS) | frozenset(
    (
        "address", "article", "aside", "blockquote", "body", "center", "dd", "details",
        "dialog", "div", "dl", "dt", "fieldset", "figcaption", "figure", "footer",
        "form", "header", "hgroup", "hr", "legend", "main", "menu", "nav", "ol", "p",
        "pre", "section", "summary", "table", "ul",
    )
)  # fmt: skip
_ROWS = frozenset(("tr", "caption", "li"))
_CELLS = frozenset(("td", "th"))
_TAGS = _BLOCKS | _ROWS | _CELLS | {"br"}
_SPACE = re.compile(r"\s+")
_MANY_NEWLINES = re.compile(r"\n{3,}")
_SPACE_AT_END = re.compile(r"[ \t]+(?=\n)")


@dataclass(frozen=True, slots=True)
class Page:
    """A page's text, its first heading and its declared title."""

    text: str
    heading: str
    title: str


def read_page(html: str) -> Page:
    """Return the text of a page: sanitised, blocks apart, headings marked with #."""
    clean = nh3.clean(
        html,
        tags=set(_TAGS),
        clean_content_tags=set(_GONE),
        attributes={},
        link_rel=None,
    )
    body = LexborHTMLParser(f"<body>{clean}</body>").body
    text = _Writer().written(body) if body else ""
    heading = next((line for line in text.splitlines() if line.startswith("#")), "")
    return Page(text, heading.lstrip("# "), _title(html))


def _title(html: str) -> str:
    """Return what the page calls itself in its head."""
    found = LexborHTMLParser(html).css_first("head > title")
    return _SPACE.sub(" ", found.text()).strip() if found else ""


@dataclass(slots=True)
class _Writer:
    """Writes the text below an element, walking without recursion."""

    parts: list[str] = field(default_factory=list)
    verbatim: int = 0

    def written(self, root: LexborNode) -> str:
        """Return the text of everything below *root*."""
        for node, entering in _walk(root):
            if entering:
                self._enter(node)
            else:
                self._leave(node)
        text = _MANY_NEWLINES.sub("\n\n", _SPACE_AT_END.sub("", "".join(self.parts)))
        return text.strip()

    def _enter(self, node: LexborNode) -> None:
        tag = node.tag or ""
        if tag == "-text":
            self._text(node.text_content or "")
        elif tag == "br":
            self.parts.append("\n")
        elif tag in _CELLS and node.prev is not None:
            self.parts.append(" | ")
        elif tag in _ROWS:
            self.parts.append("\n- " if tag == "li" else "\n")
        elif tag in _BLOCKS:
            self.verbatim += tag == "pre"
            self.parts.append(f"\n\n{_HEADINGS.get(tag, '')}")

    def _leave(self, node: LexborNode) -> None:
        tag = node.tag or ""
        if tag in _BLOCKS:
            self.verbatim -= tag == "pre"
            self.parts.append("\n\n")

    def _text(self, text: str) -> None:
        if not self.verbatim:
            text = _SPACE.sub(" ", text)
            text = text.lstrip(" ") if self._at_line_start() else text
        self.parts.append(text)

    def _at_line_start(self) -> bool:
        return not self.parts or self.parts[-1].endswith(("\n", "- ", "# "))


def _walk(root: LexborNode) -> Iterator[tuple[LexborNode, bool]]:
    """Yield each node on the way in and on the way out."""
    node: LexborNode | None = root
    depth = 0
    while node is not None:
        yield node, True
        if node.child is not None:
            node, depth = node.child, depth + 1
            continue
        yield node, False
        while node.next is None and depth:
            node, depth = _parent(node), depth - 1
            yield node, False
        node = node.next if depth else None


def _parent(node: LexborNode) -> LexborNode:
    """Return the element around *node*, which is never the root here."""
    if node.parent is None:
        msg = "a node below the root has no parent"
        raise ValueError(msg)
    return node.parent
