"""Errors of predicted ordinal scores, by item and by coverage."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import ClassVar

from pydantic import ConfigDict, StrictFloat, StrictInt, TypeAdapter

from kept.errors import InputError
from kept.evaluation.json_lines import records
from kept.evaluation.resampling import (
    STANDARD,
    Interval,
    Resampling,
    Statistic,
    bootstrap,
    share_of,
    weighted_mean_of,
)
from kept.evaluation.selective import (
    AREAS,
    Attempt,
    RiskCoverage,
    curve_names,
    curve_of,
    risk_coverage,
)

COVERAGES = (0.5, 0.6, 0.8)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rating:
    """One participant's score on one item; a *prediction* of None is an abstention."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(coerce_numbers_to_str=True)

    participant: str
    item: str
    prediction: StrictInt | None
    truth: StrictInt
    confidence: StrictFloat = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class OrdinalReport:
    """Mean absolute errors of the ratings given, with intervals by participant."""

    coverage: Interval | None
    mae: Interval | None
    mae_by_item: dict[str, Interval | None]
    mae_at: dict[float, Interval | None]
    curve: RiskCoverage
    aurc: Interval | None
    augrc: Interval | None
    excess_aurc: Interval | None
    excess_augrc: Interval | None


def load_ratings(path: Path) -> tuple[Rating, ...]:
    """Load ordinal ratings from JSON lines.

    Each has ``participant``, ``item``, ``prediction`` (a whole number, or null where
    the system abstained), ``truth`` and optionally ``confidence``.
    """
    return records(path, TypeAdapter(Rating), "ratings")


def ordinal(
    ratings: Sequence[Rating],
    *,
    coverages: Iterable[float] = COVERAGES,
    how: Resampling = STANDARD,
) -> OrdinalReport:
    """Report on *ratings*; the ratings of a participant are resampled together."""
    if not ratings:
        msg = "there are no ratings to report on; give at least one"
        raise InputError(msg)
    attempts = [_attempt(r) for r in ratings]
    items = list(dict.fromkeys(r.item for r in ratings))
    levels = tuple(coverages)
    everyone = [True] * len(ratings)
    intervals = bootstrap(
        {
            "coverage": share_of([a.loss is not None for a in attempts], everyone),
            "mae": _mae(ratings, None),
            curve_names(levels): curve_of(attempts, levels),
            **{f"item {item}": _mae(ratings, item) for item in items},
        },
        len(ratings),
        clusters=[r.participant for r in ratings],
        how=how,
    )
    return OrdinalReport(
        coverage=intervals["coverage"],
        mae=intervals["mae"],
        mae_by_item={item: intervals[f"item {item}"] for item in items},
        mae_at={level: intervals[f"risk at {level:g}"] for level in levels},
        curve=risk_coverage(attempts),
        **{name: intervals[name] for name in AREAS},
    )


def _attempt(rating: Rating) -> Attempt:
    if rating.prediction is None:
        return Attempt(None, rating.confidence)
    return Attempt(Fraction(abs(rating.prediction - rating.truth)), rating.confidence)


def _mae(ratings: Sequence[Rating], item: str | None) -> Statistic:
    errors = [abs((r.prediction or 0) - r.truth) for r in ratings]
    rated = [r.prediction is not None and item in {None, r.item} for r in ratings]
    return weighted_mean_of(errors, rated)
