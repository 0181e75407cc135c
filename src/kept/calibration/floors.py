"""Floors: the lowest relevance to cite at for a promised rate of false citations.

The promise is held by the Clopper-Pearson bound, which is exact for any number of
judged questions. A floor is chosen after looking, so the bound has to hold for
whichever is chosen: among the unanswerable, where the rate only falls as the floor
rises, floors are tried from the top down until the first that fails; among the
cited, a short list of floors shares the allowed error (Bonferroni). Which floors
are tried follows from the scores alone, never from the labels.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from kept.errors import InputError
from kept.signals import PLACES, Floats

Among = Literal["cited", "unanswerable"]

CONFIDENCE = 0.95
FINER = 1.5
BISECTIONS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    """A chosen floor and what is known of it.

    *false* of *tried* went wrong at it; with *confidence* the true rate is at most
    *bound*, which is at most the *alpha* that was asked for.
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
    passage, and whether that passage deserves the citation. A false citation is
    one at or above the floor that does not. Its rate is *among* the ``cited``, or
    among the ``unanswerable``: the questions whose best passage deserves nothing.
    None means that there are too few questions, or too many false ones, to promise
    anything.
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
    wrong = ~np.asarray(labels, dtype=bool)
    falling = among == "unanswerable"
    floors = _every(values) if falling else _some(values, alpha, confidence)
    sure = confidence if falling else 1.0 - (1.0 - confidence) / max(len(floors), 1)
    chosen: Floor | None = None
    for at_least in floors:
        cited = values >= at_least
        tried = int(wrong.sum() if falling else cited.sum())
        false = int((cited & wrong).sum())
        if held(false, tried, alpha, sure):
            chosen = Floor(
                at_least=at_least,
                alpha=alpha,
                confidence=confidence,
                bound=alpha,  # at most; made exact below
                false=false,
                tried=tried,
                cited=int(cited.sum()),
                questions=len(values),
            )
        elif falling:
            break
    if chosen is None:
        return None
    bound = upper_bound(chosen.false, chosen.tried, sure)
    return replace(chosen, bound=round(bound, PLACES))


def held(false: int, tried: int, alpha: float, confidence: float) -> bool:
    """Tell whether the upper bound of *false* of *tried* is at most *alpha*."""
    return false < tried and _at_most(false, tried, alpha) <= 1.0 - confidence


def upper_bound(false: int, tried: int, confidence: float = CONFIDENCE) -> float:
    """Return the Clopper-Pearson upper bound of a rate met as *false* of *tried*."""
    if not 0 <= false <= tried:
        msg = f"{false} of {tried} is no count; expected 0 to {tried}"
        raise InputError(msg)
    if false == tried:
        return 1.0
    low, high = false / tried, 1.0
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        if _at_most(false, tried, middle) > 1.0 - confidence:
            low = middle
        else:
            high = middle
    return high


def _at_most(false: int, tried: int, rate: float) -> float:
    """Return the chance of at most *false* of *tried* when each has *rate*."""
    whole = math.lgamma(tried + 1)
    return math.fsum(
        math.exp(
            whole
            - math.lgamma(count + 1)
            - math.lgamma(tried - count + 1)
            + count * math.log(rate)
            + (tried - count) * math.log1p(-rate)
        )
        for count in range(false + 1)
    )


def _every(values: Floats) -> list[float]:
    """Return every score as a floor, the highest first."""
    floors: list[float] = np.unique(values)[::-1].tolist()
    return floors


def _some(values: Floats, alpha: float, confidence: float) -> list[float]:
    """Return a few floors, the highest first.

    The first cites as many as a flawless record needs for the promise; each next
    one cites half as many again, and the last cites all.
    """
    ordered = np.sort(values)[::-1]
    count: float = math.ceil(math.log(1.0 - confidence) / math.log(1.0 - alpha))
    floors: list[float] = []
    while count < len(ordered):
        floors.append(float(ordered[math.ceil(count) - 1]))
        count *= FINER
    if floors or count == len(ordered):
        floors.append(float(ordered[-1]))
    return list(dict.fromkeys(floors))
