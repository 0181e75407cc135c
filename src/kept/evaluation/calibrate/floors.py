"""Floors: the lowest relevance to cite at for a promised rate of false citations.

The promise is held by the Clopper-Pearson bound, which is exact for any number of
judged questions. A floor is chosen after looking, so the bound has to hold for
whichever is chosen. Among the unanswerable the rate only falls as the floor rises:
floors are tried from the top down until the first that fails. Among the cited, a
short list of floors shares the allowed error (Bonferroni). Which floors are tried
depends on the scores alone, never on the labels.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from kept._runtime import needing
from kept.errors import InputError
from kept.kernel.signals import PLACES, Floats

Among = Literal["cited", "unanswerable"]
Counts = NDArray[np.intp]

CONFIDENCE = 0.95
FINER = 1.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    """A chosen floor, and the evidence for it.

    *false* of *tried* citations at it are wrong; with *confidence* the true rate is
    at most *bound*, which is at most the requested *alpha*.
    """

    at_least: float
    alpha: float
    confidence: float
    bound: float
    false: int
    tried: int
    cited: int
    questions: int


def choose_floor(
    scores: Sequence[float],
    labels: Sequence[bool],
    alpha: float,
    *,
    confidence: float = CONFIDENCE,
    among: Among = "cited",
) -> Floor | None:
    """Return the lowest floor that keeps false citations below *alpha*, if any does.

    Give one score and one label for each question: the relevance of its best
    passage, and whether that passage is relevant. A false citation is an irrelevant
    passage at or above the floor. Its rate is counted *among* the ``cited``, or among
    the ``unanswerable``: the questions whose best passage is irrelevant. None means
    that there are too few questions, or too many false citations, for any promise.
    """
    if not 0.0 < alpha < 1.0 or not 0.0 < confidence < 1.0:
        msg = (
            f"alpha is {alpha!r}, confidence {confidence!r}; expected 0 to 1, exclusive"
        )
        raise InputError(msg)
    if len(scores) != len(labels):
        msg = f"{len(scores)} scores but {len(labels)} labels; give one per question"
        raise InputError(msg)
    values = np.asarray(scores, dtype=np.float64)
    wrong = values[~np.asarray(labels, dtype=bool)]
    # Among the unanswerable the denominator is fixed, so the rate falls with the floor.
    falling = among == "unanswerable"
    floors = np.unique(values)[::-1] if falling else _tried(values, alpha, confidence)
    sure = confidence if falling else 1.0 - (1.0 - confidence) / max(len(floors), 1)
    cited = _at_or_above(values, floors)
    false = _at_or_above(wrong, floors)
    tried = np.full_like(cited, len(wrong)) if falling else cited
    bounds = _upper_bounds(false, tried, sure)
    keeps = bounds <= alpha
    if falling:
        # Below the first that fails none was tried, so no bound holds there.
        keeps = np.logical_and.accumulate(keeps)
    if not keeps.any():
        return None
    lowest = np.flatnonzero(keeps)[-1]
    return Floor(
        at_least=float(floors[lowest]),
        alpha=alpha,
        confidence=confidence,
        bound=round(float(bounds[lowest]), PLACES),
        false=int(false[lowest]),
        tried=int(tried[lowest]),
        cited=int(cited[lowest]),
        questions=len(values),
    )


def upper_bound(false: int, tried: int, confidence: float = CONFIDENCE) -> float:
    """Return the Clopper-Pearson upper bound of a rate met as *false* of *tried*."""
    if not 0 <= false <= tried:
        msg = f"{false} of {tried} is no count; expected 0 to {tried}"
        raise InputError(msg)
    return float(_upper_bounds(np.array([false]), np.array([tried]), confidence)[0])


def _upper_bounds(false: Counts, tried: Counts, confidence: float) -> Floats:
    with needing("eval", "the bound of an error rate"):
        from scipy.stats import beta  # noqa: PLC0415 -- slow to load

    right = tried - false
    bounds = beta.ppf(confidence, false + 1, np.maximum(right, 1))
    return np.where(right > 0, bounds, 1.0)


def _at_or_above(values: Floats, floors: Floats) -> Counts:
    """Count the *values* that each floor lets through."""
    return len(values) - np.searchsorted(np.sort(values), floors)


def _tried(values: Floats, alpha: float, confidence: float) -> Floats:
    """Return a few floors, the highest first.

    The first cites as many as a flawless record needs for the promise; each next
    one cites half as many again, and the last cites all.
    """
    ordered = np.sort(values)[::-1]
    count: float = math.ceil(math.log(1.0 - confidence) / math.log(1.0 - alpha))
    places = []
    while count < len(ordered):
        places.append(math.ceil(count) - 1)
        count *= FINER
    if places or count == len(ordered):
        places.append(len(ordered) - 1)
    return np.unique(ordered[places])[::-1]
