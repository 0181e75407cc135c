"""Chunking: a text cut into passages, none of it lost."""

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from kept.text.sections import (
    DEFAULT_SECTION_TAGS,
    MAX_HEADING_CHARS,
    Heading,
    Sections,
    heading_of,
    is_underline,
)

MAX_CHARS = 800

_FENCES = ("```", "~~~")
# One class of characters first: the search skips to it at the speed of C.
_SENTENCE_END = re.compile(
    r"[.!?…。！？｡\n](?:(?<=[。！？｡\n])[」』”’）]*|[.!?…]*[\"'”’)\]]*(?=\s))"  # noqa: RUF001 -- meant
)
_GAP = re.compile(r"\n\s*\n")
_MARKED_LINE = re.compile(r"^[ \t]*(?:#{1,6}\s|```|~~~)", re.MULTILINE)
_SOLID = re.compile(r"\S")
_JOINING = frozenset("\u200d\u200c\ufe0e\ufe0f")


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A passage: ``text[start:end]`` of what was cut, and its section's tags."""

    text: str
    tags: tuple[str, ...] = ()
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunking:
    """The passages of a text, and how much of it lies beyond the cap."""

    pieces: tuple[Piece, ...]
    chars_left_out: int = 0


@dataclass(frozen=True, slots=True)
class _Span:
    """A stretch that is kept together where it fits.

    The first *head* - *start* characters are headings, which are never parted
    from what follows them.
    """

    start: int
    head: int
    end: int
    tags: tuple[str, ...]


def chunk_text(
    text: str,
    *,
    max_chars: int = MAX_CHARS,
    max_chunks: int = 0,
    section_tags: Mapping[str, Sequence[str]] = DEFAULT_SECTION_TAGS,
) -> Chunking:
    """Cut *text* into passages of at most *max_chars* characters.

    Paragraphs stay whole where they fit, then sentences, then words. Passages
    beyond *max_chunks* are left out and counted; 0 lifts the cap.
    """
    if max_chars < 1 or max_chunks < 0:
        msg = f"max_chars is {max_chars} and max_chunks {max_chunks}; expected ≥ 1, ≥ 0"
        raise ValueError(msg)
    spans = _packed(text, _paragraphs(text, section_tags), max_chars)
    kept = tuple(
        Piece(text=text[s.start : s.end], tags=s.tags, start=s.start, end=s.end)
        for s in islice(spans, max_chunks or None)
    )
    beyond = next(spans, None)
    left_out = len(text.rstrip()) - beyond.start if beyond else 0
    return Chunking(pieces=kept, chars_left_out=left_out)


def sliding_windows(lines: Sequence[str], size: int = 8, step: int = 2) -> list[str]:
    """Return windows of *size* lines, *step* lines apart, and one for the tail.

    The tail window holds the last *size* lines, where the steps do not reach them.
    """
    if not lines:
        return []
    last = max(len(lines) - size, 0)
    starts = [*range(0, last + 1, step)]
    if starts[-1] != last:
        starts.append(last)
    return ["\n".join(lines[start : start + size]) for start in starts]


def _paragraphs(
    text: str, section_tags: Mapping[str, Sequence[str]]
) -> Iterator[_Span]:
    """Yield the paragraphs of *text*, each with the headings before it."""
    sections = Sections(section_tags)
    tags: tuple[str, ...] = ()
    span: _Span | None = None
    for line in _lines(text):
        if span and (line.opens or line.heading) and span.end > span.head:
            yield span
            span = None
        if line.heading:
            tags = sections.enter(line.heading)
        start = span.start if span else line.start
        head = line.end if line.heading else span.head if span else start
        span = _Span(start, head, line.end, tags)
    if span:
        yield span


@dataclass(frozen=True, slots=True)
class _Line:
    """A heading with its underline, or a stretch of other lines."""

    start: int
    end: int
    heading: Heading | None
    opens: bool


