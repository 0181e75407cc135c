"""Differences: what was changed between two texts, and whether it carries meaning."""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Literal, NamedTuple

from rapidfuzz.distance import Indel, Levenshtein

from kept.ingest.boilerplate import AddedLine, lines_at, page_break, told_in
from kept.ingest.opposites import ARTICLES, meaningful
from kept.ingest.plain_words import (
    Markup,
    has_markup,
    names_in,
    plain_words,
    unseen_parts,
)

COPY_SHARE = 0.85
REWORDED_SHARE = 0.95
ALIGNED_WORDS = 4_000
ALIGNED_CELLS = 4_000_000
RUN_WORDS = 5
SWISS_WORDS = 3
TITLE_WORDS = 15
TITLE_CHARS = 200
NOTED_WORDS = 6
PLACES = 9
_SHARP = re.compile(r"\w*ß\w*")


class Change(NamedTuple):
    """Some words of one text that stand in the place of some of another."""

    old: Sequence[str]
    new: Sequence[str]
    place: Literal["start", "middle", "end"]


class ComparedText:
    """A text as it is compared with others; its words are read once, if at all."""

    def __init__(self, text: str, markup: Markup = "shown") -> None:
        self.text = text
        self._markup = markup
        self._readings: dict[Markup, ComparedText] = {}

    @cached_property
    def words(self) -> list[str]:
        """Its words, without markup, case and punctuation."""
        return plain_words(self.text, self._markup)

    @cached_property
    def joined(self) -> str:
        """Its words as one string, each between spaces."""
        return f" {' '.join(self.words)} "

    @cached_property
    def vocabulary(self) -> frozenset[str]:
        """Its different words, without articles."""
        return frozenset(self.words) - ARTICLES

    @cached_property
    def title(self) -> frozenset[str]:
        """The words of its first line, if that is short."""
        first = self.text.strip().partition("\n")[0][:TITLE_CHARS]
        words = plain_words(first, self._markup)
        return frozenset(words if len(words) <= TITLE_WORDS else ())

    @cached_property
    def common_words(self) -> frozenset[str]:
        """Its words that are no names."""
        return self.vocabulary - names_in(self.text)

    @cached_property
    def numbers(self) -> list[str]:
        """The numbers in it, in order."""
        return [word for word in self.words if word[-1].isdigit()]

    @cached_property
    def marked_up(self) -> bool:
        """Whether it has links, macros or tags, which a copy may lack."""
        return has_markup(self.text)

    @cached_property
    def sharp(self) -> Counter[str]:
        """Its words with "ß", which case folding makes "ss" of."""
        return Counter(_SHARP.findall(self.text.lower()) if "ß" in self.text else ())

    @cached_property
    def unseen(self) -> list[str]:
        """What a reader of it does not see."""
        return unseen_parts(self.text)

    def lines_at(self, words: Sequence[str], *, end: bool) -> list[AddedLine]:
        """Return the lines with which it begins or *end*s that have these *words*."""
        return lines_at(
            self.text, words, lambda part: plain_words(part, self._markup), end=end
        )

    def read(self, markup: Markup) -> "ComparedText":
        """Return the same text with its markup read in another way."""
        if markup not in self._readings:
            self._readings[markup] = ComparedText(self.text, markup)
        return self._readings[markup]


def differing(
    old: ComparedText,
    new: ComparedText,
    *,
    reworded: bool = False,
    in_order: bool = False,
) -> tuple[str, ...] | None:
    """Return the words by which two texts say something else; none in a copy.

    None stands for texts that have too little in common to be compared word by word.
    A word in another's place keeps texts apart, whatever it means; if *reworded*, it
    does only if it is a number, a name, a date, a unit or on another list of
    `opposites`. *in_order* asks for the words as they stand in the texts, which takes
    longer than finding that there are some.
    """
    how = _How(reworded=reworded, in_order=in_order)
    found = _differing(old, new, how)
    if found == () or not (old.marked_up or new.marked_up):
        return found
    readings: tuple[Markup, ...] = ("unlinked", "kept")
    if not (old.marked_up and new.marked_up):
        readings = ("dropped", *readings)
    pairs = ((old.read(markup), new.read(markup)) for markup in readings)
    return () if any(_differing(*pair, how) == () for pair in pairs) else found


