"""DOCX: what a Word file shows, in its order, as Markdown.

Content controls, tracked insertions, text boxes, notes, headers and footers are text;
tracked deletions, hidden text, placeholders and tables of contents are not. Numbers of
lists and headings are computed as Word does. (mammoth reads no headers and footers and
no numbers, python-docx no content controls and no insertions.)
"""

import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from kept.text.readers.docx_numbering import LEVELS, Numbering
from kept.text.readers.dom import Element
from kept.text.readers.markdown_writer import written
from kept.text.readers.packages import (
    Package,
    Xml,
    attribute,
    child,
    inner,
    local,
    opened,
)

_TRANSPARENT = frozenset(
    (
        "ins", "moveTo", "smartTag", "sdtContent", "fldSimple", "customXml", "dir",
        "bdo", "Choice", "rubyBase", "oMath", "oMathPara",
    )
)  # fmt: skip
_GONE = frozenset(("del", "moveFrom", "instrText", "delText", "pPr", "rPr", "sdtPr"))
_BREAKS = {"br": "\n", "cr": "\n", "tab": " ", "noBreakHyphen": "-"}
_NOTES = {"footnoteReference": "footnotes", "endnoteReference": "endnotes"}
_HEADING = re.compile(r"heading ([1-9])", re.IGNORECASE)
_CONTENTS = re.compile(r"(?:toc|table of (?:figures|authorities)) ?\d*", re.IGNORECASE)
_WORDS = re.compile(r"[^\W\d_]{2,}")
_PAGE_WORDS = frozenset(("page", "of", "seite", "von", "página", "de", "pagina", "di"))
DEEPEST_HEADING = 6
_FIRST_ROW = 0x20
_DIGITS = 9
# Halves of characters, and what only its own font can show.
_NO_CHARACTERS = range(0xD800, 0xF900)
_OFF = frozenset(("0", "false", "off", "none"))


@dataclass(frozen=True, slots=True)
class _Style:
    """What a paragraph style says about its paragraphs."""

    name: str = ""
    level: int | None = None
    numbering: tuple[str, int] | None = None


