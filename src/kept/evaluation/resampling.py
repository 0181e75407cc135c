"""Resampling: bootstrap intervals and randomisation tests, drawn by SciPy."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray

from kept._runtime import needing
from kept.errors import InputError

Floats = NDArray[np.float64]
Statistic = Callable[[Floats], Floats]
"""Takes a row per resample, which counts how often each item was drawn; returns a
value per row, or several in columns."""

Statistics = Mapping[str | tuple[str, ...], Statistic]
"""Statistics by name; one with several columns has a name for each."""

# Eight megabytes of counts at a time; 10,000 resamples of a large collection in one
# matrix would take gigabytes.
CELLS_PER_BATCH = 1_000_000
BILLION = 1e9


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

    def batch(self, size: int) -> int:
        """Return how many resamples of *size* items fit into one batch of memory."""
        return max(1, CELLS_PER_BATCH // size)


STANDARD = Resampling()


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate and its confidence interval at *level*."""

    estimate: float
    low: float
    high: float
    level: float = 0.95

    def __format__(self, spec: str) -> str:
        spec = spec or ".4f"
        return f"{self.estimate:{spec}} [{self.low:{spec}}, {self.high:{spec}}]"

    def __str__(self) -> str:
        return format(self)


def can_resample() -> bool:
    """Whether the extra ``eval`` is installed, which draws intervals."""
    return find_spec("scipy") is not None


def bootstrap(
    statistics: Statistics,
    size: int,
    *,
    clusters: Sequence[str] | None = None,
    how: Resampling = STANDARD,
) -> dict[str, Interval | None]:
    """Return a percentile interval for each statistic of *size* items.

    All statistics see the same resamples. With *clusters*, one name per item,
    whole clusters are drawn (participants, not their single answers). Resamples
    in which a statistic is undefined (NaN) are left out; a statistic that is
    undefined on the items themselves has no interval.
    """
    names = [
        name
        for names in statistics
        for name in ([names] if isinstance(names, str) else names)
    ]
    if size == 0:
        return dict.fromkeys(names)
    [estimates] = _rows(statistics, np.ones((1, size)))
    resampled = _resampled(statistics, clusters_of(size, clusters), how)
    return {
        name: _interval(float(estimate), values, how.level)
        for name, estimate, values in zip(names, estimates, resampled, strict=True)
    }


def mean_of(values: Sequence[float] | Floats) -> Statistic:
    """Make the statistic that averages *values*."""
    return weighted_mean_of(values, np.ones(len(values)))


def weighted_mean_of(
    values: Sequence[float] | Floats, among: Sequence[bool] | Floats
) -> Statistic:
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
    statistics: Statistics = {"mean": mean_of(values)}
    return bootstrap(statistics, len(values), clusters=clusters, how=how)["mean"]


def randomisation_test(deltas: Sequence[float], *, how: Resampling = STANDARD) -> float:
    """Return the two-sided p-value of a mean difference under random signs.

    All sign patterns are tried where there are no more than resamples;
    otherwise they are drawn, and the observed one is counted in.
    """
    with needing("eval", "a randomisation test"):
        from scipy.stats import permutation_test  # noqa: PLC0415 -- slow to load

    # Measures have 9 decimal places. Counted in billionths, their sums are exact, so
    # that sign patterns with equal sums compare as equal.
    whole = np.rint(np.asarray(deltas, dtype=np.float64) * BILLION)
    whole = whole[whole != 0]  # either sign gives the same sum
    if whole.size < 2:  # noqa: PLR2004 -- both signs give the same magnitude
        return 1.0
    test = permutation_test(
        (whole,),
        lambda signed, axis: np.abs(signed.sum(axis=axis)),
        permutation_type="samples",
        alternative="greater",
        n_resamples=how.resamples,
        batch=how.batch(whole.size),
        rng=np.random.default_rng(how.seed),
    )
    return float(test.pvalue)


def clusters_of(size: int, clusters: Sequence[str] | None) -> NDArray[np.intp]:
    """Return the number of the cluster that each item is in."""
    if clusters is None:
        return np.arange(size)
    if len(clusters) != size:
        msg = f"{size} items but {len(clusters)} clusters; give one per item"
        raise InputError(msg)
    return np.unique(np.asarray(clusters), return_inverse=True)[1]


def group_starts(ordered: Floats) -> NDArray[np.intp]:
    """Return where each run of equal values begins."""
    return np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))[: ordered.size]


def _resampled(
    statistics: Statistics, cluster_of: NDArray[np.intp], how: Resampling
) -> Floats:
    """Return a row for each statistic with its value in every resample."""
    with needing("eval", "a confidence interval"):
        from scipy import stats  # noqa: PLC0415 -- slow to load

    units = int(cluster_of.max()) + 1

    def evaluated(drawn: NDArray[np.intp], axis: int) -> Floats:
        rows = drawn + units * np.arange(len(drawn))[:, None]
        # One bincount for all resamples: the number of a row is added to each of its
        # draws.
        counts = np.bincount(rows.ravel(), minlength=drawn.size).reshape(drawn.shape)
        return _rows(statistics, counts[:, cluster_of].astype(np.float64)).T

    if units == 1:  # SciPy demands two; every resample of one is that one
        return evaluated(np.zeros((1, 1), dtype=np.intp), -1)
    with warnings.catch_warnings():
        # SciPy warns where its own interval or standard error is undefined. Neither
        # is used: our intervals leave undefined resamples out.
        warnings.simplefilter("ignore")
        result = stats.bootstrap(
            (np.arange(units),),
            evaluated,
            n_resamples=how.resamples,
            batch=how.batch(len(cluster_of)),
            method="percentile",
            rng=np.random.default_rng(how.seed),
        )
    return np.asarray(result.bootstrap_distribution)


def _rows(statistics: Statistics, counts: Floats) -> Floats:
    """Return a row per resample with the values of all statistics side by side."""
    return np.concatenate(
        [each(counts).reshape(len(counts), -1) for each in statistics.values()], axis=1
    )


def _interval(estimate: float, resampled: Floats, level: float) -> Interval | None:
    # A resample may hold no unanswerable question at all, and has no false citations
    # then.
    defined = resampled[np.isfinite(resampled)]
    if not np.isfinite(estimate) or defined.size == 0:
        return None
    tail = (1 - level) / 2
    low, high = np.quantile(defined, [tail, 1 - tail])
    return Interval(round(estimate, 9), round(low, 9), round(high, 9), level)
