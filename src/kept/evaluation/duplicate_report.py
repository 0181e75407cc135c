"""Duplicates: how well the ingestion rules, and simpler ones, find equal texts."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import (
    AliasChoices,
    ConfigDict,
    Field,
    StrictBool,
    StrictFloat,
    TypeAdapter,
)

from kept.errors import InputError
from kept.evaluation.corpus import OnStep
from kept.evaluation.json_lines import records
from kept.evaluation.probability_scores import auroc_of
from kept.evaluation.resampling import (
    STANDARD,
    Interval,
    Resampling,
    Statistic,
    bootstrap,
    share_of,
)
from kept.ingest.cutting import Cutting, drafted, passage
from kept.ingest.duplicates import DuplicateRules, Opening, near_duplicate
from kept.kernel.ports import Embedder
from kept.knowledge_base.settings import Settings
from kept.knowledge_base.wiring import cutting_of, duplicate_rules_of, embedder_of
from kept.models.embedders import checked
from kept.text.draft import Draft

THRESHOLDS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.97, 0.99)
SAME = 0.8
PERMUTATIONS = 128
SHINGLE = 5
BATCH = 64
BASELINE = "rensa"
_WORD = re.compile(r"\w+")


def _under(*names: str) -> Any:  # noqa: ANN401 -- pydantic's own type
    """Return the field that is read from the first of *names*."""
    return Field(validation_alias=AliasChoices(*names))


Similarity = Callable[[str, str], float]
"""Returns how similar two texts are, from 0 to 1; 0 or 1 for a rule that decides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextPair:
    """Two texts, and whether or how similar they are.

    Give *duplicate*, or a *similarity* that a threshold turns into one.
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(coerce_numbers_to_str=True)

    id: Annotated[str, _under("id", "path", "line")]
    first: Annotated[str, _under("first", "old_text")]
    second: Annotated[str, _under("second", "new_text")]
    duplicate: StrictBool | None = None
    similarity: Annotated[StrictFloat | None, _under("similarity", "jaccard5")] = None


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
    """Every rule on the same pairs; *notes* name what could not be tried."""

    pairs: int
    duplicates: int
    rules: tuple[RuleReport, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class IngestionRules:
    """The rules by which ingestion takes a text for one that is stored already."""

    embedder: Embedder
    rules: DuplicateRules
    cutting: Cutting
    openings: dict[str, Opening] = field(default_factory=dict, compare=False)

    @classmethod
    def of(cls, settings: Settings) -> "IngestionRules":
        """Return the rules under *settings*."""
        embedder = embedder_of(settings)
        return cls(
            embedder, duplicate_rules_of(settings, embedder), cutting_of(settings)
        )

    def read(self, texts: Iterable[str], on_step: OnStep) -> None:
        """Embed the first passage of each text."""
        distinct = list(dict.fromkeys(texts))
        for start in range(0, len(distinct), BATCH):
            batch = distinct[start : start + BATCH]
            documents = [
                drafted(Draft(text=text), "pairs", "pair", self.cutting)
                for text in batch
            ]
            passages = [passage(document, 0) for document in documents]
            vectors = checked(self.embedder.embed(passages), passages, self.embedder.id)
            for text, new, vector in zip(batch, documents, vectors, strict=True):
                self.openings[text] = Opening(
                    document_id=new.id,
                    text=new.chunks[0].text,
                    sketch=new.sketch,
                    vector=vector,
                )
            on_step("embedding openings", start + len(batch), len(distinct))

    def reused(self, first: str, second: str) -> float:
        """Return whether *second* would be stored as a copy of *first*: 1 or 0."""
        if first == second:
            return 1.0
        verdict = near_duplicate(
            self.openings[second],
            second,
            [self.openings[first]],
            self.rules,
            lambda _: first,
        )
        return float(verdict.match is not None)

    def opening_cosine(self, first: str, second: str) -> float:
        """Return the cosine of the first passages, for a threshold on it alone."""
        one, two = self.openings[first].vector, self.openings[second].vector
        # In float64, and from 0 as thresholds are.
        return max(0.0, float(one.astype(float) @ two.astype(float)))


def load_text_pairs(path: Path) -> tuple[TextPair, ...]:
    """Load pairs of texts from JSON lines.

    The texts are under ``first`` and ``second`` (or ``old_text`` and ``new_text``),
    the truth under ``duplicate`` (true or false) or ``similarity`` (or ``jaccard5``),
    0 to 1.
    """
    return records(path, TypeAdapter(TextPair), "pairs")


def pairs_report(
    pairs: Sequence[TextPair],
    settings: Settings,
    *,
    same_from: float,
    on_step: OnStep,
) -> DuplicateReport:
    """Evaluate the ingestion rules on *pairs*, next to the usual baselines."""
    ingestion = IngestionRules.of(settings)
    ingestion.read((text for p in pairs for text in (p.first, p.second)), on_step)
    rules: dict[str, Similarity] = {
        "as ingested": ingestion.reused,
        "cosine of openings": ingestion.opening_cosine,
        "shared runs of 5 words": jaccard,
    }
    notes: tuple[str, ...] = ()
    if find_spec(BASELINE):
        rules["MinHash"] = minhash
    else:
        notes = (f"MinHash was left out; 'pip install {BASELINE}' adds it",)
    report = evaluate_duplicates(pairs, rules, same_from=same_from)
    return replace(report, notes=notes)


def evaluate_duplicates(
    pairs: Sequence[TextPair],
    rules: Mapping[str, Similarity],
    *,
    same_from: float = SAME,
    thresholds: Iterable[float] = THRESHOLDS,
    how: Resampling = STANDARD,
) -> DuplicateReport:
    """Evaluate each rule on *pairs*.

    A pair without a label is a duplicate from the similarity *same_from* on.
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


