"""Selective prediction: risk against coverage, as fewer questions are refused."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby, pairwise

import numpy as np

from kept.errors import InputError
from kept.evaluation.resampling import Floats, Statistic, group_starts

Number = int | float | Fraction

AREAS = ("aurc", "augrc", "excess_aurc", "excess_augrc")
# An area ends at the highest coverage that its system reaches, so that one who answers
# less has a smaller one. Those to the common coverage compare like with like.
RISK = "risk"
PAIRED = ("coverage", RISK, "AURC", "AUGRC", "AURC@common", "AUGRC@common")


@dataclass(frozen=True, slots=True)
class Attempt:
    """One question: the loss of its answer, or None if it was refused."""

    loss: Number | None
    confidence: Number


@dataclass(frozen=True, slots=True)
class Point:
    """The outcome if everything with at least this confidence is answered.

    *risk* is the mean loss of the answered questions; *burden* is the generalised
    risk, their loss divided by the number of all questions.
    """

    threshold: Number
    coverage: Fraction
    risk: Fraction
    burden: Fraction


@dataclass(frozen=True)
class RiskCoverage:
    """The curve of risk against coverage, from the highest confidence to the lowest.

    Equal confidences are one point. Areas are trapezoids up to the highest coverage
    reached. All figures are exact.
    """

    points: tuple[Point, ...]
    questions: int

    @property
    def coverage(self) -> Fraction:
        """The share of questions that were answered."""
        return self.points[-1].coverage if self.points else Fraction(0)

    @property
    def risk(self) -> Fraction | None:
        """The mean loss of all answers; None when everything was refused."""
        return self.points[-1].risk if self.points else None

    def risk_at(self, coverage: Number) -> Fraction | None:
        """Return the risk at the first point that reaches *coverage*, if one does."""
        reached = (p.risk for p in self.points if p.coverage >= coverage)
        return next(reached, None)

    def aurc(self, to: Number | None = None) -> Number:
        """Return the area under the risk, which starts at the first point's risk."""
        risks = [(p.coverage, p.risk) for p in self.points]
        return _area([(Fraction(0), y) for _, y in risks[:1]] + risks, to)

    def augrc(self, to: Number | None = None) -> Number:
        """Return the area under the generalised risk, which starts at 0."""
        burdens = [(p.coverage, p.burden) for p in self.points]
        return _area([(Fraction(0), Fraction(0)), *burdens], to)


def risk_coverage(attempts: Iterable[Attempt]) -> RiskCoverage:
    """Return the curve of *attempts*."""
    asked = list(attempts)
    answered = sorted(
        (a for a in asked if a.loss is not None), key=lambda a: -_known(a.confidence)
    )
    points: list[Point] = []
    count, lost = 0, Fraction(0)
    for threshold, group in groupby(answered, key=lambda a: a.confidence):
        for attempt in group:
            count += 1
            lost += Fraction(_known(attempt.loss))
        points.append(
            Point(
                threshold=threshold,
                coverage=Fraction(count, len(asked)),
                risk=lost / count,
                burden=lost / len(asked),
            )
        )
    return RiskCoverage(tuple(points), len(asked))


def optimum(attempts: Iterable[Attempt]) -> RiskCoverage:
    """Return the curve that the same answers would have under perfect confidences.

    Least loss first, equal losses together. Coarse ties of a real confidence can lie
    slightly below it in AURC (a chord under a concave curve), but not in AUGRC.
    """
    return risk_coverage(_with_hindsight(attempts))


def curve_names(coverages: Sequence[float] = ()) -> tuple[str, ...]:
    """Name the columns of `curve_of`."""
    return AREAS + tuple(f"risk at {c:g}" for c in coverages)


def curve_of(attempts: Sequence[Attempt], coverages: Sequence[float] = ()) -> Statistic:
    """Make the statistic of a whole curve, for resampling.

    Its columns are the areas, their excess over the optimum, and the risk at each
    of *coverages*; NaN where nothing was answered or a coverage is not reached.
    """
    real = _curves_of(attempts)
    ideal = _curves_of(_with_hindsight(attempts))

    def columns(counts: Floats) -> Floats:
        curves, best = real(counts), ideal(counts)
        areas = [_aurc(curves), _augrc(curves)]
        excess = [areas[0] - _aurc(best), areas[1] - _augrc(best)]
        risks = [_risk_at(curves, c) for c in coverages]
        return np.stack([*areas, *excess, *risks], axis=1)

    def nothing(counts: Floats) -> Floats:
        return np.full((len(counts), 4 + len(coverages)), np.nan)

    return columns if any(a.loss is not None for a in attempts) else nothing


