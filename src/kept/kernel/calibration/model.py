"""The calibration itself: from absolute signals to relevance, a probability."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kept.errors import InputError
from kept.kernel.calibration.curves import Curve, probability
from kept.kernel.model import Candidate
from kept.kernel.pool import Pool
from kept.kernel.signals import PLACES, Floats
from kept.text.languages import in_latin_script

ANY_EMBEDDER = "*"
# Half of a question's words bear a cosine of 1 out; with none of them shared,
# similarity counts for nothing.
PER_SHARE = 2.0


@dataclass(frozen=True, slots=True)
class Calibration:
    """A sum of rising curves, one for each signal, as log-odds of being relevant.

    It is *name*d and belongs to the embedder whose id starts with *embedder*, or
    to any if that is ``*``. The relevance of a candidate depends on its own signals
    alone. *provenance* says what it was fitted on and how it did on data left out.

    With *latin_only*, the embedder was taught one script: texts in another are all
    near to each other, whatever they say. For a question in such a script, the
    cosine counts for no more than shared words bear out (``meaning``).
    """

    name: str
    embedder: str
    intercept: float
    curves: tuple[Curve, ...]
    provenance: Mapping[str, Any] = field(
        default_factory=dict, compare=False, hash=False, repr=False
    )
    latin_only: bool = False

    @property
    def id(self) -> str:
        """The name, and a digest of every number that decides a relevance."""
        numbers = (
            self.embedder,
            self.intercept,
            [(c.signal, c.knots, c.values) for c in self.curves],
            *(["latin_only"] if self.latin_only else []),
        )
        # The digest covers only what decides a relevance: provenance may be corrected
        # without changing fingerprints.
        digest = hashlib.sha256(json.dumps(numbers).encode()).hexdigest()
        return f"{self.name}-{digest[:12]}"

    @property
    def signals(self) -> tuple[str, ...]:
        """The signals that it reads."""
        return tuple(curve.signal for curve in self.curves)

    def suits(self, embedder_id: str) -> bool:
        """Return whether it was fitted for the embedder of this id."""
        return self.embedder == ANY_EMBEDDER or embedder_id.startswith(self.embedder)

    def demand(self, embedder_id: str) -> "Calibration":
        """Return itself, or raise if it was fitted for another embedder."""
        if self.suits(embedder_id):
            return self
        msg = (
            f"the calibration {self.name!r} was fitted for embedder {self.embedder!r}, "
            f"but this knowledge base uses {embedder_id!r}; fit another with "
            "'kept calibrate', or leave the setting out to use the one that ships"
        )
        raise InputError(msg)

    def probabilities(self, signals: Mapping[str, Floats]) -> Floats:
        """Return the relevance of each measurement, rounded to nine places."""
        odds: Floats | float = self.intercept
        for curve in self.curves:
            odds = odds + curve(signals[curve.signal])
        return np.round(probability(np.asarray(odds, dtype=np.float64)), PLACES)

    def __call__(self, candidates: Sequence[Candidate], question: str = "") -> Pool:
        """Return the candidates with their relevance to *question*.

        The score is left as it is.
        """
        pool = Pool.of(candidates)
        pool.demand_new("calibration", "relevance")
        measured = {name: pool.readings(name) for name in self.signals}
        if self.latin_only and not in_latin_script(question):
            meaning = _borne_out(pool)
            measured |= _read_by(meaning, pool)
            pool = pool.measured(meaning=meaning)
        return pool.measured(relevance=self.probabilities(measured))


def _borne_out(pool: Pool) -> Floats:
    """Return the cosine, or twice the share of the question's words if that is less."""
    most = np.round(PER_SHARE * pool.readings("coverage"), PLACES)
    return np.minimum(pool.readings("cosine"), most)


def _read_by(meaning: Floats, pool: Pool) -> dict[str, Floats]:
    """Return the signals that rest on the cosine, resting on *meaning* instead."""
    strength = np.maximum(meaning, pool.readings("focus"))
    return {"cosine": meaning, "strength": strength}
