"""Candidates by the pool: made and copied for every query, so made quickly.

Filling the slots directly takes a third of the time of a frozen dataclass's own way.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from kept.errors import MissingSignalError
from kept.model import Candidate, Chunk, Document

WAVE_STEP = 3.0
"""How far the waves of recall lie apart in score: no gap reaches across."""

_set = {name: getattr(Candidate, name).__set__ for name in Candidate.__slots__}
_chunk, _document, _score = _set["chunk"], _set["document"], _set["score"]
_signals, _protected = _set["signals"], _set["protected"]
_pinned, _vector = _set["pinned"], _set["vector"]


def rescored(
    candidate: Candidate, score: float, signals: Mapping[str, float]
) -> Candidate:
    """Return a copy with a new score and *signals* in place of the old ones.

    The caller merges the signals.
    """
    copy = object.__new__(Candidate)
    _chunk(copy, candidate.chunk)
    _document(copy, candidate.document)
    _score(copy, score)
    _signals(copy, signals)
    _protected(copy, candidate.protected)
    _pinned(copy, candidate.pinned)
    _vector(copy, candidate.vector)
    return copy


def candidate_of(
    chunk: Chunk,
    document: Document,
    score: float,
    signals: Mapping[str, float],
    vector: NDArray[np.float32],
) -> Candidate:
    """Return a candidate as recall hands it over."""
    made = object.__new__(Candidate)
    _chunk(made, chunk)
    _document(made, document)
    _score(made, score)
    _signals(made, signals)
    _protected(made, False)  # noqa: FBT003 -- a slot's value
    _pinned(made, False)  # noqa: FBT003 -- a slot's value
    _vector(made, vector)
    return made


def demand_new(stage: str, candidates: tuple[Candidate, ...], *names: str) -> None:
    """Raise if a signal that *stage* adds is there already: signals are set once."""
    for name in names:
        if any(name in c.signals for c in candidates):
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
    """Return one signal of every candidate, or say who lacks it."""
    try:
        return np.array([c.signals[name] for c in candidates], dtype=np.float64)
    except KeyError:
        without = next(c for c in candidates if name not in c.signals)
        raise MissingSignalError(without.id, name, without.signals) from None