def _lines(text: str) -> Iterator[_Line]:
    """Yield headings, and what stands between them, paragraph by paragraph.

    Only paragraphs with Markdown marks are looked at line by line.
    """
    fenced = False
    for block, end in _blocks(text):
        opens = alone = True
        line_by_line = bool(_MARKED_LINE.search(text, block, end))
        start = block
        while start < end:
            stop = _line_end(text, start, end)
            line = text[start:stop].strip()
            fenced ^= line.startswith(_FENCES)
            following = text[stop + 1 : min(end, stop + MAX_HEADING_CHARS)]
            following = following.partition("\n")[0].strip()
            found = (
                None if fenced else heading_of(line, alone=alone, following=following)
            )
            if found and is_underline(following):
                stop = _line_end(text, stop + 1, end)
            elif not found and not line_by_line:
                stop = end
            yield _Line(start, start + len(text[start:stop].rstrip()), found, opens)
            opens, alone = False, found is not None
            start = _skip_space(text, stop)


def _blocks(text: str) -> Iterator[tuple[int, int]]:
    """Yield where the stretches between blank lines start and end."""
    start = _skip_space(text, 0)
    for gap in _GAP.finditer(text, start):
        yield start, gap.start()
        start = _skip_space(text, gap.end())
    yield start, len(text)


def _line_end(text: str, start: int, end: int) -> int:
    """Return where the line ends, at most *end*."""
    found = text.find("\n", start, end)
    return end if found < 0 else found


def _packed(text: str, spans: Iterator[_Span], max_chars: int) -> Iterator[_Span]:
    """Yield spans joined with their neighbours, or cut, so that they fit.

    Sections about something else start a new passage, and so does any section
    once the passage before it is half full.
    """
    held: _Span | None = None
    for span in spans:
        if held is None:
            held = span
        elif _parted(held, span, max_chars):
            yield held
            held = span
        else:
            held = _Span(held.start, held.head, span.end, held.tags)
        while held.end - held.start > max_chars:
            cut = _cut_point(text, held, max_chars)
            yield _Span(held.start, held.head, _trimmed_end(text, held, cut), held.tags)
            rest = _skip_space(text, cut)
            held = _Span(rest, max(rest, held.head), held.end, held.tags)
    if held and held.start < held.end:
        yield held


def _parted(held: _Span, span: _Span, max_chars: int) -> bool:
    """Return whether *span* has to start a new passage.

    A paragraph that is too long for any passage does not have to.
    """
    titled = span.head > span.start
    full = span.end - held.start > max_chars
    if span.tags != held.tags:
        return True
    if titled:
        return full or held.end - held.start > max_chars // 2
    return full and span.end - span.start <= max_chars


def _cut_point(text: str, span: _Span, max_chars: int) -> int:
    """Return where to cut: after a sentence, at a space, between two characters."""
    limit = span.start + max_chars
    head = _skip_space(text, span.head)
    head = head if head < limit else span.start
    cut = 0
    for mark in _SENTENCE_END.finditer(text, head, limit + 1):
        cut = mark.end() if mark.end() <= limit else cut
    if cut > head:
        return cut
    floor = max(span.start + max_chars // 2, head)
    if text[limit].isspace() or text[limit - 1].isspace():
        return limit
    if (cut := limit - len(text[floor:limit].rsplit(maxsplit=1)[-1])) > floor:
        return cut
    cut = limit
    while cut > floor and _joined(text, cut):
        cut -= 1
    return cut if cut > floor else limit


def _trimmed_end(text: str, span: _Span, end: int) -> int:
    """Return where the text before *end* stops to show."""
    return span.start + len(text[span.start : end].rstrip())


def _joined(text: str, at: int) -> bool:
    """Return whether the characters on both sides of a place are shown as one."""
    before, after = text[at - 1], text[at]
    return (
        before == "\u200d"
        or after in _JOINING
        or "\U0001f3fb" <= after <= "\U0001f3ff"
        or "\udc00" <= after <= "\udfff"
        or unicodedata.category(after).startswith("M")
    )


def _skip_space(text: str, at: int) -> int:
    """Return where the next character that shows stands."""
    solid = _SOLID.search(text, at)
    return solid.start() if solid else len(text)
