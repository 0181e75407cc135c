"""Duplicates: whether a text is already here, and by which rule we know."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import Levenshtein

from kept.ingest.receipts import Rule, Similarity
from kept.kernel.signals import PLACES

PREFIX_SLACK = 32
EDIT_BAND = 0.02
EDIT_SIMILARITY = 0.95
OFF = 1.0
EDITED_CHARS = 20_000
RUN_WORDS = 5
NOTED_REJECTED = 16
NOTED_MISSES = 8
REMEMBERED_CHARS = 8_000_000
_NOT_ALIKE = EDIT_SIMILARITY - 0.01
_AT_ONCE = 256
_MONTHS = (
    "january february march april may june july august september october november "
    "december jan feb mar apr jun jul aug sept sep oct nov dec januar februar märz mai "
    "juni juli oktober dezember janvier février mars avril juin juillet août septembre "
    "octobre novembre décembre enero febrero marzo abril mayo junio julio agosto "
    "septiembre octubre noviembre diciembre"
).replace(" ", "|")
_NUMBER = re.compile(
    rf"\d+(?:[.,:/-]\d+)*|\b(?:{_MONTHS})\b(?=\.?\s?\d)"
    rf"|(?:(?<=\d[\s.])|(?<=\d(?:st|nd|rd|th)\s))\s?(?:{_MONTHS})\b",
    re.IGNORECASE,
)
_PUNCTUATION = re.compile(r"[^\w\s]+")

Measured = TypeVar("Measured", str, list[str])


@dataclass(frozen=True, slots=True, kw_only=True)
class DuplicateRules:
    """When two documents count as one.

    *cosine* is the threshold for the openings; 1.0 switches near-duplicate reuse
    off. *newest* limits the comparison to that many latest documents (0: all that
    the index finds). *mean_of* compares the mean of that many first chunks when the
    first alone is not near enough (0: never). *normalised* compares texts again
    without case and punctuation. *same_numbers* refuses to merge documents whose
    numbers or months differ, unless one merely has more of them.
    """

    cosine: float
    newest: int = 0
    mean_of: int = 0
    normalised: bool = False
    same_numbers: bool = True

    @property
    def on(self) -> bool:
        """Whether near duplicates are looked for at all."""
        return self.cosine < OFF


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """How a document begins, which is where the search for duplicates begins."""

    document_id: str
    text: str
    vector: NDArray[np.float32] = field(compare=False, repr=False)
    mean: NDArray[np.float32] | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SoughtText:
    """A text whose like is looked for, *without* the document it was before."""

    type: str
    opening: Opening
    without: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """Two documents that are one, by *rule*, with the numbers compared."""

    document_id: str
    rule: Rule
    similarity: float
    evidence: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class DuplicateVerdict:
    """The match, if there is one, and what was compared on the way.

    That is what was accepted and the nearest of what was not; *more_misses* counts
    the near misses that are left out.
    """

    match: Match | None = None
    near_misses: tuple[Mapping[str, Any], ...] = ()
    more_misses: int = 0
    compared: tuple[Similarity, ...] = ()


def near_duplicate(
    opening: Opening,
    text: str,
    others: Sequence[Opening],
    rules: DuplicateRules,
    text_of: Callable[[str], str],
) -> DuplicateVerdict:
    """Hold a document against *others* in their order; the first that passes wins."""
    return Comparing(rules, text_of)(opening, text, others)


class Comparing:
    """Holds texts against others, of which *text_of* tells the whole text.

    A shared opening is not a shared document: what the openings suggest is
    confirmed on the whole text, and is noted as a near miss if that fails. Texts of
    one template nearly miss each other by the thousand, so the nearest are noted.
    """

    def __init__(self, rules: DuplicateRules, text_of: Callable[[str], str]) -> None:
        self._rules = rules
        self._text_of = text_of
        self._remembered: dict[str, _Whole] = {}
        self._room = REMEMBERED_CHARS

    def __call__(
        self, opening: Opening, text: str, others: Sequence[Opening]
    ) -> DuplicateVerdict:
        """Hold a document against *others* in their order; the first that passes wins.

        *text* is its whole text.
        """
        whole = _Whole(text, self._rules)
        rejected: list[_Seen] = []
        misses: list[_Seen] = []
        for other, cosine in zip(others, _cosines(opening.vector, others), strict=True):
            seen = _seen(opening, other, cosine, self._rules)
            if seen.by is not None:
                if whole.same_as(self._whole(other.document_id)):
                    return self._verdict(opening, whole, rejected, misses, seen)
                misses.append(seen)
            rejected.append(seen)
        return self._verdict(opening, whole, rejected, misses)

    def _verdict(
        self,
        opening: Opening,
        whole: "_Whole",
        rejected: Sequence["_Seen"],
        misses: Sequence["_Seen"],
        found: "_Seen | None" = None,
    ) -> DuplicateVerdict:
        """Note what was *found*, and the nearest of what was not the same."""

        def evidence(seen: _Seen) -> dict[str, Any]:
            theirs = self._whole(seen.other.document_id)
            return _suspected(opening, seen, self._rules) | whole.evidence(theirs)

        compared = [
            Similarity(rule=seen.rule, similarity=seen.similarity, accepted=False)
            for seen in _nearest(rejected, NOTED_REJECTED)
        ]
        match = None
        if found is not None:
            match = Match(
                document_id=found.other.document_id,
                rule=found.rule,
                similarity=found.similarity,
                evidence=evidence(found),
            )
            compared.append(
                Similarity(rule=match.rule, similarity=match.similarity, accepted=True)
            )
        return DuplicateVerdict(
            match=match,
            near_misses=tuple(
                {
                    "document_id": miss.other.document_id,
                    "rule": miss.rule,
                    **evidence(miss),
                }
                for miss in _nearest(misses, NOTED_MISSES)
            ),
            more_misses=max(0, len(misses) - NOTED_MISSES),
            compared=tuple(compared),
        )

    def _whole(self, document_id: str) -> "_Whole":
        """Return a whole text, remembered while there is room for so many letters."""
        whole = self._remembered.get(document_id)
        if whole is None:
            whole = _Whole(self._text_of(document_id), self._rules)
            self._room -= len(whole.text)
            if self._room >= 0:
                self._remembered[document_id] = whole
        return whole


class _Seen(NamedTuple):
    """How alike two openings are, and *by* which measure they look the same."""

    cosine: float
    other: Opening
    similarity: float
    by: Literal["delta_chars", "cosine", "mean_cosine", "edit"] | None = None

    @property
    def rule(self) -> Rule:
        """The rule that compared them."""
        if self.by == "delta_chars":
            return "prefix"
        return "edit_distance" if self.by == "edit" else "cosine"


def _nearest(seen: Sequence[_Seen], most: int) -> list[_Seen]:
    """Return the *most* near by their cosine, in the order they were compared."""
    if len(seen) <= most:
        return list(seen)
    cosines = np.array([one.cosine for one in seen])
    places = np.argsort(-cosines, kind="stable")[:most]
    return [seen[place] for place in sorted(places.tolist())]


def _seen(
    opening: Opening, other: Opening, cosine: float, rules: DuplicateRules
) -> _Seen:
    """Hold two openings against each other, by one rule after the other."""
    if _appended(*_by_length(opening.text, other.text)):
        return _Seen(cosine, other, cosine, "delta_chars")
    if cosine >= rules.cosine:
        return _Seen(cosine, other, cosine, "cosine")
    if rules.mean_of and opening.mean is not None and other.mean is not None:
        mean = _cosine(opening.mean, other.mean)
        if mean >= rules.cosine:
            return _Seen(cosine, other, mean, "mean_cosine")
    edit = _edit_suspicion(opening.text, other.text, cosine, rules)
    if edit is not None:
        return _Seen(cosine, other, edit, "edit")
    return _Seen(cosine, other, cosine)


def _suspected(opening: Opening, seen: _Seen, rules: DuplicateRules) -> dict[str, Any]:
    """Return the measure by which two openings look the same, and its bound."""
    if seen.by == "delta_chars":
        delta = abs(len(opening.text) - len(seen.other.text))
        return {"delta_chars": delta, "under": PREFIX_SLACK}
    if seen.by == "edit":
        return {"edit": seen.similarity, "above": EDIT_SIMILARITY}
    return {str(seen.by): seen.similarity, "at_least": rules.cosine}


def _edit_suspicion(
    one: str, other: str, cosine: float, rules: DuplicateRules
) -> float | None:
    """Return how alike two openings are letter by letter, if that is enough."""
    in_band = rules.cosine - EDIT_BAND <= cosine < rules.cosine
    if not in_band and not rules.normalised:
        return None
    pairs = [(one, other)] if in_band else []
    if rules.normalised:
        pairs.append((_folded(one), _folded(other)))
    best = max(round(Levenshtein.normalized_similarity(a, b), PLACES) for a, b in pairs)
    return best if best > EDIT_SIMILARITY else None


class _Whole:
    """A whole text as it is compared; its numbers are read once, if at all."""

    def __init__(self, text: str, rules: DuplicateRules) -> None:
        self.text = _folded(text) if rules.normalised else text
        self._same_numbers = rules.same_numbers

    @cached_property
    def numbers(self) -> list[str]:
        """The numbers and months in it, in order."""
        return [found.strip().casefold() for found in _NUMBER.findall(self.text)]

    def same_as(self, other: "_Whole") -> bool:
        """Tell whether two whole texts are the same but for trifles."""
        shorter, longer = _by_length(self.text, other.text)
        appended = _appended(shorter, longer)
        if not appended and len(shorter) < EDIT_SIMILARITY * len(longer):
            return False
        if self._clashes(other):
            return False
        return appended or _alike(shorter, longer, _NOT_ALIKE) > EDIT_SIMILARITY

    def evidence(self, other: "_Whole") -> dict[str, Any]:
        """Return the numbers that tell whether two whole texts are the same."""
        shorter, longer = _by_length(self.text, other.text)
        alike = _alike(shorter, longer)
        evidence: dict[str, Any] = {
            "whole_text": alike,
            "whole_text_above": EDIT_SIMILARITY,
        }
        alike_enough = alike > EDIT_SIMILARITY or _appended(shorter, longer)
        if alike_enough and self._clashes(other):
            evidence["numbers_differ"] = _clash(self.numbers, other.numbers)
        return evidence

    def _clashes(self, other: "_Whole") -> bool:
        """Tell whether numbers or months differ, and both texts have their own.

        They are read in order: two deadlines that changed places are another matter.
        Those that only one of the texts has besides are no clash.
        """
        if not self._same_numbers:
            return False
        shorter, longer = _by_length(self.numbers, other.numbers)
        if len(shorter) == len(longer):
            return shorter != longer
        rest = iter(longer)
        return not all(number in rest for number in shorter)


def _by_length(one: Measured, other: Measured) -> tuple[Measured, Measured]:
    """Return the shorter and the longer, in the order given if they are as long."""
    return (one, other) if len(one) <= len(other) else (other, one)


def _appended(shorter: str, longer: str) -> bool:
    """Return whether only a few characters were added, at the end."""
    return len(longer) - len(shorter) < PREFIX_SLACK and longer.startswith(shorter)


def _alike(shorter: str, longer: str, at_least: float = 0.0) -> float:
    """Return how alike two texts are, from 0 to 1.

    Letter by letter up to a size; beyond it by runs of five words, whose cost does
    not grow with the square of the text. Texts less alike than *at_least* may be
    given a 0, which is found out sooner.
    """
    if shorter == longer:
        return 1.0
    if len(shorter) < EDIT_SIMILARITY * len(longer):
        value = len(shorter) / len(longer)
    elif len(longer) <= EDITED_CHARS:
        value = Levenshtein.normalized_similarity(
            shorter, longer, score_cutoff=at_least
        )
    else:
        ours, theirs = _runs(shorter), _runs(longer)
        value = (ours & theirs).total() / max(ours.total(), theirs.total())
    return round(value, PLACES)


def _runs(text: str) -> Counter[tuple[str, ...]]:
    words = text.split()
    return Counter(zip(*(words[start:] for start in range(RUN_WORDS)), strict=False))


def _clash(ours: Sequence[str], theirs: Sequence[str]) -> list[str]:
    """Return some numbers and months by which two texts differ."""
    only_ours, only_theirs = Counter(ours), Counter(theirs)
    only_ours, only_theirs = only_ours - only_theirs, only_theirs - only_ours
    if only_ours or only_theirs:
        return sorted(only_ours)[:3] + sorted(only_theirs)[:3]
    return next([a, b] for a, b in zip(ours, theirs, strict=True) if a != b)


def _cosine(one: NDArray[np.float32], other: NDArray[np.float32]) -> float:
    [cosine] = _rounded_cosines(one, other[None, :])
    return cosine


def _cosines(vector: NDArray[np.float32], others: Sequence[Opening]) -> Iterator[float]:
    """Yield the cosine to each of *others*, some at a time."""
    for start in range(0, len(others), _AT_ONCE):
        some = others[start : start + _AT_ONCE]
        yield from _rounded_cosines(vector, np.stack([one.vector for one in some]))


def _rounded_cosines(
    one: NDArray[np.float32], others: NDArray[np.float32]
) -> list[float]:
    a, b = one.astype(np.float64), others.astype(np.float64)
    lengths = np.sqrt((a * a).sum() * (b * b).sum(axis=1))
    lengths[lengths == 0.0] = 1.0
    cosines = (a * b).sum(axis=1) / lengths
    return [round(cosine, PLACES) for cosine in cosines.tolist()]


def _folded(text: str) -> str:
    return " ".join(_PUNCTUATION.sub(" ", text.casefold()).split())
