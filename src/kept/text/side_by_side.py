"""Two texts side by side: compared by line, and by word within a line."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, zip_longest

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
    """A line of one text; each piece says whether the other text lacks it."""

    number: int
    pieces: tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class LinePair:
    """Two lines beside each other, or one without a counterpart."""

    left: Side | None
    right: Side | None
    same: bool


@dataclass(frozen=True, slots=True)
class Block:
    """Consecutive rows; *folded* ones are equal and far from any change."""

    rows: tuple[LinePair, ...]
    folded: bool = False


@dataclass(frozen=True, slots=True)
class SideBySide:
    """Two texts beside each other; if *cut*, only their beginnings."""

    blocks: tuple[Block, ...]
    cut: bool

    @property
    def same(self) -> bool:
        """Whether nothing differs."""
        return all(row.same for block in self.blocks for row in block.rows)


def compared(left: str, right: str) -> SideBySide:
    """Compare two texts."""
    lefts, rights = left[:MOST_CHARS].splitlines(), right[:MOST_CHARS].splitlines()
    cut = max(len(left), len(right)) > MOST_CHARS
    cut = cut or max(len(lefts), len(rights)) > MOST_LINES
    rows = list(_rows(lefts[:MOST_LINES], rights[:MOST_LINES]))
    return SideBySide(tuple(_blocks(rows)), cut)


def _rows(lefts: Sequence[str], rights: Sequence[str]) -> Iterator[LinePair]:
    for _, a, b, c, d in _steps(lefts, rights):
        same = lefts[a:b] == rights[c:d]
        for place, (one, other) in enumerate(zip_longest(lefts[a:b], rights[c:d])):
            pieces = _pieces(one or "", other or "")
            yield LinePair(
                Side(a + place + 1, pieces[0]) if one is not None else None,
                Side(c + place + 1, pieces[1]) if other is not None else None,
                same,
            )


def _steps(lefts: Sequence[str], rights: Sequence[str]) -> Iterator[Step]:
    """Yield equal and changed ranges; adjacent deletions and insertions are joined."""
    opcodes = Indel.opcodes(lefts, rights)
    for same, group in groupby(opcodes, key=lambda step: step.tag == "equal"):
        steps = list(group)
        first, last = steps[0], steps[-1]
        yield same, first.src_start, last.src_end, first.dest_start, last.dest_end


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
    """Join changes with at most one word between them, which is easier to read."""

    def stays(numbered: tuple[int, Step]) -> bool:
        place, (same, start, end, _, _) = numbered
        between = 0 < place < len(steps) - 1
        return same and not (between and _few(words[start:end]))

    for same, group in groupby(enumerate(steps), key=stays):
        joined = [step for _, step in group]
        first, last = joined[0], joined[-1]
        yield same, first[1], last[2], first[3], last[4]


def _few(words: Sequence[str]) -> bool:
    return sum(word.strip().isalnum() for word in words) <= 1


def _blocks(rows: Sequence[LinePair]) -> Iterator[Block]:
    """Fold equal rows, except for a few around each change."""
    changed = [place for place, row in enumerate(rows) if not row.same]
    near = {
        place
        for change in changed
        for place in range(change - AROUND, change + AROUND + 1)
    }
    groups = groupby(
        enumerate(rows), key=lambda row: bool(changed) and row[0] not in near
    )
    for folded, group in groups:
        yield Block(tuple(row for _, row in group), folded)