@dataclass
class _Document:
    """A document while it is read; *notes* wait for the end of their paragraph."""

    package: Package
    styles: Mapping[str, _Style]
    numbering: Numbering
    related: Mapping[str, tuple[str, str]]
    asides: Mapping[str, Mapping[str, Xml]]
    title: str = ""
    contents: int = 0
    waiting: list[Element] = field(default_factory=list)

    def blocks(self, content: Xml) -> Iterator[Element]:
        """Yield paragraphs, items and tables as elements, notes after what has them."""
        joined: Element | None = None
        for node in self._shown(content):
            if local(node) == "tbl":
                yield self.table(node)
            elif (block := self.paragraph(node)) is not None:
                if joined is not None:
                    joined.children += block.children
                    joined.chars += block.chars
                    block = joined
                # A deleted mark joins a paragraph with the next one.
                joined = block if _mark_deleted(node) else None
                if joined is None and block.chars:
                    yield block
            waiting, self.waiting = self.waiting, []
            yield from waiting
        if joined is not None and joined.chars:
            yield joined

    def _shown(self, content: Xml) -> Iterator[Xml]:
        """Yield the paragraphs and tables in *content*, out of what is around them."""
        for node in content:
            name = local(node)
            if name in ("p", "tbl"):
                yield node
            elif name == "AlternateContent":
                yield from self._shown(inner(node, "Choice"))
            elif name in _TRANSPARENT or (name == "sdt" and self._is_text(node)):
                yield from self._shown(node)

    def paragraph(self, node: Xml) -> Element | None:
        """Return a paragraph as a heading, an item or a paragraph."""
        properties = child(node, "pPr")
        style = self.styles.get(_value(properties, "pStyle") or "", _Style())
        if _CONTENTS.fullmatch(style.name):
            self.contents += 1
            return None
        inline = Element.of("p", self._inline(node))
        text = inline.text()
        label, place = self._label(properties, style)
        level = _level(properties) if _level(properties) is not None else style.level
        if style.name.casefold() == "title" and text:
            self.title = self.title or text
            inline.tag = "h1"
        elif level is not None:
            inline.tag = f"h{min(level + 1, DEEPEST_HEADING)}"
            if label and text:
                inline.children.insert(0, f"{label} ")
        elif label is not None:
            inline.tag = "li"
            inline.marker = f"{'  ' * place}{label or '-'} "
        return inline

    def table(self, node: Xml) -> Element:
        """Return a table; cells that go on from above are one with that cell."""
        look = child(node, "tblPr", "tblLook")
        headed = _headed(look)
        table = Element("table")
        open_: dict[int, Element] = {}
        for place, row in enumerate(_rows(node)):
            properties = child(row, "trPr")
            if child(properties, "del") is not None:
                continue
            header = _on(properties, "tblHeader") or (headed and place == 0)
            made = Element("tr")
            column = _number(_value(properties, "gridBefore"))
            if column:
                made.children.append(Element("td", {"colspan": str(column)}))
            for cell in _cells(row):
                column = self._cell(cell, column, made, open_, header=header)
            table.children.append(made)
        return table

    def _cell(
        self,
        node: Xml,
        column: int,
        row: Element,
        open_: dict[int, Element],
        *,
        header: bool,
    ) -> int:
        """Add a cell to a row, and return the column after it."""
        properties = child(node, "tcPr")
        span = max(1, _number(_value(properties, "gridSpan")))
        merge = child(properties, "vMerge")
        above = open_.get(column)
        goes_on = merge is not None and attribute(merge, "val") != "restart"
        content = list(self.blocks(node))
        if goes_on and above is not None:
            rows = int(above.named("rowspan") or "1") + 1
            above.attributes = {**above.attributes, "rowspan": str(rows)}
            above.children += content
            return column + span
        tag = "th" if header else "td"
        cell = Element.of(tag, content, colspan=str(span))
        row.children.append(cell)
        if merge is not None:
            open_[column] = cell
        else:
            open_.pop(column, None)
        return column + span

    def _inline(self, node: Xml) -> Iterator[Element | str]:
        """Yield the text of a paragraph, with links and notes in their places."""
        for one in node:
            name = local(one)
            if name == "r":
                yield from self._run(one)
            elif name == "t":
                yield one.text or ""
            elif name == "hyperlink":
                kind, target = self.related.get(attribute(one, "id") or "", ("", ""))
                href = target if kind == "hyperlink" else ""
                yield Element.of("a", self._inline(one), href=href)
            elif name == "AlternateContent":
                yield from self._inline(inner(one, "Choice"))
            elif name not in _GONE and (name != "sdt" or self._is_text(one)):
                # Insertions, controls and smart tags, and the parts of formulas.
                yield from self._inline(one)

    def _run(self, run: Xml) -> Iterator[Element | str]:
        properties = child(run, "rPr")
        if _on(properties, "vanish"):
            return
        content = list(self._run_content(run))
        struck = _on(properties, "strike") or _on(properties, "dstrike")
        if struck:
            yield Element.of("s", content)
        elif _value(properties, "vertAlign") == "superscript":
            yield Element.of("sup", content)
        else:
            yield from content

    def _run_content(self, run: Xml) -> Iterator[Element | str]:
        for one in run:
            name = local(one)
            if name == "t":
                yield one.text or ""
            elif name in _BREAKS:
                yield Element("br") if _BREAKS[name] == "\n" else _BREAKS[name]
            elif name == "sym":
                yield _symbol(one)
            elif name in _NOTES:
                yield self._reference(name, attribute(one, "id") or "")
            elif name in ("drawing", "pict", "AlternateContent", "object"):
                yield from self._drawn(inner(one, "Choice"))
            elif name == "ruby":
                yield from self._inline(inner(one, "rubyBase"))
                yield Element.of("rt", self._inline(inner(one, "rt")))

    def _drawn(self, drawing: Xml) -> Iterator[Element | str]:
        """Yield the description of a picture; text boxes follow the paragraph."""
        for node in drawing.iter():
            name = local(node)
            if name == "docPr" and (described := node.get("descr")):
                yield Element("img", {"alt": described}, chars=len(described))
            elif name == "txbxContent":
                # A list of its own: reading the blocks yields what waits, too.
                boxed = list(self.blocks(node))
                self.waiting += boxed

    def _reference(self, name: str, key: str) -> str:
        """Return the mark of a note, whose text follows the paragraph."""
        note = self.asides.get(_NOTES[name], {}).get(key)
        if note is None:
            return ""
        mark = f"[^{key}]" if name == "footnoteReference" else f"[^e{key}]"
        related, self.related = self.related, {}
        blocks = list(self.blocks(note))
        self.related = related
        if blocks:
            blocks[0].children.insert(0, f"{mark}: ")
        self.waiting += blocks
        return mark

    def _label(self, properties: Xml | None, style: _Style) -> tuple[str | None, int]:
        """Return the label of a paragraph in a list, and how deep it is."""
        given = child(properties, "numPr")
        number, place = style.numbering or ("", 0)
        if given is not None:
            number = _value(given, "numId") or number
            place = _number(_value(given, "ilvl") or str(place))
        if number in ("", "0"):
            return None, 0
        return self.numbering.label(number, place), min(place, LEVELS)

    def _is_text(self, control: Xml) -> bool:
        """Return whether a control holds more than a prompt or a table of contents."""
        properties = child(control, "sdtPr")
        gallery = _value(child(properties, "docPartObj"), "docPartGallery") or ""
        if _CONTENTS.match(gallery):
            self.contents += 1
            return False
        return not _on(properties, "showingPlcHdr")


