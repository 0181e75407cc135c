"""Signals of a whole pool: read at once, and set only once."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kept.errors import MissingSignalError
from kept.kernel.model import Candidate
from kept.kernel.pool import Pool

WAVE_STEP = 3.0
"""How far the waves of recall lie apart in score: no gap reaches across."""


def demand_new(stage: str, candidates: Sequence[Candidate], name: str) -> None:
    """Raise if the signal that *stage* adds is set already."""
    there = (
        candidates.holds(name)
        if isinstance(candidates, Pool)
        else any(name in c.signals for c in candidates)
    )
    if there:
        msg = f"{stage}: the signal {name!r} is set already; run the stage once"
        raise ValueError(msg)


def column(candidates: Sequence[Candidate], name: str) -> NDArray[np.float64]:
    """Return one signal of every candidate as an array, or say who lacks it."""
    if isinstance(candidates, Pool):
        return candidates.readings(name)
    return np.array(readings(candidates, name), dtype=np.float64)


def readings(candidates: Sequence[Candidate], name: str) -> list[float]:
    """Return one signal of every candidate, or say who lacks it."""
    if isinstance(candidates, Pool):
        values: list[float] = candidates.readings(name).tolist()
        return values
    try:
        return [c.signals[name] for c in candidates]
    except KeyError:
        without = next(c for c in candidates if name not in c.signals)
        raise MissingSignalError(without.id, name, without.signals) from None
