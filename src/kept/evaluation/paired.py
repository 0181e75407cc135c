"""Paired deltas: how a figure changed from A to B over what both were asked."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from kept.errors import InputError
from kept.evaluation.resampling import (
    STANDARD,
    Floats,
    Interval,
    Resampling,
    bootstrap,
    clusters_of,
)
from kept.evaluation.selective import PAIRED, Attempt, paired_curves

# Sums of floats differ in their last bits with the order of the terms.
TIE = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Delta:
    """How one figure changed from A to B, over the questions both have.

    Wins, ties and losses are counted where each question has a value of its own.
    """

    measure: str
    before: float
    after: float
    difference: Interval
    p_value: float
    wins: int | None = None
    ties: int | None = None
    losses: int | None = None


def named_delta(measure: str, deltas: Sequence[Delta]) -> Delta:
    """Return the change of one measure; the error lists those there are."""
    for each in deltas:
        if each.measure == measure:
            return each
    there = ", ".join(d.measure for d in deltas)
    msg = f"the runs do not share the measure {measure!r}; they share: {there}"
    raise InputError(msg)


def curve_deltas(
    before: Sequence[Attempt],
    after: Sequence[Attempt],
    *,
    clusters: Sequence[str] | None = None,
    how: Resampling = STANDARD,
) -> tuple[Delta, ...]:
    """Return the change of `PAIRED`, the n-th of *before* paired with that of *after*.

    Intervals draw whole *clusters*, such as participants. The p-value is that of a
    randomisation test: if A and B were alike, swapping them for some of the clusters
    would often give as large a difference. A figure that is not defined for both is
    left out.
    """
    if not any(attempt.loss is not None for attempt in (*before, *after)):
        return ()
    size, figures = len(before), paired_curves(before, after)

    def change(first: Floats, second: Floats) -> Floats:
        a, b = figures(first, second)
        return b - a

    [one], [other] = figures(np.ones((1, size)), np.zeros((1, size)))
    intervals = bootstrap(
        {PAIRED: lambda counts: change(counts, np.zeros_like(counts))},
        size,
        clusters=clusters,
        how=how,
    )
    swapped = np.concatenate(
        [change(1 - rows, rows) for rows in _swaps(clusters_of(size, clusters), how)]
    )
    deltas: list[Delta] = []
    for place, name in enumerate(PAIRED):
        interval = intervals[name]
        if interval is None:
            continue
        deltas.append(
            Delta(
                measure=name,
                before=round(float(one[place]), 9),
                after=round(float(other[place]), 9),
                difference=interval,
                p_value=_share_as_large(swapped[:, place], how),
            )
        )
    return tuple(deltas)


def _share_as_large(differences: Floats, how: Resampling) -> float:
    """Return the share of differences as large as the first, the observed one."""
    defined = np.abs(differences[np.isfinite(differences)])
    return round(float(np.mean(defined >= defined[0] - TIE)), 9)


def _swaps(cluster_of: np.ndarray, how: Resampling) -> Iterator[Floats]:
    """Yield rows of 1 for what is swapped, 0 for what is not; the first swaps nothing.

    All ways to swap are tried where there are no more than resamples; otherwise they
    are drawn.
    """
    size, units = len(cluster_of), int(cluster_of.max()) + 1
    generator = np.random.default_rng(how.seed)
    exact = 2**units <= how.resamples
    total = 2**units if exact else how.resamples + 1
    for start in range(0, total, how.batch(size)):
        numbers = np.arange(start, min(start + how.batch(size), total))
        if exact:
            rows = numbers[:, None] >> np.arange(units) & 1
        else:
            rows = generator.integers(0, 2, (len(numbers), units))
            rows[numbers == 0] = 0
        yield rows[:, cluster_of].astype(np.float64)