def read_docx(data: bytes, source: str) -> tuple[str, str, tuple[str, ...]]:
    """Return the text of a Word file in its order, its title, and what was left out."""
    with opened(data, source, "Word") as package:
        parts = package.related("")
        names = [name for kind, name in parts.values() if kind == "officeDocument"]
        body = child(package.xml(names[0]) if names else None, "body")
        if body is None:
            msg = "there is no document in it"
            raise ValueError(msg)
        document = _document(package, names[0])
        content = list(document.blocks(body))
        above = list(_margins(document, body, "headerReference"))
        below = list(_margins(document, body, "footerReference"))
        text = written(Element("body", children=_lists([*above, *content, *below])))
        title = _declared_title(package, parts) or document.title
    notes = ("table of contents left out",) if document.contents else ()
    return text, title, notes


def _document(package: Package, name: str) -> _Document:
    """Return a document with the parts that its main part refers to."""
    related = package.related(name)
    roots = {
        kind: package.xml(part)
        for kind, part in related.values()
        if kind in ("styles", "numbering", "footnotes", "endnotes")
    }
    return _Document(
        package=package,
        styles=_styles(roots.get("styles")),
        numbering=Numbering.of(roots.get("numbering")),
        related=related,
        asides={
            kind: {
                attribute(note, "id") or "": note
                for note in _nodes(roots.get(kind))
                if attribute(note, "type") in (None, "normal")
            }
            for kind in _NOTES.values()
        },
    )


def _nodes(root: Xml | None) -> Iterator[Xml]:
    """Yield the elements of a part that may not be there."""
    if root is not None:
        yield from root


def _styles(root: Xml | None) -> dict[str, _Style]:
    """Return the paragraph styles with what they take from those they are based on."""
    nodes = {
        attribute(node, "styleId") or "": node
        for node in _nodes(root)
        if local(node) == "style"
    }
    return {key: _style(key, nodes) for key in nodes}


