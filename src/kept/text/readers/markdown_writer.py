"""Writing Markdown: a tree of elements as text that keeps its structure.

Terms of a definition list stand above their definitions (``: …``), code is fenced,
tables have their header row, and what belongs to an item is indented below it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import PurePosixPath
from urllib.parse import urlsplit

from kept.text.readers.dom import Element
from kept.text.readers.grid import Cell, as_table

LONGEST_TARGET = 300
LONGEST_NUMBER = 9
_HEADINGS = {f"h{level}": f"{'#' * level} " for level in range(1, 7)}
_BLOCKS = frozenset(_HEADINGS) | frozenset(
    (
        "address", "article", "aside", "blockquote", "body", "caption", "center",
        "details", "dialog", "dir", "div", "dl", "fieldset", "figcaption", "figure",
        "footer", "form", "header", "hgroup", "hr", "legend", "main", "menu", "nav",
        "ol", "p", "pre", "search", "section", "summary", "table", "tbody", "td",
        "tfoot", "th", "thead", "tr", "ul",
    )
)  # fmt: skip
# A heading in a note, or below an item, opens no section of the page.
_NOTE = re.compile(
    r"(?:\w+-)?(?:note|tip|hint|warning|important|caution|danger|admonition)(?:-\w+)?",
    re.IGNORECASE,
)
_LISTS = frozenset(("ul", "ol", "menu", "dir"))
_INLINE = frozenset(("br", "a", "img", "sup", "rp"))
_BEFORE = {"rt": "(", "q": "“", "del": "~~", "s": "~~", "strike": "~~"}
_AFTER = {**_BEFORE, "rt": ")", "q": "”"}
_SCHEMES = frozenset(("http", "https", "mailto", "tel", "ftp"))
_PAGES = frozenset(("", ".html", ".htm", ".php", ".asp", ".aspx", ".jsp", ".cgi"))
_SPACE = re.compile(r"[ \t\n\r\f\v]+")
_LANGUAGE = re.compile(r"(?:^|\s)(?:language|lang|highlight|brush:?)[-_ ]([\w+#-]+)")
_FENCES = re.compile(r"`{3,}")
_DECORATION = re.compile(
    r"(?:\W|\d|logo|icons?|image|img|photo|picture|avatar|spacer|banner|thumbnail|bullet"
    r"|next|prev(?:ious)?|home|up|\w+\.(?:png|jpe?g|gif|svg|webp))*",
    re.IGNORECASE,
)


def written(root: Element, left_out: frozenset[Element] = frozenset()) -> str:
    """Return the text below *root* as Markdown, without what is *left_out*."""
    writer = _Writer(left_out)
    waiting: list[tuple[Element | str, bool]] = [(root, True)]
    while waiting:
        node, entering = waiting.pop()
        if isinstance(node, str):
            writer.text(node)
        elif not entering:
            writer.leave(node)
        elif node not in left_out and writer.enter(node):
            waiting.append((node, False))
            waiting += [(child, True) for child in reversed(node.children)]
    return "".join(writer.parts).strip()


@dataclass(slots=True)
class _Writer:
    """Writes piece by piece; what is between two lines is written with the next.

    *gap* is how many line ends are due. *marker* and *heading* are what the next line
    begins with, *indent* is how far the lines of the open items stand in.
    """

    left_out: frozenset[Element]
    parts: list[str] = field(default_factory=list)
    numbers: list[Iterator[int] | None] = field(default_factory=list)
    indents: list[int] = field(default_factory=list)
    indent: int = 0
    marker: str = ""
    heading: str = ""
    gap: int = 0
    noted: int = 0
    after_term: bool = False

    def enter(self, element: Element) -> bool:
        """Begin an element; return whether what is below it is still to be written."""
        tag = element.tag
        if tag in _BLOCKS:
            return self._begin(element)
        if tag in _INLINE:
            return self._inline(element)
        match tag:
            case "li":
                self._break(1)
                self._mark(self._bullet(element))
            case "dt":
                self._break(1 if self.after_term else 2)
            case "dd":
                self._break(1)
                self._mark(": ")
                self.after_term = False
            case _ if tag in _BEFORE and element.chars:
                self._say(_BEFORE[tag])
        return True

    def _inline(self, element: Element) -> bool:
        match element.tag:
            case "br":
                self._break(1)
            case "a":
                return not self._linked(element)
            case "img":
                self._pictured(element)
            case "sup" if element.chars:
                self._raised(element)
        return False

    def leave(self, element: Element) -> None:
        """End an element."""
        tag = element.tag
        if tag in _LISTS:
            self.numbers.pop()
        if tag in _BLOCKS:
            self.heading = ""
            self.noted -= _is_note(element)
            self._break(1 if tag in _LISTS and self.numbers else 2)
        elif tag in ("li", "dd"):
            self.indent -= self.indents.pop()
            self.marker = ""
            self._break(1)
        elif tag == "dt":
            self._break(1)
            self.after_term = True
        elif tag in _AFTER and element.chars:
            self._say(_AFTER[tag])

    def text(self, text: str) -> None:
        """Write text of the page, its white space as a browser shows it."""
        text = _SPACE.sub(" ", text)
        if self.gap or self.marker or not self.parts or self.parts[-1][-1:] in " \n":
            text = text.lstrip(" ")
        if text:
            self._say(text)

    def _begin(self, element: Element) -> bool:
        tag = element.tag
        self._break(1 if tag in _LISTS and self.numbers else 2)
        if tag in _LISTS:
            self.numbers.append(_numbers(element))
        self.noted += _is_note(element)
        if tag in _HEADINGS and not self.noted and not self.indent:
            self.heading = _HEADINGS[tag]
        if tag == "pre":
            self._lines(_fenced(element, self.left_out))
            return False
        if tag == "table" and not _is_layout(element):
            self._lines(_table(element, self.left_out))
            return False
        return True

    def _bullet(self, element: Element) -> str:
        if element.marker:
            return element.marker
        numbers = self.numbers[-1] if self.numbers else None
        if numbers is None:
            return "- "
        given = element.named("value").strip()
        if given.isdecimal() and len(given) <= LONGEST_NUMBER:
            numbers = self.numbers[-1] = count(int(given))
        return f"{next(numbers)}. "

    def _mark(self, marker: str) -> None:
        """Begin the next line with *marker*, and indent the lines after it."""
        self.marker += marker
        self.indents.append(len(marker))
        self.indent += len(marker)

    def _break(self, lines: int) -> None:
        """See to it that the next text is so many lines further down."""
        if self.parts and not self.marker:
            self.gap = max(self.gap, lines)

    def _lines(self, lines: list[str]) -> None:
        """Write lines as they are, below one another."""
        for line in lines:
            self._say(line)
            self._break(1)

    def _say(self, text: str) -> None:
        if self.gap or self.marker or not self.parts:
            if self.gap and self.parts[-1].endswith(" "):
                self.parts[-1] = self.parts[-1].rstrip(" ")
            inset = self.indent - len(self.marker)
            begin = " " * inset + self.marker + self.heading if text else ""
            text = "\n" * self.gap + begin + text
            self.marker, self.heading, self.gap = "", "", 0
        self.parts.append(text)

    def _linked(self, link: Element) -> bool:
        """Write a link with its target, if that says anything; return whether so."""
        target = _target(link)
        if not target:
            return False
        text = _flat(Element("span", children=link.children), self.left_out)
        if not text:
            return False
        if text.casefold() in target.casefold():
            self.text(text)
        else:
            self.text(" " if link.text(ragged=True)[:1].isspace() else "")
            self.text(f"[{text}]({target})")
        return True

    def _pictured(self, image: Element) -> None:
        described = " ".join(image.named("alt").split())
        if described and not _DECORATION.fullmatch(described):
            self.text(f"![{described}]")

    def _raised(self, element: Element) -> None:
        """Write a power as one: 10⁶ is not 106."""
        text = _flat(Element("span", children=element.children), self.left_out)
        before = self.parts[-1][-1:] if self.parts and not self.gap else ""
        power = before.isalnum() and text.lstrip("-−+").isalnum()  # noqa: RUF001 -- a minus
        self.text(f"^{text}" if power and not element.links else text)


def _is_note(element: Element) -> bool:
    return any(map(_NOTE.fullmatch, element.named("class").split()))


def _flat(element: Element, left_out: frozenset[Element]) -> str:
    """Return what is below an element on one line."""
    return " ".join(written(element, left_out).split())


def _numbers(element: Element) -> Iterator[int] | None:
    """Return the numbers of a list's items, if it has numbers."""
    if element.tag != "ol":
        return None
    start = element.named("start").strip()
    return count(int(start) if re.fullmatch(r"-?\d{1,9}", start) else 1)


