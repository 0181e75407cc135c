"""Abstention: whether a system refuses what it cannot answer, and only that."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from kept.errors import InputError
from kept.evaluation.resampling import (
    STANDARD,
    Floats,
    Interval,
    Resampling,
    Statistic,
    bootstrap,
    mean_of,
    share_of,
)
from kept.evaluation.runs import EvaluationRun
from kept.evaluation.scores import auroc_of
from kept.evaluation.selective import (
    Attempt,
    RiskCoverage,
    augrc_of,
    aurc_of,
    risk_at_of,
    risk_coverage,
)

COVERAGES = (0.5, 0.8, 0.9)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question of known answerability, and how the system took it.

    *confidence* None means refused before anything was scored. *correct* says
    whether a citation, if there was one, was a right one.
    """

    answerable: bool
    confidence: float | None
    correct: bool = True
    refused: bool = False
    kind: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FloorRates:
    """What happens at one floor; None is the system as it is configured.

    A false citation is an unanswerable question that was answered, a false
    refusal an answerable one that was not.
    """

    floor: float | None
    coverage: Interval | None
    risk: Interval | None
    false_citation: Interval | None
    false_refusal: Interval | None
    false_citation_by_kind: dict[str, Interval | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class AbstentionReport:
    """How well confidence separates what can be answered from what cannot.

    The curve answers the surest questions first; answering an unanswerable one
    or citing a wrong document is a loss of 1.
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


def asked_in(run: EvaluationRun) -> tuple[Asked, ...]:
    """Take the questions of known answerability from a run."""
    return tuple(
        Asked(
            answerable=record.answerable,
            confidence=record.confidence,
            correct=record.correct is not False,
            refused=record.refusal is not None,
            kind=record.kind,
        )
        for record in run.records
        if record.answerable is not None
    )


def abstention(
    asked: Sequence[Asked],
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
    attempts = [_attempt(a) for a in asked]
    kinds = sorted({a.kind for a in asked if not a.answerable})
    levels = tuple(coverages)
    intervals = bootstrap(
        {
            "aurc": aurc_of(attempts),
            "augrc": augrc_of(attempts),
            "excess_aurc": _excess(attempts, aurc_of),
            "excess_augrc": _excess(attempts, augrc_of),
            "auroc": _auroc(asked, None),
            **{f"auroc {kind}": _auroc(asked, kind) for kind in kinds},
            **{f"risk {level}": risk_at_of(attempts, level) for level in levels},
        },
        len(asked),
        how=how,
    )
    return AbstentionReport(
        answerable=sum(a.answerable for a in asked),
        unanswerable=sum(not a.answerable for a in asked),
        curve=risk_coverage(attempts),
        aurc=intervals["aurc"],
        augrc=intervals["augrc"],
        excess_aurc=intervals["excess_aurc"],
        excess_augrc=intervals["excess_augrc"],
        auroc=intervals["auroc"],
        auroc_by_kind={kind: intervals[f"auroc {kind}"] for kind in kinds},
        risk_at={level: intervals[f"risk {level}"] for level in levels},
        floors=tuple(
            _rates(asked, floor, kinds, how) for floor in (None, *dict.fromkeys(floors))
        ),
    )


def _rates(
    asked: Sequence[Asked], floor: float | None, kinds: Sequence[str], how: Resampling
) -> FloorRates:
    cited = [_cited(a, floor) for a in asked]
    lost = [not (a.answerable and a.correct) for a in asked]
    answerable = [a.answerable for a in asked]
    unanswerable = [not a.answerable for a in asked]
    refused = [not c for c in cited]
    rates = bootstrap(
        {
            "coverage": mean_of([float(c) for c in cited]),
            "risk": share_of(lost, cited),
            "false_citation": share_of(cited, unanswerable),
            "false_refusal": share_of(refused, answerable),
            **{
                f"kind {kind}": share_of(
                    cited, [not a.answerable and a.kind == kind for a in asked]
                )
                for kind in kinds
            },
        },
        len(asked),
        how=how,
    )
    return FloorRates(
        floor=floor,
        coverage=rates["coverage"],
        risk=rates["risk"],
        false_citation=rates["false_citation"],
        false_refusal=rates["false_refusal"],
        false_citation_by_kind={kind: rates[f"kind {kind}"] for kind in kinds},
    )


def _cited(asked: Asked, floor: float | None) -> bool:
    if floor is None:
        return not asked.refused
    return asked.confidence is not None and asked.confidence >= floor


def _attempt(asked: Asked) -> Attempt:
    if asked.confidence is None:
        return Attempt(None, 0)
    return Attempt(0 if asked.answerable and asked.correct else 1, asked.confidence)


def _excess(
    attempts: Sequence[Attempt], area: Callable[[Sequence[Attempt]], Statistic]
) -> Statistic:
    best = [Attempt(a.loss, 0 if a.loss is None else -a.loss) for a in attempts]
    real, ideal = area(attempts), area(best)

    def difference(counts: Floats) -> Floats:
        return real(counts) - ideal(counts)

    return difference


def _auroc(asked: Sequence[Asked], kind: str | None) -> Statistic:
    """Separate the answerable from the unanswerable, of one *kind* or of all."""
    lowest = float("-inf")
    scores = [lowest if a.confidence is None else a.confidence for a in asked]
    part = np.array([a.answerable or kind in {None, a.kind} for a in asked])
    area = auroc_of(scores, [a.answerable for a in asked])

    def among(counts: Floats) -> Floats:
        return area(counts * part)

    return among
