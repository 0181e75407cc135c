"""How well probabilities are calibrated, and how well scores separate two classes."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kept._runtime import needing
from kept.errors import InputError
from kept.evaluation.resampling import Floats, Statistic, group_starts

BINS = 10


@dataclass(frozen=True, slots=True)
class ReliabilityBin:
    """One row of a reliability table: mean probability and share of truths."""

    low: float
    high: float
    count: int
    promised: float
    observed: float


def brier(probabilities: Sequence[float], truths: Sequence[bool]) -> float | None:
    """Return the Brier score: the mean squared error of the probabilities."""
    promised, observed = _paired(probabilities, truths)
    if promised.size == 0:
        return None
    return round(float(np.mean((promised - observed) ** 2)), 9)


def reliability(
    probabilities: Sequence[float], truths: Sequence[bool], bins: int = BINS
) -> tuple[ReliabilityBin, ...]:
    """Compare probabilities and truths in *bins* of equal width, without empty ones.

    A bin includes its lower edge and not its upper one; the last includes 1.
    """
    promised, observed = _paired(probabilities, truths)
    if promised.size and (promised.min() < 0 or promised.max() > 1):
        msg = (
            f"probabilities lie between 0 and 1; these reach from {promised.min()} to "
            f"{promised.max()}"
        )
        raise InputError(msg)
    place = np.minimum((promised * bins).astype(int), bins - 1)
    return tuple(
        ReliabilityBin(
            low=i / bins,
            high=(i + 1) / bins,
            count=int(inside.sum()),
            promised=round(float(promised[inside].mean()), 9),
            observed=round(float(observed[inside].mean()), 9),
        )
        for i in range(bins)
        if (inside := place == i).any()
    )


def calibration_error(
    probabilities: Sequence[float], truths: Sequence[bool], bins: int = BINS
) -> float | None:
    """Return the expected calibration error over *bins* of equal width.

    It is the gap between mean probability and share of truths in each bin, weighted
    by the bin's size.
    """
    table = reliability(probabilities, truths, bins)
    total = sum(row.count for row in table)
    if not total:
        return None
    gaps = sum(row.count * abs(row.promised - row.observed) for row in table)
    return round(gaps / total, 9)


def auroc(scores: Sequence[float], truths: Sequence[bool]) -> float | None:
    """Return how often a true case outscores a false one; a tie counts half."""
    statistic = auroc_of(scores, truths)
    value = float(statistic(np.ones((1, len(scores))))[0]) if len(scores) else np.nan
    return None if np.isnan(value) else round(value, 9)


def auroc_of(scores: Sequence[float], truths: Sequence[bool]) -> Statistic:
    """Make the statistic for `auroc`; NaN where one of the classes is empty.

    A score may be minus infinity, for a question that was refused without one.
    """
    values, positive = _paired(scores, truths)
    order = np.argsort(values, kind="stable")
    starts = group_starts(values[order])
    truth = positive[order]

    def area(counts: Floats) -> Floats:
        drawn = counts[:, order]
        true = np.add.reduceat(drawn * truth, starts, axis=1)
        false = np.add.reduceat(drawn * (1 - truth), starts, axis=1)
        below = np.cumsum(false, axis=1) - false / 2
        pairs = true.sum(axis=1) * false.sum(axis=1)
        won = (true * below).sum(axis=1)
        return np.where(pairs > 0, won / np.maximum(pairs, 1), np.nan)

    return area


def spearman(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Return the rank correlation; ties share their mean rank, None if flat."""
    if len(first) != len(second):
        msg = f"{len(first)} values on one side, {len(second)} on the other"
        raise InputError(msg)
    if len(set(first)) < 2 or len(set(second)) < 2:  # noqa: PLR2004 -- flat
        return None
    with needing("eval", "a rank correlation"):
        from scipy.stats import spearmanr  # noqa: PLC0415 -- slow to load

    return round(float(spearmanr(first, second).statistic), 9)


def _paired(
    scores: Sequence[float], truths: Sequence[bool]
) -> tuple[Floats, NDArray[np.float64]]:
    if len(scores) != len(truths):
        msg = f"{len(scores)} scores but {len(truths)} truths; give one per score"
        raise InputError(msg)
    values = np.asarray(scores, dtype=np.float64)
    if np.isnan(values).any():
        msg = f"the score at position {int(np.isnan(values).argmax())} is not a number"
        raise InputError(msg)
    return values, np.asarray(truths, dtype=np.float64)
