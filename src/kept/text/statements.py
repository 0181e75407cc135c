"""Statements: what a passage says that can be quoted, without its markup.

A heading, a code block or the header of a table says nothing by itself. A sentence, an
item of a list and a row of a table do; a row is read as "header: value".
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from kept.text.sentences import sentences

_FENCE = re.compile(r"^[ \t]*(```|~~~)")
_HEADING = re.compile(r"^[ \t]{0,3}#{1,6}(?:\s|$)")
_UNDERLINE = re.compile(r"^[ \t]*(?:={3,}|-{3,}|~{3,}|\*{3,}|_{3,})[ \t]*$")
_RULE_OF_TABLE = re.compile(
    r"^[ \t]*\|?(?:[ \t]*:?-{2,}:?[ \t]*\|)+[ \t]*:?-*:?[ \t]*$"
)
_ITEM = re.compile(r"^[ \t]*(?:[-*+\u2022\u2013]|\d{1,3}[.)]|[a-z][.)]|>)[ \t]+")
_CELLS = re.compile(r"(?<!\\)\|")
_INLINE = (
    (re.compile(r"!\[([^\]]*)\]\([^)\s]*(?:\s[^)]*)?\)"), r"\1"),
    (re.compile(r"\[([^\]]+)\]\([^)\s]*(?:\s[^)]*)?\)"), r"\1"),
    (re.compile(r"(\*\*|__)(?=\S)(.+?)(?<=\S)\1"), r"\2"),
    (re.compile(r"(?<![\w*])\*(?=\S)([^*\n]+?)(?<=\S)\*(?![\w*])"), r"\1"),
    (re.compile(r"(?<![\w_])_(?=\S)([^_\n]+?)(?<=\S)_(?![\w_])"), r"\1"),
    (re.compile(r"`+([^`\n]+)`+"), r"\1"),
    (re.compile(r"\\([\\`*_{}\[\]()#+\-.!|<>])"), r"\1"),
)
_SPACE = re.compile(r"\s+")
FEWEST_WORDS = 2


@dataclass(frozen=True, slots=True)
class Statement:
    """Something that can be quoted: *text* without markup, and where it stands.

    *row* names the row of a table by its first cell, else it is empty.
    """

    text: str
    start: int
    end: int
    row: str = ""


@dataclass(frozen=True, slots=True)
class _Line:
    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


def statements(text: str) -> list[Statement]:
    """Return what *text* says, in reading order."""
    return list(_stated(text))


def statement_at(text: str, start: int, end: int) -> Statement | None:
    """Return the statement of *text* that holds most of ``text[start:end]``."""
    touched = [
        (min(one.end, end) - max(one.start, start), -one.start, one)
        for one in statements(text)
        if one.start < end and start < one.end
    ]
    return max(touched)[-1] if touched else None


def without_markup(text: str) -> str:
    """Return one line of text without the signs of Markdown."""
    for pattern, plain in _INLINE:
        text = pattern.sub(plain, text)
    return _SPACE.sub(" ", text).strip()


def _stated(text: str) -> Iterator[Statement]:
    lines = _lines(text)
    place = 0
    while place < len(lines):
        line = lines[place]
        if fence := _FENCE.match(line.text):
            place = _after_fence(lines, place, fence[1])
        elif _starts_table(lines, place):
            stop = place
            while stop < len(lines) and _cells(lines[stop].text):
                stop += 1
            yield from _rows(lines[place:stop])
            place = stop
        elif _silent(lines, place):
            place += 1
        else:
            stop = place + 1
            while stop < len(lines) and not _breaks(lines, stop):
                stop += 1
            yield from _sentences(text, lines[place].start, lines[stop - 1].end)
            place = stop


def _lines(text: str) -> list[_Line]:
    found: list[_Line] = []
    at = 0
    for line in text.splitlines(keepends=True):
        found.append(_Line(line.rstrip("\r\n"), at))
        at += len(line)
    return found


def _after_fence(lines: list[_Line], place: int, mark: str) -> int:
    """Return the place behind a code block; one that is not closed ends the text."""
    for after in range(place + 1, len(lines)):
        if lines[after].text.lstrip().startswith(mark):
            return after + 1
    return len(lines)


def _silent(lines: list[_Line], place: int) -> bool:
    """Return whether a line says nothing: empty, a heading, or the line under one."""
    text = lines[place].text
    if not text.strip() or _HEADING.match(text) or _UNDERLINE.match(text):
        return True
    following = lines[place + 1].text if place + 1 < len(lines) else ""
    # A heading with a line of signs under it; a paragraph's last line ends a sentence.
    return bool(
        _UNDERLINE.match(following)
        and (place == 0 or not lines[place - 1].text.strip())
        and not text.rstrip().endswith((".", "!", "?", ":", ";", ","))
    )


def _breaks(lines: list[_Line], place: int) -> bool:
    """Return whether a line begins something new."""
    text = lines[place].text
    return bool(
        _ITEM.match(text)
        or _FENCE.match(text)
        or _silent(lines, place)
        or _starts_table(lines, place)
    )


def _sentences(text: str, start: int, end: int) -> Iterator[Statement]:
    if item := _ITEM.match(text[start:end]):
        start += item.end()
    for one in sentences(text[start:end]):
        plain = without_markup(one.text)
        if len(plain.split()) >= FEWEST_WORDS or not plain.isascii():
            yield Statement(plain, start + one.start, start + one.end)


def _starts_table(lines: list[_Line], place: int) -> bool:
    """Return whether a table begins: a header, then a rule or a row as wide."""
    if place + 1 >= len(lines):
        return False
    head, below = _cells(lines[place].text), lines[place + 1].text
    if not head:
        return False
    return bool(_RULE_OF_TABLE.match(below)) or len(_cells(below)) == len(head)


def _cells(line: str) -> list[str]:
    """Return the cells of a row, none of a line that is not one."""
    if "|" not in line:
        return []
    bare = line.strip()
    inner = bare.removeprefix("|")
    inner = inner[:-1] if inner.endswith("|") and not inner.endswith("\\|") else inner
    cells = [without_markup(cell) for cell in _CELLS.split(inner)]
    return cells if len(cells) > 1 or bare.startswith("|") else []


def _rows(lines: list[_Line]) -> Iterator[Statement]:
    """Yield each row below the header as "header: value" pairs."""
    header = _cells(lines[0].text)
    for line in lines[1:]:
        if _RULE_OF_TABLE.match(line.text):
            continue
        cells = _cells(line.text)
        shown = [
            f"{name}: {value}" if name else value
            for name, value in zip(
                header + [""] * (len(cells) - len(header)), cells, strict=False
            )
            if value
        ]
        if shown:
            yield Statement("; ".join(shown), line.start, line.end, cells[0])