def _style(key: str, nodes: Mapping[str, Xml]) -> _Style:
    name = _value(nodes[key], "name") or ""
    level: int | None = None
    number, place = "", None
    seen: set[str] = set()
    while key in nodes and key not in seen:
        seen.add(key)
        node = nodes[key]
        properties = child(node, "pPr")
        listed = child(properties, "numPr")
        number = number or _value(listed, "numId") or ""
        if place is None and (given := _value(listed, "ilvl")) is not None:
            place = _number(given)
        if level is None:
            heading = _HEADING.fullmatch(_value(node, "name") or "")
            level = int(heading[1]) - 1 if heading else _level(properties)
        key = _value(node, "basedOn") or ""
    return _Style(name, level, (number, place or 0) if number else None)


def _margins(document: _Document, body: Xml, name: str) -> Iterator[Element]:
    """Yield what headers or footers say, each once; page numbers say nothing."""
    said: set[str] = set()
    inner = document.related
    for section in body.iter():
        if local(section) != "sectPr":
            continue
        for reference in section:
            kind = attribute(reference, "type")
            if local(reference) != name or (
                kind == "first" and not _on(section, "titlePg")
            ):
                continue
            _, part = inner.get(attribute(reference, "id") or "", ("", ""))
            root = document.package.xml(part) if part else None
            if root is None:
                continue
            document.related = document.package.related(part)
            for block in document.blocks(root):
                text = block.text()
                words = {word.casefold() for word in _WORDS.findall(text)}
                if words - _PAGE_WORDS and text not in said:
                    said.add(text)
                    yield block
            document.related = inner


def _lists(blocks: list[Element]) -> list[Element | str]:
    """Return *blocks* with items that follow one another as lists."""
    found: list[Element | str] = []
    for block in blocks:
        if block.tag != "li":
            found.append(block)
        elif found and isinstance(last := found[-1], Element) and last.tag == "ul":
            last.children.append(block)
        else:
            found.append(Element("ul", children=[block]))
    return found


def _declared_title(package: Package, parts: Mapping[str, tuple[str, str]]) -> str:
    for kind, part in parts.values():
        if kind == "core-properties" and (root := package.xml(part)) is not None:
            title = child(root, "title")
            return (title.text or "").strip() if title is not None else ""
    return ""


def _rows(table: Xml) -> Iterator[Xml]:
    """Yield the rows of a table, those in content controls too."""
    for node in table:
        if local(node) == "tr":
            yield node
        elif local(node) in ("sdt", *_TRANSPARENT):
            yield from _rows(node)


def _cells(row: Xml) -> Iterator[Xml]:
    for node in row:
        if local(node) == "tc":
            yield node
        elif local(node) in ("sdt", *_TRANSPARENT):
            yield from _cells(node)


def _headed(look: Xml | None) -> bool:
    """Return whether a table's style sets its first row apart."""
    first = attribute(look, "firstRow")
    if first is not None:
        return first not in _OFF
    try:
        return bool(int(attribute(look, "val") or "0", 16) & _FIRST_ROW)
    except ValueError:
        return False


def _level(properties: Xml | None) -> int | None:
    given = _value(properties, "outlineLvl")
    level = _number(given) if given is not None else LEVELS
    return level if level < LEVELS else None


def _mark_deleted(paragraph: Xml) -> bool:
    return child(paragraph, "pPr", "rPr", "del") is not None


def _on(properties: Xml | None, name: str) -> bool:
    node = child(properties, name)
    return node is not None and (attribute(node, "val") or "on") not in _OFF


def _value(node: Xml | None, name: str) -> str | None:
    return attribute(child(node, name), "val")


def _number(given: str | None) -> int:
    return int(given) if given and given.isdecimal() and len(given) <= _DIGITS else 0


def _symbol(node: Xml) -> str:
    """Return a character of a symbol font; those in the private area show nothing."""
    try:
        code = int(attribute(node, "char") or "", 16)
    except ValueError:
        return ""
    shown = 0 < code <= sys.maxunicode and code not in _NO_CHARACTERS
    return chr(code) if shown else ""
