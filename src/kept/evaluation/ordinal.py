"""Errors of predicted ordinal scores, by item and by coverage."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import ClassVar

from pydantic import ConfigDict, StrictFloat, StrictInt, TypeAdapter

from kept.errors import InputError
from kept.evaluation.json_lines import records
from kept.evaluation.paired import Delta, curve_deltas, named_delta
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
    RISK,
    Attempt,
    RiskCoverage,
    curve_names,
    curve_of,
    risk_coverage,
)

COVERAGES = (0.5, 0.6, 0.8)
MAE = "MAE"
OF_ITEMS = ("coverage", MAE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rating:
    """One participant's score on one item; a *prediction* of None is an abstention."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(coerce_numbers_to_str=True)

    participant: str
    item: str
    prediction: StrictInt | None
    truth: StrictInt
    confidence: StrictFloat = 0.0


Pairs = Sequence[tuple[Rating, Rating]]


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


@dataclass(frozen=True, slots=True, kw_only=True)
class OrdinalComparison:
    """Ratings B against ratings A of the same items of the same participants.

    *by_item* has the coverage and the mean absolute error of each item.
    """

    before: str
    after: str
    ratings: int
    participants: int
    only_before: int
    only_after: int
    deltas: tuple[Delta, ...]
    by_item: Mapping[str, tuple[Delta, ...]]

    def delta(self, measure: str) -> Delta:
        """Return the change of one measure; the error lists those there are."""
        return named_delta(measure, self.deltas)


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


def compare_ratings(
    before: Sequence[Rating],
    after: Sequence[Rating],
    *,
    names: tuple[str, str] = ("A", "B"),
    how: Resampling = STANDARD,
) -> OrdinalComparison:
    """Compare the ratings that both have, participants drawn and swapped as a whole."""
    pairs = _paired(before, after, names)
    if not pairs:
        msg = (
            f"{names[0]} and {names[1]} have no participant and item in common; "
            "compare ratings of the same participants"
        )
        raise InputError(msg)
    items = dict.fromkeys(a.item for a, _ in pairs)
    return OrdinalComparison(
        before=names[0],
        after=names[1],
        ratings=len(pairs),
        participants=len({a.participant for a, _ in pairs}),
        only_before=len(before) - len(pairs),
        only_after=len(after) - len(pairs),
        deltas=_deltas(pairs, how),
        by_item={
            item: tuple(
                delta
                for delta in _deltas([p for p in pairs if p[0].item == item], how)
                if delta.measure in OF_ITEMS
            )
            for item in items
        },
    )


def _deltas(pairs: Pairs, how: Resampling) -> tuple[Delta, ...]:
    deltas = curve_deltas(
        [_attempt(a) for a, _ in pairs],
        [_attempt(b) for _, b in pairs],
        clusters=[a.participant for a, _ in pairs],
        how=how,
    )
    # The loss of a rating is its absolute error.
    return tuple(replace(d, measure=MAE) if d.measure == RISK else d for d in deltas)


def _paired(
    before: Sequence[Rating], after: Sequence[Rating], names: tuple[str, str]
) -> Pairs:
    """Return the ratings of the same item; the n-th of one is that of the other."""
    others = _by_place(after)
    pairs = [
        (rating, others[place])
        for place, rating in _by_place(before).items()
        if place in others
    ]
    for a, b in pairs:
        if a.truth != b.truth:
            msg = (
                f"the truth of {a.item} for {a.participant} is {a.truth} in "
                f"{names[0]} and {b.truth} in {names[1]}; compare ratings of the same "
                "labels"
            )
            raise InputError(msg)
    return pairs


def _by_place(ratings: Sequence[Rating]) -> dict[tuple[str, str, int], Rating]:
    seen: Counter[tuple[str, str]] = Counter()
    placed: dict[tuple[str, str, int], Rating] = {}
    for rating in ratings:
        of_item = (rating.participant, rating.item)
        placed[(*of_item, seen[of_item])] = rating
        seen[of_item] += 1
    return placed


def _attempt(rating: Rating) -> Attempt:
    if rating.prediction is None:
        return Attempt(None, rating.confidence)
    return Attempt(Fraction(abs(rating.prediction - rating.truth)), rating.confidence)


def _mae(ratings: Sequence[Rating], item: str | None) -> Statistic:
    errors = [abs((r.prediction or 0) - r.truth) for r in ratings]
    rated = [r.prediction is not None and item in {None, r.item} for r in ratings]
    return weighted_mean_of(errors, rated)
