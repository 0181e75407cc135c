"""Comparing two texts side by side: line by line, and word by word within a line."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from rapidfuzz.distance import Indel

MOST_CHARS = 60_000
MOST_LINES = 2_000
MOST_WORDS = 4_000
AROUND = 2

_WORDS = re.compile(r"\s+|\w+|[^\w\s]")
Piece = tuple[str, bool]
Step = tuple[bool, int, int, int, int]


@dataclass(frozen=True, slots=True)
class Side:
    """A line of one text; each piece of it says whether the other lacks it."""

    number: int
    pieces: tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class Row:
    """Two lines beside each other, or one beside nothing."""

    left: Side | None
    right: Side | None
    same: bool


@dataclass(frozen=True, slots=True)
class Block:
    """Rows that belong together; *folded* ones are the same and far from a change."""

    rows: tuple[Row, ...]
    folded: bool = False


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two texts beside each other; *cut* says that only their beginnings are."""

    blocks: tuple[Block, ...]
    cut: bool

    @property
    def same(self) -> bool:
        """Whether nothing differs."""
        return all(row.same for block in self.blocks for row in block.rows)


def compared(left: str, right: str) -> Comparison:
    """Put two texts beside each other."""
    lefts, rights = left[:MOST_CHARS].splitlines(), right[:MOST_CHARS].splitlines()
    cut = max(len(left), len(right)) > MOST_CHARS
    cut = cut or max(len(lefts), len(rights)) > MOST_LINES
    rows = list(_rows(lefts[:MOST_LINES], rights[:MOST_LINES]))
    return Comparison(tuple(_blocks(rows)), cut)


def _rows(lefts: Sequence[str], rights: Sequence[str]) -> Iterator[Row]:
    for _, a, b, c, d in _steps(lefts, rights):
        same = lefts[a:b] == rights[c:d]
        for place, (one, other) in enumerate(zip_longest(lefts[a:b], rights[c:d])):
            pieces = _pieces(one or "", other or "")
            yield Row(
                Side(a + place + 1, pieces[0]) if one is not None else None,
                Side(c + place + 1, pieces[1]) if other is not None else None,
                same,
            )


def _steps(lefts: Sequence[str], rights: Sequence[str]) -> Iterator[Step]:
    """Yield what stays and what changes; a loss and a gain in one place are one."""
    held: tuple[int, int, int, int] | None = None
    for step in Indel.opcodes(lefts, rights):
        a, b = step.src_start, step.src_end
        c, d = step.dest_start, step.dest_end
        if step.tag == "equal":
            if held is not None:
                yield (False, *held)
                held = None
            yield True, a, b, c, d
        else:
            held = (a, b, c, d) if held is None else (held[0], b, held[2], d)
    if held is not None:
        yield (False, *held)


def _pieces(left: str, right: str) -> tuple[tuple[Piece, ...], tuple[Piece, ...]]:
    if left == right:
        return ((left, False),), ((right, False),)
    lefts, rights = _WORDS.findall(left), _WORDS.findall(right)
    if max(len(lefts), len(rights)) > MOST_WORDS:
        return ((left, True),), ((right, True),)
    gone: list[Piece] = []
    new: list[Piece] = []
    for same, a, b, c, d in _joined(list(_steps(lefts, rights)), lefts):
        gone.append(("".join(lefts[a:b]), not same))
        new.append(("".join(rights[c:d]), not same))
    return tuple(p for p in gone if p[0]), tuple(p for p in new if p[0])


def _joined(steps: Sequence[Step], words: Sequence[str]) -> Iterator[Step]:
    """Join changes with hardly a word between them, so that they can be read."""
    held: Step | None = None
    for place, (same, a, b, c, d) in enumerate(steps):
        between = same and 0 < place < len(steps) - 1
        if same and not (between and _hardly(words[a:b])):
            if held is not None:
                yield held
                held = None
            yield True, a, b, c, d
        else:
            held = (False, held[1] if held else a, b, held[3] if held else c, d)
    if held is not None:
        yield held


def _hardly(words: Sequence[str]) -> bool:
    return sum(word.strip().isalnum() for word in words) <= 1


def _blocks(rows: Sequence[Row]) -> Iterator[Block]:
    """Fold what is the same, save for a few rows around each change."""
    changed = [place for place, row in enumerate(rows) if not row.same]
    near = {
        place
        for change in changed
        for place in range(change - AROUND, change + AROUND + 1)
    }
    start = 0
    for place in range(1, len(rows) + 1):
        ended = place == len(rows)
        if ended or (place in near) != (start in near):
            folded = bool(changed) and start not in near
            yield Block(tuple(rows[start:place]), folded)
            start = place
