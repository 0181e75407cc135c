"""HTML: a page as Markdown, with its title and without what leads around it."""

import re
from dataclasses import dataclass

from kept.text.readers.dom import Element, Tree, parsed
from kept.text.readers.main_content import MainContent, main_content
from kept.text.readers.markdown_writer import written

_SEPARATOR = re.compile(r"\s+(?:[|·•»«›‹]|::|[-–—])\s+|\s*[»|]\s*|\s*::\s*")  # noqa: RUF001 -- dashes of titles
_HEADINGS = ("h1", "h2", "h3")
_LETTERS = re.compile(r"[^\W_]+")
LONGEST_TITLE = 200


@dataclass(frozen=True, slots=True)
class Page:
    """A page's text and title, and what was left out of it.

    *share* is how much of the page's text the main content is; *whole* says that it was
    so little that the page is kept whole.
    """

    text: str
    title: str
    share: float = 1.0
    whole: bool = False

    @property
    def notes(self) -> tuple[str, ...]:
        """Say what was left out, or why nothing was."""
        if self.whole:
            return (f"kept whole: its main content is {self.share:.0%} of the page",)
        left_out = f"{1 - self.share:.0%}"
        return (f"{left_out} of the page left out",) if left_out != "0%" else ()


def read_page(html: str, *, whole_page: bool = False) -> Page:
    """Return the main content of a page, or all of it with *whole_page*."""
    tree = parsed(html)
    content = MainContent(tree.body) if whole_page else main_content(tree.body)
    text = written(content.root, content.left_out)
    title = _title(tree, content)
    return Page(text, title[:LONGEST_TITLE], content.share, content.whole)


def _title(tree: Tree, content: MainContent) -> str:
    """Return what a page is called, without the name of its site.

    That is the heading of the main content; else what of the declared title stands in a
    heading; else the declared title without its last part.
    """
    parts = [part.strip() for part in _SEPARATOR.split(tree.title) if part.strip()]
    site = tree.names.get("og:site_name", "")
    inside = _headings(content.root, content.left_out)
    first = next(iter(inside.get("h1", ())), "")
    if first and len(first) <= LONGEST_TITLE and first != site:
        others = {_key(one) for tag in _HEADINGS[1:] for one in inside.get(tag, ())}
        named_below = parts and _key(parts[0]) in others and first in parts[1:]
        return parts[0] if named_below else first
    anywhere = _headings(tree.body, frozenset())
    keys = {_key(one) for found in anywhere.values() for one in found}
    for part in (tree.title, *parts):
        if part and part != site and _key(part) in keys:
            return part
    named = tree.names.get("og:title", "")
    if named and _key(named) in _key(tree.title):
        return named
    if len(parts) > 1:
        return tree.title[: _last_separator(tree.title)].strip()
    return tree.title or next((one for found in inside.values() for one in found), "")


def _last_separator(title: str) -> int:
    return max(found.start() for found in _SEPARATOR.finditer(title))


def _headings(root: Element, left_out: frozenset[Element]) -> dict[str, list[str]]:
    """Return the headings below an element by their tags."""
    found: dict[str, list[str]] = {}
    waiting = [root]
    while waiting:
        element = waiting.pop()
        if element in left_out:
            continue
        if element.tag in _HEADINGS:
            if text := element.text(left_out):
                found.setdefault(element.tag, []).append(text)
            continue
        waiting += [c for c in reversed(element.children) if isinstance(c, Element)]
    return found


def _key(text: str) -> str:
    """Return the words of a title, as two writings of it share them."""
    return " ".join(_LETTERS.findall(text.casefold()))
