"""Resampling: intervals and tests from shuffling what was measured."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kept.errors import InputError

Floats = NDArray[np.float64]
Statistic = Callable[[Floats], Floats]
"""Takes rows of counts (how often each item was drawn), gives a value a row, or
several in columns."""

Statistics = Mapping[str | tuple[str, ...], Statistic]
"""Statistics by name; one with several columns has a name for each."""

CELLS_AT_ONCE = 300_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Resampling:
    """How often to draw, from which seed, and how wide the intervals are."""

    resamples: int = 10_000
    seed: int = 42
    level: float = 0.95

    def __post_init__(self) -> None:
        if self.resamples < 1 or not 0 < self.level < 1:
            msg = (
                f"{self.resamples} resamples at level {self.level} were asked for; ask "
                "for at least one, at a level between 0 and 1"
            )
            raise InputError(msg)


STANDARD = Resampling()


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate, and where it lies with the probability *level*."""

    estimate: float
    low: float
    high: float
    level: float = 0.95

    def __str__(self) -> str:
        return f"{self.estimate:.4f} [{self.low:.4f}, {self.high:.4f}]"

    def __format__(self, spec: str) -> str:
        if not spec:
            return str(self)
        return f"{self.estimate:{spec}} [{self.low:{spec}}, {self.high:{spec}}]"


def bootstrap(
    statistics: Statistics,
    size: int,
    *,
    clusters: Sequence[str] | None = None,
    how: Resampling = STANDARD,
) -> dict[str, Interval | None]:
    """Return a percentile interval for each statistic of *size* items.

    All statistics see the same resamples. With *clusters*, one name per item,
    whole clusters are drawn (participants, not their single answers). Where a
    statistic is undefined (NaN) its resamples are left out; a statistic that is
    undefined on the items themselves has no interval.
    """
    names = _names(statistics)
    if size == 0:
        return dict.fromkeys(names)
    rows = [_columns(statistics, c) for c in _draws(size, clusters, how)]
    [whole] = _columns(statistics, np.ones((1, size)))
    drawn = np.concatenate(rows)
    return {
        name: _interval(float(whole[i]), drawn[:, i], how.level)
        for i, name in enumerate(names)
    }


def mean_of(values: Sequence[float] | Floats) -> Statistic:
    """Make the statistic that averages *values*."""
    array = np.asarray(values, dtype=np.float64)

    def mean(counts: Floats) -> Floats:
        return np.asarray(counts @ array / counts.sum(axis=1))

    return mean


def weighted_mean_of(values: Sequence[float], among: Sequence[bool]) -> Statistic:
    """Make the statistic that averages *values* over those *among*; NaN if none is."""
    part = np.asarray(among, dtype=np.float64)
    array = np.asarray(values, dtype=np.float64) * part

    def mean(counts: Floats) -> Floats:
        total = counts @ part
        return np.where(total > 0, counts @ array / np.maximum(total, 1), np.nan)

    return mean


def share_of(flags: Sequence[bool], among: Sequence[bool]) -> Statistic:
    """Make the statistic that says which share of *among* is also flagged."""
    return weighted_mean_of([float(flag) for flag in flags], among)


def mean_interval(
    values: Sequence[float],
    *,
    clusters: Sequence[str] | None = None,
    how: Resampling = STANDARD,
) -> Interval | None:
    """Return the bootstrap interval of a mean; None for no values."""
    return bootstrap(
        {"mean": mean_of(values)},
        len(values),
        clusters=clusters,
        how=how,
    )["mean"]


def randomisation_test(deltas: Sequence[float], *, how: Resampling = STANDARD) -> float:
    """Return the two-sided p-value of a mean difference under random signs.

    All sign patterns are tried where there are no more than resamples;
    otherwise they are drawn, and the observed one is counted in.
    """
    array = np.asarray(deltas, dtype=np.float64)
    if array.size == 0:
        return 1.0
    observed = abs(array.sum()) - 1e-12 * max(1.0, float(np.abs(array).sum()))
    if 2**array.size <= how.resamples:
        patterns = (np.arange(2**array.size)[:, None] >> np.arange(array.size)) & 1
        return float(np.mean(np.abs((1 - 2 * patterns) @ array) >= observed))
    rng = np.random.default_rng(how.seed)
    extreme = 0
    for rows in _batches(how.resamples, array.size):
        signs = 1 - 2 * rng.integers(0, 2, size=(rows, array.size), dtype=np.int8)
        extreme += int(np.sum(np.abs(signs @ array) >= observed))
    return (1 + extreme) / (1 + how.resamples)


def _names(statistics: Statistics) -> list[str]:
    return [
        name
        for names in statistics
        for name in ([names] if isinstance(names, str) else names)
    ]


def _columns(statistics: Statistics, counts: Floats) -> Floats:
    """Put the values of all statistics side by side."""
    return np.concatenate(
        [each(counts).reshape(len(counts), -1) for each in statistics.values()], axis=1
    )


def group_starts(ordered: Floats) -> NDArray[np.intp]:
    """Return where each run of equal values begins."""
    return np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))[: ordered.size]


def _draws(
    size: int, clusters: Sequence[str] | None, how: Resampling
) -> Iterator[Floats]:
    """Yield rows of counts: how often each item is in each resample."""
    if clusters is None:
        units, member = size, None
    else:
        names, member = np.unique(np.asarray(clusters), return_inverse=True)
        units = len(names)
        if len(member) != size:
            msg = f"{size} items but {len(member)} clusters; give one per item"
            raise InputError(msg)
    rng = np.random.default_rng(how.seed)
    for rows in _batches(how.resamples, max(size, units)):
        drawn = rng.integers(0, units, size=(rows, units))
        drawn += units * np.arange(rows)[:, None]
        counts = np.bincount(drawn.ravel(), minlength=rows * units)
        table = counts.reshape(rows, units).astype(np.float64)
        yield table if member is None else table[:, member]


def _batches(resamples: int, size: int) -> Iterator[int]:
    step = max(1, CELLS_AT_ONCE // size)
    for start in range(0, resamples, step):
        yield min(step, resamples - start)


def _interval(estimate: float, drawn: Floats, level: float) -> Interval | None:
    defined = drawn[np.isfinite(drawn)]
    if not np.isfinite(estimate) or defined.size == 0:
        return None
    tail = (1 - level) / 2
    low, high = np.quantile(defined, [tail, 1 - tail])
    return Interval(round(estimate, 9), round(low, 9), round(high, 9), level)