def paired_curves(
    before: Sequence[Attempt], after: Sequence[Attempt]
) -> Callable[[Floats, Floats], tuple[Floats, Floats]]:
    """Return the function from counts to the figures of both, `PAIRED` in columns.

    The first argument counts how often the attempts of *before* are in the first
    system, the second those of *after*; the second system has the attempts that the
    first has not. The risk of a system that answers nothing is NaN.
    """
    curves = _curves_of([*before, *after])
    answered = (sum(a.loss is not None for a in each) for each in (before, after))
    common = min(answered) / len(before)

    def figures(first: Floats, second: Floats) -> tuple[Floats, Floats]:
        one = curves(np.concatenate((first, second), axis=1))
        other = curves(np.concatenate((second, first), axis=1))
        both = np.minimum(one.coverage[:, -1], other.coverage[:, -1])
        both = np.minimum(both, common)
        return _figures(one, both), _figures(other, both)

    return figures


def _with_hindsight(attempts: Iterable[Attempt]) -> list[Attempt]:
    """Return the attempts with confidences that order them by loss."""
    return [Attempt(a.loss, 0 if a.loss is None else -a.loss) for a in attempts]


@dataclass(frozen=True)
class _Curves:
    """Many curves over the same points, one per row."""

    coverage: Floats
    risk: Floats
    burden: Floats


def _curves_of(attempts: Sequence[Attempt]) -> Callable[[Floats], _Curves]:
    """Return the function from rows of counts to the curves of *attempts*."""
    answered = np.array([a.loss is not None for a in attempts], dtype=bool)
    loss = np.array([float(a.loss or 0) for a in attempts])
    confidence = np.array([float(a.confidence) for a in attempts])
    order = np.flatnonzero(answered)[np.argsort(-confidence[answered], kind="stable")]
    starts = group_starts(confidence[order])
    ordered = loss[order]

    def curves(counts: Floats) -> _Curves:
        drawn = counts[:, order]
        count = np.cumsum(np.add.reduceat(drawn, starts, axis=1), axis=1)
        lost = np.cumsum(np.add.reduceat(drawn * ordered, starts, axis=1), axis=1)
        total = counts.sum(axis=1, keepdims=True)
        risk = lost / np.maximum(count, 1)
        # A group that was not drawn has no point: give it its neighbour's risk.
        first = np.argmax(count > 0, axis=1)[:, None]
        risk = np.where(count > 0, risk, np.take_along_axis(risk, first, axis=1))
        return _Curves(count / total, risk, lost / total)

    return curves


def _figures(curves: _Curves, both: Floats) -> Floats:
    covered = curves.coverage[:, -1]
    return np.stack(
        [
            covered,
            np.where(covered > 0, curves.risk[:, -1], np.nan),
            _aurc(curves),
            _augrc(curves),
            _aurc(curves, both),
            _augrc(curves, both),
        ],
        axis=1,
    )


def _aurc(curves: _Curves, to: Floats | None = None) -> Floats:
    # The curve starts at the first point's risk: with no answer at all there is no risk
    # to average.
    return _trapezoid(curves.risk[:, :1], curves.risk, curves.coverage, to)


def _augrc(curves: _Curves, to: Floats | None = None) -> Floats:
    nothing = np.zeros_like(curves.burden[:, :1])
    return _trapezoid(nothing, curves.burden, curves.coverage, to)


def _risk_at(curves: _Curves, coverage: float) -> Floats:
    # Coverage is a quotient of floats here; an exact comparison would miss 0.9 reached
    # as 0.8999999.
    reached = curves.coverage >= coverage - 1e-12
    first = np.take_along_axis(curves.risk, reached.argmax(axis=1)[:, None], axis=1)
    return np.where(reached.any(axis=1), first[:, 0], np.nan)


def _area(steps: Sequence[tuple[Fraction, Fraction]], to: Number | None) -> Number:
    """Return the area under *steps* by trapezoid, cut off at *to*."""
    area: Number = 0
    for (x0, y0), (x1, y1) in pairwise(steps):
        if to is None or x1 <= to:
            area += (x1 - x0) * (y0 + y1) / 2
        elif x0 < to:
            cut = y0 + (y1 - y0) * (to - x0) / (x1 - x0)
            area += (to - x0) * (y0 + cut) / 2
    return area


def _trapezoid(
    start: Floats, heights: Floats, places: Floats, to: Floats | None
) -> Floats:
    """Return the area under *heights*, of which *start* is the one at 0.

    Each row is cut off at its own place in *to*.
    """
    x = np.concatenate((np.zeros_like(places[:, :1]), places), axis=1)
    y = np.concatenate((start, heights), axis=1)
    wide, rise = np.diff(x, axis=1), np.diff(y, axis=1)
    part = np.ones_like(wide)
    if to is not None:
        room = np.clip(to[:, None] - x[:, :-1], 0.0, wide)
        part = np.divide(room, wide, out=np.zeros_like(wide), where=wide > 0)
    return np.asarray((wide * part * (y[:, :-1] + rise * part / 2)).sum(axis=1))


def _known(value: Number | None) -> Number:
    if value is None or value != value:  # noqa: PLR0124 -- NaN differs from itself
        msg = f"a loss or confidence is {value}; both must be numbers"
        raise InputError(msg)
    return value
