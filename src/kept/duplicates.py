"""Duplicates: whether a text is already here, and by which rule we know."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import Levenshtein

from kept.receipts import Rule, Similarity
from kept.signals import PLACES

PREFIX_SLACK = 32
EDIT_BAND = 0.02
EDIT_SIMILARITY = 0.95
OFF = 1.0
EDITED_CHARS = 20_000
RUN_WORDS = 5
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
class Sought:
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
class Verdict:
    """The match, if there is one, and everything that was compared on the way."""

    match: Match | None = None
    near_misses: tuple[Mapping[str, Any], ...] = ()
    compared: tuple[Similarity, ...] = ()


def near_duplicate(
    opening: Opening,
    text: str,
    others: Iterable[Opening],
    rules: DuplicateRules,
    text_of: Callable[[str], str],
) -> Verdict:
    """Hold a document against *others* in their order; the first that passes wins.

    A shared opening is not a shared document: what the openings suggest is
    confirmed on the whole text, and is noted as a near miss if that fails.
    """
    compared: list[Similarity] = []
    misses: list[Mapping[str, Any]] = []
    for other in others:
        for rule, similarity, seen in _suspicions(opening, other, rules, compared):
            whole = _confirmation(text, text_of(other.document_id), rules)
            evidence = seen | whole.evidence
            compared.append(
                Similarity(rule=rule, similarity=similarity, accepted=whole.same)
            )
            if whole.same:
                match = Match(
                    document_id=other.document_id,
                    rule=rule,
                    similarity=similarity,
                    evidence=evidence,
                )
                return Verdict(
                    match=match, near_misses=tuple(misses), compared=tuple(compared)
                )
            misses.append({"document_id": other.document_id, "rule": rule, **evidence})
            break
    return Verdict(near_misses=tuple(misses), compared=tuple(compared))


def _suspicions(
    opening: Opening,
    other: Opening,
    rules: DuplicateRules,
    compared: list[Similarity],
) -> Iterator[tuple[Rule, float, dict[str, Any]]]:
    """Yield the rules by which two openings look the same."""
    shorter, longer = sorted((opening.text, other.text), key=len)
    delta = len(longer) - len(shorter)
    cosine = _cosine(opening.vector, other.vector)
    if delta < PREFIX_SLACK and longer.startswith(shorter):
        yield "prefix", cosine, {"delta_chars": delta, "under": PREFIX_SLACK}
        return
    if cosine >= rules.cosine:
        yield "cosine", cosine, {"cosine": cosine, "at_least": rules.cosine}
        return
    if rules.mean_of and opening.mean is not None and other.mean is not None:
        mean = _cosine(opening.mean, other.mean)
        if mean >= rules.cosine:
            yield "cosine", mean, {"mean_cosine": mean, "at_least": rules.cosine}
            return
    edit = _edit_suspicion(opening.text, other.text, cosine, rules)
    if edit is not None:
        yield "edit_distance", edit, {"edit": edit, "above": EDIT_SIMILARITY}
        return
    compared.append(Similarity(rule="cosine", similarity=cosine, accepted=False))


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


@dataclass(frozen=True, slots=True)
class _Confirmation:
    same: bool
    evidence: dict[str, Any]


def _confirmation(text: str, other: str, rules: DuplicateRules) -> _Confirmation:
    """Tell whether two whole texts are the same but for trifles."""
    if rules.normalised:
        text, other = _folded(text), _folded(other)
    shorter, longer = sorted((text, other), key=len)
    delta = len(longer) - len(shorter)
    alike = 1.0 if text == other else _alike(shorter, longer)
    appended = delta < PREFIX_SLACK and longer.startswith(shorter)
    evidence: dict[str, Any] = {
        "whole_text": alike,
        "whole_text_above": EDIT_SIMILARITY,
    }
    if not appended and alike <= EDIT_SIMILARITY:
        return _Confirmation(same=False, evidence=evidence)
    if rules.same_numbers and (clash := _clashing_numbers(text, other)):
        return _Confirmation(same=False, evidence=evidence | {"numbers_differ": clash})
    return _Confirmation(same=True, evidence=evidence)


def _alike(shorter: str, longer: str) -> float:
    """Return how alike two texts are, from 0 to 1.

    Letter by letter up to a size; beyond it by runs of five words, whose cost does
    not grow with the square of the text.
    """
    if len(shorter) < EDIT_SIMILARITY * len(longer):
        value = len(shorter) / len(longer)
    elif len(longer) <= EDITED_CHARS:
        value = Levenshtein.normalized_similarity(shorter, longer)
    else:
        ours, theirs = _runs(shorter), _runs(longer)
        value = (ours & theirs).total() / max(ours.total(), theirs.total())
    return round(value, PLACES)


def _runs(text: str) -> Counter[tuple[str, ...]]:
    words = text.split()
    return Counter(zip(*(words[start:] for start in range(RUN_WORDS)), strict=False))


def _clashing_numbers(text: str, other: str) -> list[str]:
    """Return numbers and months by which the texts differ, if both have their own.

    They are read in order: two deadlines that changed places are another matter.
    Those that only one of the texts has besides are no clash.
    """
    ours, theirs = _numbers(text), _numbers(other)
    shorter, longer = sorted((ours, theirs), key=len)
    rest = iter(longer)
    if all(number in rest for number in shorter):
        return []
    only_ours, only_theirs = Counter(ours), Counter(theirs)
    only_ours, only_theirs = only_ours - only_theirs, only_theirs - only_ours
    if only_ours or only_theirs:
        return sorted(only_ours)[:3] + sorted(only_theirs)[:3]
    return next([a, b] for a, b in zip(ours, theirs, strict=True) if a != b)


def _numbers(text: str) -> list[str]:
    return [found.strip().casefold() for found in _NUMBER.findall(text)]


def _cosine(one: NDArray[np.float32], other: NDArray[np.float32]) -> float:
    a, b = one.astype(np.float64), other.astype(np.float64)
    length = float(np.sqrt((a * a).sum() * (b * b).sum())) or 1.0
    return round(float((a * b).sum()) / length, PLACES)


def _folded(text: str) -> str:
    return " ".join(_PUNCTUATION.sub(" ", text.casefold()).split())
