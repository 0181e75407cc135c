"""Candidates by the pool: made and copied for every query, so made quickly."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kept.errors import MissingSignalError
from kept.model import Candidate, Chunk, Document, open_twin

WAVE_STEP = 3.0
"""How far the waves of recall lie apart in score: no gap reaches across."""


_OpenCandidate = open_twin(Candidate)


def rescored(
    candidate: Candidate, score: float, signals: Mapping[str, float]
) -> Candidate:
    """Return a copy with a new score and *signals* in place of the old ones.

    The caller merges the signals.
    """
    copy: Any = _OpenCandidate()
    copy.chunk = candidate.chunk
    copy.document = candidate.document
    copy.score = score
    copy.signals = signals
    copy.protected = candidate.protected
    copy.pinned = candidate.pinned
    copy.vector = candidate.vector
    copy.__class__ = Candidate
    frozen: Candidate = copy
    return frozen


def candidate_of(
    chunk: Chunk,
    document: Document,
    score: float,
    signals: Mapping[str, float],
    vector: NDArray[np.float32],
) -> Candidate:
    """Return a candidate as recall hands it over."""
    made: Any = _OpenCandidate()
    made.chunk = chunk
    made.document = document
    made.score = score
    made.signals = signals
    made.protected = False
    made.pinned = False
    made.vector = vector
    made.__class__ = Candidate
    frozen: Candidate = made
    return frozen


def demand_new(stage: str, candidates: tuple[Candidate, ...], *names: str) -> None:
    """Raise if a signal that *stage* adds is there already: signals are set once."""
    for name in names:
        if [c for c in candidates if name in c.signals]:
            msg = f"{stage}: the signal {name!r} is set already; run the stage once"
            raise ValueError(msg)


def by_wave(candidates: tuple[Candidate, ...]) -> list[tuple[Candidate, ...]]:
    """Part candidates by the wave of recall that brought them, the first first.

    All have the signal or none has: one search goes in one wave or in several.
    """
    if not candidates or "wave" not in candidates[0].signals:
        return [candidates]
    waves: dict[float, list[Candidate]] = {}
    for candidate in candidates:
        waves.setdefault(candidate.signal("wave"), []).append(candidate)
    return [tuple(waves[wave]) for wave in sorted(waves)]


def first_wave(candidates: tuple[Candidate, ...]) -> tuple[Candidate, ...]:
    """Return those by which a question as a whole is judged, however many it wants."""
    return by_wave(candidates)[0]


def column(candidates: tuple[Candidate, ...], name: str) -> NDArray[np.float64]:
    """Return one signal of every candidate as an array, or say who lacks it."""
    return np.array(readings(candidates, name), dtype=np.float64)


def readings(candidates: Sequence[Candidate], name: str) -> list[float]:
    """Return one signal of every candidate, or say who lacks it."""
    try:
        return [c.signals[name] for c in candidates]
    except KeyError:
        without = next(c for c in candidates if name not in c.signals)
        raise MissingSignalError(without.id, name, without.signals) from None