def share_in_common(old: ComparedText, new: ComparedText) -> float:
    """Return how much of two texts is the same, in order, from 0 to 1.

    Beyond some thousand words runs of five are counted, whose cost does not grow with
    the square of the text.
    """
    if old.words == new.words:
        return 1.0
    if len(old.words) + len(new.words) <= ALIGNED_WORDS:
        return round(Indel.normalized_similarity(old.words, new.words), PLACES)
    ours, theirs = _runs(old.words), _runs(new.words)
    return round(2 * (ours & theirs).total() / (ours.total() + theirs.total()), PLACES)


class _How(NamedTuple):
    reworded: bool
    in_order: bool


def _differing(
    old: ComparedText, new: ComparedText, how: _How
) -> tuple[str, ...] | None:
    if not old.words or not new.words:
        return () if old.text == new.text else None
    respelt = _sharp_clash(old, new)
    if respelt or old.words == new.words:
        return respelt or _clash(old.unseen, new.unseen)
    shorter, longer = sorted((len(old.words), len(new.words)))
    least = REWORDED_SHARE if how.reworded else COPY_SHARE
    if 2 * shorter < least * (shorter + longer):
        return None
    # Texts of one template are compared by the thousand; most have words of their own
    # or other numbers, which is found at a tenth of the cost of aligning them.
    own = () if how.reworded else _words_of_both(old, new)
    own = own or _clash(old.numbers, new.numbers)
    if own and not how.in_order:
        return own
    changes = tuple(_changes(old, new))
    if not how.reworded:
        meant = _meant(old, new, changes)
    elif share_in_common(old, new) <= REWORDED_SHARE:
        return None
    else:
        meant = _listed(old, new, changes)
    return meant or own or _clash(old.unseen, new.unseen)


def _listed(
    old: ComparedText, new: ComparedText, changes: Sequence[Change]
) -> tuple[str, ...]:
    """Return the words among *changes* that are names or on one of the lists."""
    changed = [word for change in changes for word in (*change.old, *change.new)]
    names = names_in(old.text) | names_in(new.text)
    notable = names.union(meaningful(changed))
    return _noted(word for word in changed if word in notable)


def _meant(
    old: ComparedText, new: ComparedText, changes: Sequence[Change]
) -> tuple[str, ...]:
    """Return the words among *changes* that carry meaning."""
    around: list[AddedLine] = []
    inside: list[Sequence[str]] = []
    meant: list[str] = []
    for change in changes:
        ours, theirs = _without_articles(change)
        if ours and theirs:
            meant += (*ours, *theirs)
        elif not ours and not theirs:
            continue
        elif change.place == "middle":
            inside.append(ours or theirs)
        else:
            text, added = (old, change.old) if ours else (new, change.new)
            around += text.lines_at(added, end=change.place == "end")
    repeated = {word for line in around for word in line.words}
    for added in inside:
        if not page_break(added, repeated):
            meant += added
    if around and not meant:
        shorter = min(old, new, key=lambda text: len(text.words))
        meant += told_in(around, shorter.title, shorter.common_words)
    return _noted(meant)


def _without_articles(change: Change) -> tuple[Sequence[str], Sequence[str]]:
    """Return the words of a change but for articles that carry no meaning.

    "The" may go or come, and "a" may become "the". An "a" of its own is more: a few
    are not few, and vitamin A is one of the vitamins.
    """
    both = change.old and change.new
    plain = ARTICLES if both else ARTICLES - {"a"}
    ours = [word for word in change.old if word not in plain]
    theirs = [word for word in change.new if word not in plain]
    return ([], []) if ours == theirs else (ours, theirs)


def _words_of_both(old: ComparedText, new: ComparedText) -> tuple[str, ...]:
    """Return the words that only one text has, if each of the texts has some."""
    ours, theirs = old.vocabulary - new.vocabulary, new.vocabulary - old.vocabulary
    if not ours or not theirs:
        return ()
    half = NOTED_WORDS // 2
    found = [word for word in dict.fromkeys(old.words) if word in ours][:half]
    return (*found, *[w for w in dict.fromkeys(new.words) if w in theirs][:half])


def _sharp_clash(old: ComparedText, new: ComparedText) -> tuple[str, ...]:
    """Return words that one text has with "ß" and the other, perhaps, with "ss".

    "In Maßen" is not "in Massen". A text without any "ß" is a copy in capitals or in
    Swiss spelling, unless very few words had one.
    """
    if old.sharp == new.sharp:
        return ()
    if not (old.sharp and new.sharp):
        one, other = (old, new) if old.sharp else (new, old)
        if other.text.isupper() or one.sharp.total() >= SWISS_WORDS:
            return ()
    only = (old.sharp - new.sharp) + (new.sharp - old.sharp)
    respelt = (word.replace("ß", "ss") for word in only)
    known = old.vocabulary & new.vocabulary
    return _noted(word for word in respelt if word in known)


