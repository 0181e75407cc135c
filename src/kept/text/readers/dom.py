"""DOM: a page as a tree of plain objects, built and walked without recursion."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from selectolax.lexbor import LexborHTMLParser, LexborNode

MAX_DEPTH = 1_000
# What a browser shows nothing of.
_SILENT = frozenset(
    (
        "-comment", "base", "button", "canvas", "datalist", "embed", "head", "iframe",
        "link", "meta", "noembed", "noframes", "noscript", "object", "optgroup",
        "option", "script", "select", "style", "svg", "template", "textarea", "title",
    )
)  # fmt: skip
# Elements that nest without end, and make the parser look for an open paragraph.
_NESTED = re.compile(
    r"<(/?)(?:address|article|aside|blockquote|center|details|dialog|dir|div|dl|fieldset"
    r"|figcaption|figure|footer|form|header|hgroup|main|menu|nav|ol|pre|section|summary"
    r"|table|ul)\b[^<>]*>",
    re.IGNORECASE,
)
_INVISIBLE = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_SPACE = re.compile(r"\s+")


@dataclass(slots=True, eq=False)
class Element:
    """An element that shows, with *chars* of text, *linked* of them in its *links*.

    *marker* is what an item begins with, where it is not for its list to say.
    """

    tag: str
    attributes: Mapping[str, str | None] = field(default_factory=dict)
    children: list["Element | str"] = field(default_factory=list)
    chars: int = 0
    linked: int = 0
    links: int = 0
    marker: str = ""

    @classmethod
    def of(
        cls, tag: str, children: Iterable["Element | str"], **attributes: str
    ) -> "Element":
        """Return an element with *children*, their text counted."""
        made = cls(tag, attributes, list(children))
        for child in made.children:
            if isinstance(child, str):
                made.chars += len("".join(child.split()))
            else:
                made.chars += child.chars
        return made

    @property
    def own(self) -> int:
        """Return how many characters of text are in no link."""
        return self.chars - self.linked

    def named(self, name: str) -> str:
        """Return an attribute, or the empty string."""
        return self.attributes.get(name) or ""

    def elements(self) -> Iterator["Element"]:
        """Yield the elements below this one, in the order of the page."""
        waiting = [self]
        while waiting:
            element = waiting.pop()
            if element is not self:
                yield element
            waiting += [c for c in reversed(element.children) if isinstance(c, Element)]

    def text(
        self, left_out: frozenset["Element"] = frozenset(), *, ragged: bool = False
    ) -> str:
        """Return all text below this element on one line, or as it is if *ragged*."""
        parts: list[str] = []
        waiting: list[Element | str] = [self]
        while waiting:
            node = waiting.pop()
            if isinstance(node, str):
                parts.append(node)
            elif node.tag == "br":
                parts.append("\n")
            elif node not in left_out:
                waiting += reversed(node.children)
        text = "".join(parts)
        return text if ragged else _SPACE.sub(" ", text).strip()


@dataclass(frozen=True, slots=True)
class Tree:
    """A parsed page: its body, its title, and the names that it gives itself."""

    body: Element
    title: str
    names: Mapping[str, str]


def parsed(html: str) -> Tree:
    """Return a page as a tree of what shows."""
    parser = LexborHTMLParser(_flattened(html))
    title = parser.css_first("head > title")
    return Tree(
        body=_built(parser.body),
        title=_SPACE.sub(" ", title.text()).strip() if title else "",
        names={
            str(meta.attributes.get("property")): _SPACE.sub(" ", content).strip()
            for meta in parser.css("head > meta[property]")
            if (content := meta.attributes.get("content"))
        },
    )


def _built(body: LexborNode | None) -> Element:
    """Return what shows of a body, with the weight of its text counted."""
    root = Element("body")
    open_ = [root]
    linked = 0
    node = body.child if body is not None else None
    while node is not None:
        tag = node.tag or ""
        child: LexborNode | None = None
        if tag == "-text":
            text = node.text_content or ""
            open_[-1].children.append(text)
            chars = len("".join(text.split()))
            open_[-1].chars += chars
            open_[-1].linked += chars if linked else 0
        elif not _hidden(node, tag):
            element = Element(tag, node.attributes)
            open_[-1].children.append(element)
            child = node.child
            if child is not None:
                linked += tag == "a"
                open_.append(element)
        if child is not None:
            node = child
            continue
        while node is not None and node.next is None and len(open_) > 1:
            node = node.parent
            linked -= _closed(open_)
        node = node.next if node is not None else None
    return root


def _closed(open_: list[Element]) -> bool:
    """Count the last of *open_* in the one around it; return whether it is a link."""
    last = open_.pop()
    around = open_[-1]
    around.chars += last.chars
    around.linked += last.linked
    around.links += last.links + (last.tag == "a")
    return last.tag == "a"


def _hidden(node: LexborNode, tag: str) -> bool:
    """Return whether a browser shows nothing of an element."""
    if tag in _SILENT or tag.startswith("-"):
        return True
    attributes = node.attributes
    return "hidden" in attributes or bool(
        _INVISIBLE.search(attributes.get("style") or "")
    )


def _flattened(html: str) -> str:
    """Return *html* with blocks below a depth that no page reaches as lines.

    At each block the parser looks through all open elements for a paragraph: 40,000
    nested `div` took twelve seconds.
    """
    if html.count("<") <= MAX_DEPTH:
        return html
    depth = 0

    def shallow(tag: re.Match[str]) -> str:
        nonlocal depth
        if tag[1]:
            depth = max(0, depth - 1)
            return tag[0] if depth < MAX_DEPTH else "<br>"
        depth += 1
        return tag[0] if depth <= MAX_DEPTH else "<br>"

    return _NESTED.sub(shallow, html)