def minhash(first: str, second: str, permutations: int = PERMUTATIONS) -> float:
    """Return MinHash's estimate of the Jaccard index of word shingles."""
    from rensa import RMinHash  # noqa: PLC0415 -- only the baseline needs it

    sketches = []
    for text in (first, second):
        # A fixed seed, and shingles in sorted order, so that a second run gives the
        # same estimate.
        sketch = RMinHash(num_perm=permutations, seed=42)
        sketch.update(sorted(shingles(text, SHINGLE)))
        sketches.append(sketch)
    return float(sketches[0].jaccard(sketches[1]))


def jaccard(first: str, second: str) -> float:
    """Return the exact Jaccard index of word shingles."""
    one, two = shingles(first, SHINGLE), shingles(second, SHINGLE)
    return len(one & two) / len(one | two) if one | two else 1.0


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
    # Rounded like every score: noise in the last bits must not decide on which side of
    # a threshold a pair lies.
    rounded = [round(s, 9) for s in similarities]
    found = {t: [s >= t for s in rounded] for t in thresholds}
    statistics: dict[str | tuple[str, ...], Statistic] = {
        "auroc": auroc_of(rounded, truths)
    }
    for threshold, flags in found.items():
        statistics[f"precision {threshold}"] = share_of(truths, flags)
        statistics[f"recall {threshold}"] = share_of(flags, truths)
        false = share_of(flags, [not t for t in truths])
        statistics[f"false positives {threshold}"] = false
    rates = bootstrap(statistics, len(truths), how=how)
    return RuleReport(
        rule=name,
        auroc=rates["auroc"],
        operating=tuple(
            Operating(
                threshold=threshold,
                found=sum(flags),
                precision=rates[f"precision {threshold}"],
                recall=rates[f"recall {threshold}"],
                false_positives=rates[f"false positives {threshold}"],
            )
            for threshold, flags in found.items()
        ),
        roc=_roc(rounded, truths),
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
        # Equal similarities are one point: a threshold cannot separate them.
        if i + 1 == len(rows) or rows[i + 1][0] != similarity:
            points.append((round(false / negatives, 9), round(true / positives, 9)))
    return tuple(points)
