"""Curves: what each signal adds to the log-odds of being relevant, never falling."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from kept.errors import InputError
from kept.kernel.signals import Floats

PLACES = 6


@dataclass(frozen=True, slots=True)
class Curve:
    """Straight lines between *knots* of one signal, level beyond the outer two.

    The *values* never fall: more of any evidence never lowers the relevance.
    """

    signal: str
    knots: tuple[float, ...]
    values: tuple[float, ...]

    def __post_init__(self) -> None:
        problem = self._problem()
        if problem:
            msg = f"the curve of {self.signal!r} {problem}; fit the calibration again"
            raise InputError(msg)

    def _problem(self) -> str | None:
        if len(self.knots) < 2 or len(self.knots) != len(self.values):  # noqa: PLR2004 -- a line has two ends
            return (
                f"has {len(self.knots)} knots and {len(self.values)} values, "
                "expected two or more, one value for each"
            )
        if not all(map(math.isfinite, (*self.knots, *self.values))):
            return "has a number that is not finite"
        if any(b <= a for a, b in pairwise(self.knots)):
            return "has knots that do not rise"
        if any(b < a for a, b in pairwise(self.values)):
            return "has values that fall, expected never less for more evidence"
        return None

    def __call__(self, measured: Floats) -> Floats:
        """Return what each measurement adds to the log-odds."""
        return np.interp(measured, self.knots, self.values)


def basis(
    knots: Mapping[str, Sequence[float]], signals: Mapping[str, Floats]
) -> Floats:
    """Return one column per step between knots: how much of it is climbed, 0 to 1."""
    columns = [
        np.clip((signals[name] - low) / (high - low), 0.0, 1.0)
        for name, places in knots.items()
        for low, high in pairwise(places)
    ]
    return np.stack(columns, axis=1)


def climbed(
    knots: Mapping[str, Sequence[float]], steps: Sequence[float]
) -> tuple[Curve, ...]:
    """Return the curves that climb *steps* between *knots*, each from 0."""
    curves: list[Curve] = []
    rest = iter(steps)
    for name, places in knots.items():
        values = [0.0]
        for _ in places[1:]:
            values.append(round(values[-1] + float(next(rest)), PLACES))
        curves.append(Curve(name, tuple(map(float, places)), tuple(values)))
    return tuple(curves)


def steps_of(curves: Sequence[Curve]) -> Floats:
    """Return how much each curve climbs from knot to knot, one after the other."""
    return np.array([b - a for curve in curves for a, b in pairwise(curve.values)])


def probability(odds: Floats) -> Floats:
    """Return the probability of log-odds, without overflow at either end."""
    # exp() of a negative number cannot overflow.
    small = np.exp(-np.abs(odds))
    likely: Floats = np.where(odds >= 0.0, 1.0, small) / (1.0 + small)
    return likely