def _clash(ours: Sequence[str], theirs: Sequence[str]) -> tuple[str, ...]:
    """Return numbers by which texts differ that have each their own.

    They are read in order: two deadlines that changed places are another matter. Those
    that one of the texts has besides are judged where they stand.
    """
    shorter, longer = sorted((ours, theirs), key=len)
    rest = iter(longer)
    if all(number in rest for number in shorter):
        return ()
    only_ours, only_theirs = Counter(ours), Counter(theirs)
    only_ours, only_theirs = only_ours - only_theirs, only_theirs - only_ours
    if only_ours or only_theirs:
        half = NOTED_WORDS // 2
        return (*sorted(only_ours)[:half], *sorted(only_theirs)[:half])
    return next((a, b) for a, b in zip(ours, theirs, strict=True) if a != b)


def _changes(old: ComparedText, new: ComparedText) -> Iterator[Change]:
    """Yield what was changed, in order."""
    one, other = old.words, new.words
    if (at := new.joined.find(old.joined)) >= 0:
        before = new.joined[:at].count(" ")
        yield Change((), other[:before], "start")
        yield Change((), other[before + len(one) :], "end")
        return
    if (at := old.joined.find(new.joined)) >= 0:
        before = old.joined[:at].count(" ")
        yield Change(one[:before], (), "start")
        yield Change(one[before + len(other) :], (), "end")
        return
    for i, j, k, m in _blocks(one, other):
        place: Literal["start", "middle", "end"] = "middle"
        if i == k == 0:
            place = "start"
        elif j == len(one) and m == len(other):
            place = "end"
        yield Change(one[i:j], other[k:m], place)


def _blocks(
    one: Sequence[str], other: Sequence[str]
) -> Iterator[tuple[int, int, int, int]]:
    """Yield where two texts differ, between the words that are alike.

    Words that each text has once are aligned first, the longest run of them that is in
    the same order; what is left between them is aligned word by word.
    """
    start, begin = 0, 0
    for i, k in (*_anchors(one, other), (len(one), len(other))):
        yield from _gap(one, other, (start, i, begin, k))
        start, begin = i + 1, k + 1


def _gap(
    one: Sequence[str], other: Sequence[str], span: tuple[int, int, int, int]
) -> Iterator[tuple[int, int, int, int]]:
    i, j, k, m = span
    if i == j or k == m or (j - i) * (m - k) > ALIGNED_CELLS:
        if i < j or k < m:
            yield span
        return
    at: tuple[int, int] | None = None
    end = (i, k)
    for step in Levenshtein.opcodes(one[i:j], other[k:m]):
        if step.tag == "equal":
            if at is not None:
                yield at[0], end[0], at[1], end[1]
            at = None
        elif at is None:
            at = (i + step.src_start, k + step.dest_start)
        end = (i + step.src_end, k + step.dest_end)
    if at is not None:
        yield at[0], end[0], at[1], end[1]


def _anchors(one: Sequence[str], other: Sequence[str]) -> list[tuple[int, int]]:
    """Return the places of words that each text has once, in the same order in both."""
    once, there = Counter(one), Counter(other)
    places = {word: k for k, word in enumerate(other) if there[word] == 1}
    pairs = [
        (i, places[word])
        for i, word in enumerate(one)
        if once[word] == 1 and word in places
    ]
    # The longest increasing subsequence, by patience sorting.
    tops: list[int] = []
    piles: list[int] = []
    before: list[int | None] = []
    for place, (_, k) in enumerate(pairs):
        pile = bisect_left(tops, k)
        before.append(piles[pile - 1] if pile else None)
        tops[pile : pile + 1], piles[pile : pile + 1] = [k], [place]
    found: list[tuple[int, int]] = []
    last = piles[-1] if piles else None
    while last is not None:
        found.append(pairs[last])
        last = before[last]
    return found[::-1]


def _runs(words: Sequence[str]) -> Counter[tuple[str, ...]]:
    return Counter(zip(*(words[start:] for start in range(RUN_WORDS)), strict=False))


def _noted(words: Sequence[str] | Iterator[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(words))[:NOTED_WORDS]
