"""The calibration itself: from absolute signals to relevance, a probability."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
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
# For a calibration that names none: what a probability means, taken at its word.
FLOORS: Mapping[str, float] = MappingProxyType(
    {"strict": 0.5, "balanced": 0.3, "generous": 0.15}
)


@dataclass(frozen=True, slots=True)
class Calibration:
    """A sum of rising curves, one for each signal, as log-odds of being relevant.

    It is *name*d and belongs to the embedder whose id starts with *embedder*, or
    to any if that is ``*``. The relevance of a candidate depends on its own signals
    alone. *provenance* says what it was fitted on and how it did on data left out.

    An embedder that was taught one script finds all texts in another near to each
    other, whatever they say. With *other_scripts*, a question in such a script is
    judged by that calibration, which reads words; its candidates have ``meaning``,
    the cosine as far as shared words bear it out.

    *floors* are relevances to cite from, by how sure a citation has to be. *reading*
    is the calibration of what was read: its name is that of the reader it was fitted
    with.
    """

    name: str
    embedder: str
    intercept: float
    curves: tuple[Curve, ...]
    provenance: Mapping[str, Any] = field(
        default_factory=dict, compare=False, hash=False, repr=False
    )
    other_scripts: "Calibration | None" = None
    floors: Mapping[str, float] = field(default_factory=lambda: FLOORS, hash=False)
    reading: "Calibration | None" = None

    @property
    def id(self) -> str:
        """The name, and a digest of every number that decides a relevance."""
        numbers = (
            self.embedder,
            self.intercept,
            [(c.signal, c.knots, c.values) for c in self.curves],
            *(each.id for each in (self.other_scripts, self.reading) if each),
        )
        # The digest covers only what decides a relevance: provenance may be corrected
        # without changing fingerprints.
        digest = hashlib.sha256(json.dumps(numbers).encode()).hexdigest()
        return f"{self.name}-{digest[:12]}"

    def read_by(self, reader_id: str) -> "Calibration":
        """Return what turns the findings of a reader into relevance.

        A reader that no calibration was fitted with is taken at its word.
        """
        if self.reading is not None and self.reading.name == reader_id:
            return self.reading
        return replace(AT_ITS_WORD, name=reader_id)

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
        judge = self
        if self.other_scripts is not None and not in_latin_script(question):
            judge = self.other_scripts
            pool = pool.measured(meaning=_borne_out(pool))
        measured = {name: pool.readings(name) for name in judge.signals}
        return pool.measured(relevance=judge.probabilities(measured))


def _borne_out(pool: Pool) -> Floats:
    """Return the cosine, or twice the share of the question's words if that is less."""
    most = np.round(PER_SHARE * pool.readings("coverage"), PLACES)
    return np.minimum(pool.readings("cosine"), most)


# Log-odds become a probability; beyond eight it makes no difference.
AT_ITS_WORD = Calibration(
    name="",
    embedder=ANY_EMBEDDER,
    intercept=-8.0,
    curves=(Curve("read_worth", (-8.0, 8.0), (0.0, 16.0)),),
)
