"""Read: question and passage together, where reading can change what is cited."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from kept.errors import BackendError
from kept.kernel.calibration.model import Calibration
from kept.kernel.model import Query, Scalar
from kept.kernel.outcome import Outcome
from kept.kernel.pool import Pool, Rows
from kept.kernel.ports import PassageReader, Reading
from kept.kernel.record import Decision, Reason, Verdict, decided
from kept.kernel.signals import PLACES, Floats
from kept.kernel.stages.bounds import demand
from kept.text.sentences import sentence_around

LONGEST_SENTENCE = 400


@dataclass(frozen=True)
class Read:
    """Read the few candidates that may be cited; what was seen decides with the rest.

    Read are the *at_most* most relevant whose relevance is at least *worth_reading*:
    below that no reading lifts a passage over a floor. What the reader saw joins the
    *calibration*, whose result takes the place of ``relevance``; what it was before
    stays as ``first_look``. For a question in a language that the reader does not
    know, nothing is read. It drops nothing: that is for the floor after it.
    """

    name: ClassVar[str] = "read"

    reader: PassageReader
    calibration: Calibration
    worth_reading: float = 0.02
    at_most: int = 8

    def __post_init__(self) -> None:
        demand(self.name, "worth_reading", self.worth_reading, 0.0, 1.0)
        demand(self.name, "at_most", self.at_most, 1)

    def __call__(self, query: Query, pool: Pool) -> Outcome:
        """Read once what is worth it, and measure its relevance again."""
        if not self.reader.knows(query.text):
            facts: dict[str, Scalar] = {"read": 0, "language": "not known"}
            return Outcome(pool, facts={"reader": self.reader.id, **facts})
        pool = pool.measured(first_look=pool.readings("relevance"))
        rows = self._worth_reading(pool)
        facts = {"reader": self.reader.id, "read": len(rows)}
        if not len(rows):
            return Outcome(pool, facts=facts)
        passages = [_passage(pool, row) for row in rows.tolist()]
        readings = self._readings(query.text, passages)
        pool = _measured(pool, rows, readings, self.calibration)

        def decide() -> Iterator[Decision]:
            for row, reading, (_, text) in zip(
                rows.tolist(), readings, passages, strict=True
            ):
                evidence = {
                    "relevance": pool.reading(row, "relevance"),
                    "first_look": pool.reading(row, "first_look"),
                    **_seen(reading, text),
                }
                found = Reason.ANSWER_IN_PASSAGE if _answers(reading) else NOTHING_SEEN
                yield decided(pool.roll.ids[row], Verdict.READ, found, evidence)

        return Outcome(pool, decide=decide, facts=facts)

    def _worth_reading(self, pool: Pool) -> Rows:
        relevance = pool.readings("relevance")
        places = np.lexsort((pool.rows, -relevance))[: self.at_most]
        likely = places[relevance[places] >= self.worth_reading]
        return pool.rows[np.sort(likely)]

    def _readings(
        self, question: str, passages: Sequence[tuple[str, str]]
    ) -> Sequence[Reading]:
        readings = self.reader.read(question, passages)
        if len(readings) != len(passages):
            msg = (
                f"reader {self.reader.id!r} returned {len(readings)} readings for "
                f"{len(passages)} passages; it must return one for each, in order"
            )
            raise BackendError(msg)
        if not all(np.isfinite(reading.worth) for reading in readings):
            msg = f"reader {self.reader.id!r} returned a reading that is not a number"
            raise BackendError(msg)
        return readings


NOTHING_SEEN = Reason.NO_ANSWER_IN_PASSAGE


def _passage(pool: Pool, row: int) -> tuple[str, str]:
    entry = pool.roll.entries[row]
    return entry.document.title, entry.chunk.text


def _measured(
    pool: Pool, rows: Rows, readings: Sequence[Reading], calibration: Calibration
) -> Pool:
    """Return the pool with what was read, and the relevance that follows from it."""
    read = {
        "read_worth": _column(reading.worth for reading in readings),
        "read_answers": _column(reading.answers for reading in readings),
        "read_margin": _column(reading.margin for reading in readings),
    }
    pool = pool.measured_at(rows, **read)
    part = pool.keeping(rows)
    relevance = np.zeros(len(pool.roll.rows))
    relevance[pool.rows] = pool.readings("relevance")
    relevance[rows] = calibration.probabilities(
        {name: part.readings(name) for name in calibration.signals}
    )
    return pool.measured(relevance=relevance[pool.rows])


def _column(values: Iterator[float | None]) -> Floats:
    return np.array([0.0 if v is None else round(v, PLACES) for v in values])


def _answers(reading: Reading) -> bool:
    """Return whether an answer was seen; without a span, whether it would be cited."""
    return (reading.worth if reading.margin is None else reading.margin) > 0.0


def _seen(reading: Reading, text: str) -> Mapping[str, Scalar]:
    """Return the span that answers and its sentence, if the reader saw one."""
    if not _answers(reading) or reading.end <= reading.start:
        return {}
    start, end = sentence_around(text, reading.start, reading.end)
    return {
        "answer": text[reading.start : reading.end],
        "start": reading.start,
        "end": reading.end,
        "sentence": text[start:end][:LONGEST_SENTENCE],
    }
