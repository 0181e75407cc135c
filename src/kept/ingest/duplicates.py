"""Duplicates: whether a text is already here, and by which rule we know."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import Levenshtein

from kept.ingest.differences import (
    COPY_SHARE,
    REWORDED_SHARE,
    ComparedText,
    differing,
    share_in_common,
)
from kept.ingest.plain_words import NO_SKETCH
from kept.ingest.receipts import Rule, Similarity
from kept.kernel.signals import PLACES
from kept.text.access import UNDECLARED

PREFIX_SLACK = 32
EDIT_BAND = 0.02
EDIT_SIMILARITY = 0.95
OFF = 1.0
NOTED_REJECTED = 16
NOTED_MISSES = 8
REMEMBERED_CHARS = 8_000_000
_AT_ONCE = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class DuplicateRules:
    """When two documents count as one.

    *cosine* is the threshold for the openings; 1.0 switches near-duplicate reuse
    off. *newest* limits the comparison to that many latest documents (0: all that
    the index finds). *mean_of* compares the mean of that many first chunks when the
    first alone is not near enough (0: never). *reworded* also merges texts in which
    less than 5 % was put in other words, as long as no number, date, name, negation
    or other word of `kept.ingest.opposites` is among them.
    """

    cosine: float
    newest: int = 0
    mean_of: int = 0
    reworded: bool = False

    @property
    def on(self) -> bool:
        """Whether near duplicates are looked for at all."""
        return self.cosine < OFF


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """How a document begins, which is where the search for duplicates begins.

    *sketch* stands for its whole text: a new document has all of it, one that was
    found by it those of its numbers that it was found by.
    """

    document_id: str
    text: str
    sketch: frozenset[int] = NO_SKETCH
    vector: NDArray[np.float32] = field(compare=False, repr=False)
    mean: NDArray[np.float32] | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SoughtText:
    """A text whose like is looked for, *without* the document it was before.

    Only texts of its type and for the same readers, *acl*, can be like it.
    """

    type: str
    opening: Opening
    without: str | None = None
    acl: str = UNDECLARED

    @property
    def kind(self) -> tuple[str, str]:
        """What a text must have in common with it to be compared at all."""
        return self.type, self.acl


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
    """Return the first of *others*, in their order, that a document repeats."""
    return Comparing(rules, text_of)(opening, text, others)


class Comparing:
    """Compares texts with stored ones, whose whole text *text_of* returns.

    A shared opening is not a shared document: what the openings suggest is
    confirmed on the whole text, and is noted as a near miss if that fails. Texts of
    one template nearly miss each other by the thousand, so the nearest are noted.
    """

    def __init__(self, rules: DuplicateRules, text_of: Callable[[str], str]) -> None:
        self._rules = rules
        self._text_of = text_of
        self._remembered: dict[str, ComparedText] = {}
        self._room = REMEMBERED_CHARS

    def __call__(
        self, opening: Opening, text: str, others: Sequence[Opening]
    ) -> DuplicateVerdict:
        """Return the first of *others*, in their order, that a document repeats.

        *text* is its whole text.
        """
        whole = ComparedText(text)
        rejected: list[_Seen] = []
        misses: list[_Seen] = []
        for other, cosine in zip(others, _cosines(opening.vector, others), strict=True):
            seen = _seen(opening, other, cosine, self._rules)
            if seen.by is not None:
                before = self._whole(other.document_id)
                if differing(before, whole, reworded=self._rules.reworded) == ():
                    return self._verdict(opening, whole, rejected, misses, seen)
                misses.append(seen)
            rejected.append(seen)
        return self._verdict(opening, whole, rejected, misses)

    def _verdict(
        self,
        opening: Opening,
        whole: ComparedText,
        rejected: Sequence["_Seen"],
        misses: Sequence["_Seen"],
        found: "_Seen | None" = None,
    ) -> DuplicateVerdict:
        """Note what was *found*, and the nearest of what was not the same."""

        def evidence(seen: _Seen) -> dict[str, Any]:
            other = seen.other.document_id
            suspected = _suspected(opening, seen, self._rules)
            return suspected | self._evidence(whole, other)

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

    def _evidence(self, whole: ComparedText, other: str) -> dict[str, Any]:
        """Return what was found in comparing a whole text with another."""
        before, reworded = self._whole(other), self._rules.reworded
        evidence: dict[str, Any] = {
            "whole_text": share_in_common(before, whole),
            "whole_text_above": REWORDED_SHARE if reworded else COPY_SHARE,
        }
        if words := differing(before, whole, reworded=reworded, in_order=True):
            evidence["differs_in"] = list(words)
        return evidence

    def _whole(self, document_id: str) -> ComparedText:
        """Return a whole text, remembered while there is room for so many letters."""
        whole = self._remembered.get(document_id)
        if whole is None:
            whole = ComparedText(self._text_of(document_id))
            self._room -= len(whole.text)
            if self._room >= 0:
                self._remembered[document_id] = whole
        return whole


class _Seen(NamedTuple):
    """How alike two openings are, and *by* which measure they look the same."""

    cosine: float
    other: Opening
    similarity: float
    by: Literal["delta_chars", "cosine", "mean_cosine", "edit", "sketch"] | None = None

    @property
    def rule(self) -> Rule:
        """The rule that compared them."""
        if self.by == "delta_chars":
            return "prefix"
        if self.by == "sketch":
            return "minhash"
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
    if shared := opening.sketch & other.sketch:
        return _Seen(cosine, other, len(shared) / len(opening.sketch), "sketch")
    return _Seen(cosine, other, cosine)


def _suspected(opening: Opening, seen: _Seen, rules: DuplicateRules) -> dict[str, Any]:
    """Return the measure by which two openings look the same, and its bound."""
    if seen.by == "delta_chars":
        delta = abs(len(opening.text) - len(seen.other.text))
        return {"delta_chars": delta, "under": PREFIX_SLACK}
    if seen.by == "edit":
        return {"edit": seen.similarity, "above": EDIT_SIMILARITY}
    if seen.by == "sketch":
        return {"sketch": seen.similarity, "of": len(opening.sketch)}
    return {str(seen.by): seen.similarity, "at_least": rules.cosine}


def _edit_suspicion(
    one: str, other: str, cosine: float, rules: DuplicateRules
) -> float | None:
    """Return how alike two openings are letter by letter, if that is enough."""
    if not rules.cosine - EDIT_BAND <= cosine < rules.cosine:
        return None
    alike = round(Levenshtein.normalized_similarity(one, other), PLACES)
    return alike if alike > EDIT_SIMILARITY else None


def _by_length(one: str, other: str) -> tuple[str, str]:
    """Return the shorter and the longer, in the order given if they are as long."""
    return (one, other) if len(one) <= len(other) else (other, one)


def _appended(shorter: str, longer: str) -> bool:
    """Return whether a few characters at the end are all that was added."""
    return len(longer) - len(shorter) < PREFIX_SLACK and longer.startswith(shorter)


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