def _fenced(element: Element, left_out: frozenset[Element]) -> list[str]:
    """Return code between fences that it does not hold."""
    text = element.text(left_out, ragged=True).strip("\n").rstrip()
    if not text.strip():
        return []
    longest = max(map(len, _FENCES.findall(text)), default=2)
    fence = "`" * (longest + 1)
    names = [element, *element.elements()]
    found = (_LANGUAGE.search(one.named("class")) for one in names)
    language = next((match[1] for match in found if match), "")
    return [fence + language, *text.splitlines(), fence]


def _rows(table: Element) -> list[list[Element]]:
    """Return the cells of a table, row by row."""
    return [
        [c for c in row.children if isinstance(c, Element) and c.tag in ("td", "th")]
        for row in table.elements()
        if row.tag == "tr"
    ]


def _is_layout(table: Element) -> bool:
    """Return whether a table only places blocks beside one another."""
    if table.named("role") in ("presentation", "none"):
        return True
    if any(one.tag == "table" or one.tag in _HEADINGS for one in table.elements()):
        return True
    rows = [row for row in _rows(table) if row]
    return len(rows) <= 1 or max(map(len, rows)) <= 1


def _table(table: Element, left_out: frozenset[Element]) -> list[str]:
    """Return a table below its caption."""
    in_heads = {
        cell
        for part in table.elements()
        if part.tag == "thead"
        for row in _rows(part)
        for cell in row
    }
    cells = [
        [
            Cell(
                text=_flat(cell, left_out),
                columns=_span(cell, "colspan"),
                rows=_span(cell, "rowspan"),
                heading=cell.tag == "th" or cell in in_heads,
            )
            for cell in row
            if cell not in left_out
        ]
        for row in _rows(table)
    ]
    captions = [one for one in table.elements() if one.tag == "caption"]
    named = [_flat(one, left_out) for one in captions[:1]]
    return [*filter(None, named), *as_table(cells)]


def _span(cell: Element, name: str) -> int:
    given = cell.named(name).strip()
    return int(given) if given.isdecimal() and len(given) <= LONGEST_NUMBER else 1


def _target(link: Element) -> str:
    """Return where a link leads, if that says more than its text.

    Pages of the same site do not; documents to download and other sites do.
    """
    href = link.named("href").strip()
    if not href or len(href) > LONGEST_TARGET or re.search(r"[\s()<>]", href):
        return ""
    try:
        parts = urlsplit(href)
    except ValueError:
        return ""
    if parts.scheme in _SCHEMES:
        return href.partition(":")[2] if parts.scheme in ("mailto", "tel") else href
    kind = PurePosixPath(parts.path).suffix.casefold()
    return href if not parts.scheme and kind not in _PAGES else ""
