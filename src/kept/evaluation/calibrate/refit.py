"""Refitting: a calibration of one's own, held to account on questions left out."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from kept.calibration.carrying import Bars, carried
from kept.calibration.curves import basis, climbed, steps_of
from kept.calibration.files import shipped
from kept.calibration.fitting import Prior, fitted
from kept.calibration.floors import CONFIDENCE, Among, Floor, choose_floor
from kept.calibration.judgements import Judgement
from kept.calibration.model import Calibration
from kept.calibration.pairs import Pairs, judged_pairs
from kept.errors import InputError
from kept.evaluation.scores import Bin, auroc, brier, calibration_error, reliability
from kept.ports import Embedder, Shelf
from kept.signals import Floats

FOLDS = 5
FEWEST_QUESTIONS = 20
STRENGTH = 5.0
QUANTILES = (0.0, 0.25, 0.5, 0.75, 0.9, 0.97, 1.0)
BAR = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """How far probabilities can be trusted on pairs that they were not fitted on."""

    brier: float | None
    calibration_error: float | None
    auroc: float | None
    table: tuple[Bin, ...]

    @classmethod
    def of(cls, probabilities: Floats, truths: Floats) -> "Figures":
        """Hold *probabilities* against what came true."""
        promised, true = probabilities.tolist(), (truths > 0).tolist()
        return cls(
            brier=brier(promised, true),
            calibration_error=calibration_error(promised, true),
            auroc=auroc(promised, true),
            table=reliability(promised, true),
        )

    def as_json(self) -> dict[str, float | None]:
        """Return the figures without the table."""
        return {
            "brier": self.brier,
            "calibration_error": self.calibration_error,
            "auroc": self.auroc,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedCalibration:
    """A refit with its account: *before* and *after* on questions left out.

    *best* and *deserved* give for each question the relevance of its best passage,
    by a fit without that question, and whether that passage is relevant. The *bars*
    are those of the ``default`` preset, carried over to the new scale.
    """

    calibration: Calibration
    pairs: Pairs
    before: Figures
    after: Figures
    best: tuple[float, ...]
    deserved: tuple[bool, ...]
    bars: Bars

    def floor(
        self,
        alpha: float,
        *,
        confidence: float = CONFIDENCE,
        among: Among = "cited",
    ) -> Floor | None:
        """Return the floor that keeps false citations below *alpha*, if one does."""
        return choose_floor(
            self.best, self.deserved, alpha, confidence=confidence, among=among
        )


def fit(
    judgements: Iterable[Judgement],
    shelf: Shelf,
    embedder: Embedder,
    *,
    date: str,
    source: str = "own judgements",
) -> FittedCalibration:
    """Fit a calibration to judged questions, starting from the one that ships.

    Few judgements move it little, many replace it. The figures come from folds
    over questions, so that none is judged by a fit that saw it.
    """
    pairs = judged_pairs(judgements, shelf, embedder)
    return refitted(
        pairs, shipped(embedder.id), embedder.id, date=date, name="own", source=source
    )


def refitted(  # noqa: PLR0913 -- what a fit depends on
    pairs: Pairs,
    start: Calibration,
    embedder_id: str,
    *,
    date: str,
    name: str,
    source: str,
) -> FittedCalibration:
    """Fit *pairs*, starting from the calibration *start*."""
    if len(pairs.questions) < FEWEST_QUESTIONS:
        msg = (
            f"{len(pairs.questions)} questions are judged; expected at least "
            f"{FEWEST_QUESTIONS}, or a fit says more about them than about the rest"
        )
        raise InputError(msg)
    knots = _knots(start, pairs)
    folds = pairs.folds(FOLDS)
    held_out = np.zeros(len(pairs))
    for fold in range(FOLDS):
        left_out = folds == fold
        if left_out.any():
            trained = _calibration(pairs.where(~left_out), start, knots)
            held_out[left_out] = trained.probabilities(pairs.where(left_out).signals)
    promised = start.probabilities(pairs.signals)
    after = Figures.of(held_out, pairs.truths)
    best, deserved = _best_of_each(pairs, held_out)
    whole = _calibration(pairs, start, knots)
    bars = carried(promised, whole.probabilities(pairs.signals))
    calibration = Calibration(
        name=name,
        embedder=embedder_id,
        intercept=whole.intercept,
        curves=whole.curves,
        provenance={
            **_provenance(pairs, start, after, date=date, source=source),
            "bars": asdict(bars),
        },
        latin_only=whole.latin_only,
    )
    return FittedCalibration(
        calibration=calibration,
        pairs=pairs,
        before=Figures.of(promised, pairs.truths),
        after=after,
        best=best,
        deserved=deserved,
        bars=bars,
    )


def plot(table: Sequence[Bin]) -> list[str]:
    """Draw a reliability table: promised against observed, a line for each bin.

    The bar is what came true, the mark what was promised.
    """
    lines = ["relevance     pairs  promised  observed"]
    for row in table:
        filled = round(row.observed * BAR)
        mark = min(round(row.promised * BAR), BAR - 1)
        drawn = ["#" if place < filled else "." for place in range(BAR)]
        drawn[mark] = "|"
        lines.append(
            f"{row.low:.1f} to {row.high:.1f}  {row.count:6}  {row.promised:8.3f}  "
            f"{row.observed:8.3f}  {''.join(drawn)}"
        )
    return lines


def _knots(start: Calibration, pairs: Pairs) -> dict[str, tuple[float, ...]]:
    """Return the knots to fit at: those of *start*, and new ones for the cosine."""
    knots = {curve.signal: curve.knots for curve in start.curves}
    if "cosine" not in knots:
        places = np.quantile(pairs.signals["cosine"], QUANTILES)
        rising = np.unique(np.round(places, 3))
        if len(rising) > 1:
            knots["cosine"] = tuple(rising.tolist())
    return knots


def _calibration(
    pairs: Pairs, start: Calibration, knots: Mapping[str, tuple[float, ...]]
) -> Calibration:
    added = sum(len(places) - 1 for places in knots.values()) - len(
        steps_of(start.curves)
    )
    steps = np.concatenate([steps_of(start.curves), np.zeros(added)])
    intercept, found = fitted(
        basis(knots, pairs.signals),
        pairs.truths,
        np.ones(len(pairs)),
        Prior(start.intercept, steps, STRENGTH),
    )
    return Calibration(
        name=start.name,
        embedder=start.embedder,
        intercept=round(intercept, 6),
        curves=climbed(knots, found.tolist()),
        latin_only=start.latin_only,
    )


def _best_of_each(
    pairs: Pairs, probabilities: Floats
) -> tuple[tuple[float, ...], tuple[bool, ...]]:
    """Return each question's best relevance and whether it is deserved."""
    order = np.lexsort((-probabilities, pairs.question))
    first = np.unique(pairs.question[order], return_index=True)[1]
    best = order[first]
    return tuple(probabilities[best].tolist()), tuple((pairs.truths[best] > 0).tolist())


def _provenance(
    pairs: Pairs, start: Calibration, after: Figures, *, date: str, source: str
) -> dict[str, Any]:
    return {
        "date": date,
        "fitted_on": [
            {
                "set": source,
                "questions": len(pairs.questions),
                "pairs": len(pairs),
                "relevant": int(pairs.truths.sum()),
                "relevant_not_recalled": pairs.unfound,
            }
        ],
        "started_from": start.id,
        "left_out": {"folds": FOLDS, **after.as_json()},
    }
