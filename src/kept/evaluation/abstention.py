"""Abstention: whether a system refuses what it cannot answer, and only that."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kept.errors import InputError
from kept.evaluation.probability_scores import auroc_of
from kept.evaluation.resampling import (
    STANDARD,
    Floats,
    Interval,
    Resampling,
    Statistic,
    bootstrap,
    share_of,
)
from kept.evaluation.runs import QueryRecord
from kept.evaluation.selective import (
    AREAS,
    Attempt,
    RiskCoverage,
    curve_names,
    curve_of,
    risk_coverage,
)

COVERAGES = (0.5, 0.8, 0.9)


@dataclass(frozen=True, slots=True, kw_only=True)
class AbstentionCase:
    """A question that is known to be answerable or not, and the system's reaction.

    *confidence* None means that it was refused before anything was scored. *correct*
    is whether the citation, if there was one, was right.
    """

    answerable: bool
    confidence: float | None
    correct: bool = True
    refused: bool = False
    kind: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FloorRates:
    """The rates at one floor; None is the system as it is configured.

    A false citation is an unanswerable question that was answered, a false
    refusal an answerable one that was not.
    """

    floor: float | None
    coverage: Interval | None
    risk: Interval | None
    false_citation: Interval | None
    false_refusal: Interval | None
    false_citation_by_kind: dict[str, Interval | None]

    @property
    def name(self) -> str:
        """The floor's name in tables."""
        return "as configured" if self.floor is None else f"{self.floor:g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AbstentionReport:
    """How well confidence separates answerable from unanswerable questions.

    The curve answers the most confident questions first. To answer an unanswerable
    question or to cite a wrong document is a loss of 1.
    """

    answerable: int
    unanswerable: int
    curve: RiskCoverage
    aurc: Interval | None
    augrc: Interval | None
    excess_aurc: Interval | None
    excess_augrc: Interval | None
    auroc: Interval | None
    auroc_by_kind: dict[str, Interval | None]
    risk_at: dict[float, Interval | None]
    floors: tuple[FloorRates, ...]

    @property
    def figures(self) -> list[tuple[str, Interval | None]]:
        """The figures of the whole curve, by their names in tables."""
        kinds = self.auroc_by_kind.items()
        return [
            ("AURC", self.aurc),
            ("AURC above the optimum", self.excess_aurc),
            ("AUGRC", self.augrc),
            ("AUGRC above the optimum", self.excess_augrc),
            ("AUROC", self.auroc),
            *((f"AUROC, {kind or 'other'}", value) for kind, value in kinds),
            *((f"risk at coverage {c:g}", value) for c, value in self.risk_at.items()),
        ]


def asked_in(records: Iterable[QueryRecord]) -> tuple[AbstentionCase, ...]:
    """Return the questions of a run that are marked as answerable or not."""
    return tuple(
        AbstentionCase(
            answerable=record.answerable,
            confidence=record.confidence,
            correct=record.correct is not False,
            refused=record.refusal is not None,
            kind=record.kind,
        )
        for record in records
        if record.answerable is not None
    )


def abstention(
    asked: Sequence[AbstentionCase],
    *,
    floors: Iterable[float] = (),
    coverages: Iterable[float] = COVERAGES,
    how: Resampling = STANDARD,
) -> AbstentionReport:
    """Report on *asked*, at each floor and as configured, with intervals."""
    if not asked:
        msg = (
            "no question is marked as answerable or not; mark some in queries.jsonl "
            'with "answerable": false, or add questions of another set'
        )
        raise InputError(msg)
    attempts = [attempt_of(a) for a in asked]
    kinds = sorted({a.kind for a in asked if not a.answerable})
    levels = tuple(coverages)
    lines = (None, *dict.fromkeys(floors))
    found = bootstrap(
        {
            curve_names(levels): curve_of(attempts, levels),
            "auroc": _auroc(asked, None),
            **{f"auroc {kind}": _auroc(asked, kind) for kind in kinds},
            **{
                f"{floor} {name}": statistic
                for floor in lines
                for name, statistic in _at_floor(asked, floor, kinds).items()
            },
        },
        len(asked),
        how=how,
    )
    return AbstentionReport(
        answerable=sum(a.answerable for a in asked),
        unanswerable=sum(not a.answerable for a in asked),
        curve=risk_coverage(attempts),
        **{name: found[name] for name in AREAS},
        auroc=found["auroc"],
        auroc_by_kind={kind: found[f"auroc {kind}"] for kind in kinds},
        risk_at={level: found[f"risk at {level:g}"] for level in levels},
        floors=tuple(_rates(floor, kinds, found) for floor in lines),
    )


def _at_floor(
    asked: Sequence[AbstentionCase], floor: float | None, kinds: Sequence[str]
) -> dict[str, Statistic]:
    """Make the statistics of one floor."""
    cited = [_cited(a, floor) for a in asked]
    answerable = [a.answerable for a in asked]
    wrong = [not (a.answerable and a.correct) for a in asked]
    statistics = {
        "coverage": share_of(cited, [True] * len(asked)),
        "risk": share_of(wrong, cited),
        "citation": share_of(cited, [not each for each in answerable]),
        "refusal": share_of([not each for each in cited], answerable),
    }
    for kind in kinds:
        of_kind = [not a.answerable and a.kind == kind for a in asked]
        statistics[f"citation {kind}"] = share_of(cited, of_kind)
    return statistics


def _rates(
    floor: float | None, kinds: Sequence[str], found: Mapping[str, Interval | None]
) -> FloorRates:
    return FloorRates(
        floor=floor,
        coverage=found[f"{floor} coverage"],
        risk=found[f"{floor} risk"],
        false_citation=found[f"{floor} citation"],
        false_refusal=found[f"{floor} refusal"],
        false_citation_by_kind={k: found[f"{floor} citation {k}"] for k in kinds},
    )


def _cited(asked: AbstentionCase, floor: float | None) -> bool:
    if floor is None:
        return not asked.refused
    return asked.confidence is not None and asked.confidence >= floor


def attempt_of(asked: AbstentionCase) -> Attempt:
    """Return a question as a point of the curve: its loss and its confidence."""
    if asked.confidence is None:  # no floor would have cited it
        return Attempt(None, 0)
    return Attempt(0 if asked.answerable and asked.correct else 1, asked.confidence)


def _auroc(asked: Sequence[AbstentionCase], kind: str | None) -> Statistic:
    """Make the AUROC of answerable against unanswerable questions of one *kind*.

    With None, those of all kinds count.
    """
    # A question that was refused before scoring ranks below every scored one.
    lowest = float("-inf")
    scores = [lowest if a.confidence is None else a.confidence for a in asked]
    # Every kind of unanswerable question is compared with all answerable ones.
    part = np.array([a.answerable or kind in {None, a.kind} for a in asked])
    area = auroc_of(scores, [a.answerable for a in asked])

    def among(counts: Floats) -> Floats:
        return area(counts * part)

    return among
