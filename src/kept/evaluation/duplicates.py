"""Duplicates: how well a rule finds texts that are the same, at each threshold."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from kept.errors import InputError
from kept.evaluation.loaders import TextPair
from kept.evaluation.resampling import (
    STANDARD,
    Interval,
    Resampling,
    bootstrap,
    share_of,
)
from kept.evaluation.scores import auroc_of

THRESHOLDS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.97, 0.99)
SAME = 0.8
PERMUTATIONS = 128
SHINGLE = 5
_WORD = re.compile(r"\w+")

Similarity = Callable[[str, str], float]
"""Says how alike two texts are, from 0 to 1; 1 for a rule that simply fires."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operating:
    """What a rule finds at one threshold."""

    threshold: float
    found: int
    precision: Interval | None
    recall: Interval | None
    false_positives: Interval | None

    @property
    def f1(self) -> float | None:
        """The harmonic mean of precision and recall."""
        if self.precision is None or self.recall is None:
            return None
        total = self.precision.estimate + self.recall.estimate
        if not total:
            return 0.0
        return round(2 * self.precision.estimate * self.recall.estimate / total, 9)


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleReport:
    """One rule at every threshold, and its whole curve.

    *roc* holds (false positive rate, true positive rate) from none to all found.
    """

    rule: str
    auroc: Interval | None
    operating: tuple[Operating, ...]
    roc: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DuplicateReport:
    """Every rule on the same pairs."""

    pairs: int
    duplicates: int
    rules: tuple[RuleReport, ...]


def evaluate_duplicates(
    pairs: Sequence[TextPair],
    rules: Mapping[str, Similarity],
    *,
    same_from: float = SAME,
    thresholds: Iterable[float] = THRESHOLDS,
    how: Resampling = STANDARD,
) -> DuplicateReport:
    """Hold each rule against *pairs*.

    A pair without a label is a duplicate from the similarity *same_from* up.
    """
    truths = [_duplicate(pair, same_from) for pair in pairs]
    levels = tuple(thresholds)
    return DuplicateReport(
        pairs=len(pairs),
        duplicates=sum(truths),
        rules=tuple(
            _rule(name, [rule(p.first, p.second) for p in pairs], truths, levels, how)
            for name, rule in rules.items()
        ),
    )


def minhash(permutations: int = PERMUTATIONS) -> Similarity:
    """Make the baseline: MinHash's estimate of the Jaccard index of word shingles."""
    from rensa import RMinHash  # noqa: PLC0415 -- only the baseline needs it

    def similarity(first: str, second: str) -> float:
        sketches = []
        for text in (first, second):
            sketch = RMinHash(num_perm=permutations, seed=42)
            sketch.update(sorted(shingles(text, SHINGLE)))
            sketches.append(sketch)
        return float(sketches[0].jaccard(sketches[1]))

    return similarity


def jaccard() -> Similarity:
    """Make the exact Jaccard index of word shingles."""

    def similarity(first: str, second: str) -> float:
        one, two = shingles(first, SHINGLE), shingles(second, SHINGLE)
        return len(one & two) / len(one | two) if one | two else 1.0

    return similarity


def shingles(text: str, size: int) -> frozenset[str]:
    """Return every run of *size* words; the whole text where it is shorter."""
    words = _WORD.findall(text.casefold())
    last = max(1, len(words) - size + 1)
    return frozenset(" ".join(words[i : i + size]) for i in range(last) if words)


def _duplicate(pair: TextPair, same_from: float) -> bool:
    if pair.duplicate is not None:
        return pair.duplicate
    if pair.similarity is None:
        msg = (
            f"pair {pair.id} has neither a label nor a similarity; give it "
            '"duplicate": true or false'
        )
        raise InputError(msg)
    return pair.similarity >= same_from


def _rule(
    name: str,
    similarities: Sequence[float],
    truths: Sequence[bool],
    thresholds: Sequence[float],
    how: Resampling,
) -> RuleReport:
    rounded = [round(s, 9) for s in similarities]
    area = bootstrap({"auroc": auroc_of(rounded, truths)}, len(truths), how=how)
    return RuleReport(
        rule=name,
        auroc=area["auroc"],
        operating=tuple(_at(t, rounded, truths, how) for t in thresholds),
        roc=_roc(rounded, truths),
    )


def _at(
    threshold: float,
    similarities: Sequence[float],
    truths: Sequence[bool],
    how: Resampling,
) -> Operating:
    found = [s >= threshold for s in similarities]
    rates = bootstrap(
        {
            "precision": share_of(truths, found),
            "recall": share_of(found, truths),
            "false_positives": share_of(found, [not t for t in truths]),
        },
        len(truths),
        how=how,
    )
    return Operating(
        threshold=threshold,
        found=sum(found),
        precision=rates["precision"],
        recall=rates["recall"],
        false_positives=rates["false_positives"],
    )


def _roc(
    similarities: Sequence[float], truths: Sequence[bool]
) -> tuple[tuple[float, float], ...]:
    positives = max(1, sum(truths))
    negatives = max(1, len(truths) - sum(truths))
    points = [(0.0, 0.0)]
    true = false = 0
    rows = sorted(zip(similarities, truths, strict=True), reverse=True)
    for i, (similarity, truth) in enumerate(rows):
        true += truth
        false += not truth
        if i + 1 == len(rows) or rows[i + 1][0] != similarity:
            points.append((round(false / negatives, 9), round(true / positives, 9)))
    return tuple(points)
