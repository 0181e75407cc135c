"""A calibration refitted to your own judgements, measured on held-out questions."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kept.errors import InputError
from kept.evaluation.calibrate.citing import Citing, citing_at
from kept.evaluation.calibrate.fit import Prior, fitted
from kept.evaluation.calibrate.floors import CONFIDENCE, Among, Floor, choose_floor
from kept.evaluation.calibrate.pairs import Judgement, Pairs, judged_pairs
from kept.evaluation.probability_scores import (
    ReliabilityBin,
    auroc,
    brier,
    calibration_error,
    reliability,
)
from kept.kernel.calibration.curves import basis, climbed, steps_of
from kept.kernel.calibration.files import shipped
from kept.kernel.calibration.model import Calibration
from kept.kernel.ports import Embedder
from kept.kernel.signals import Floats
from kept.search.ports import Shelf

FOLDS = 5
FEWEST_QUESTIONS = 20
STRENGTH = 5.0
QUANTILES = (0.0, 0.25, 0.5, 0.75, 0.9, 0.97, 1.0)
BAR = 40

Knots = Mapping[str, tuple[float, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """How well probabilities are calibrated on pairs that they were not fitted on."""

    brier: float | None
    calibration_error: float | None
    auroc: float | None
    table: tuple[ReliabilityBin, ...]

    @classmethod
    def of(cls, probabilities: Floats, truths: Floats) -> "Figures":
        """Compare *probabilities* with *truths*."""
        promised, true = probabilities.tolist(), (truths > 0).tolist()
        return cls(
            brier=brier(promised, true),
            calibration_error=calibration_error(promised, true),
            auroc=auroc(promised, true),
            table=reliability(promised, true),
        )

    def as_json(self) -> dict[str, float | None]:
        """Return the figures without the table."""
        names = ("brier", "calibration_error", "auroc")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedCalibration:
    """A refit with figures *before* and *after*, on held-out questions.

    *best* and *deserved* hold for each question the relevance of its best passage,
    under a fit without that question, and whether that passage is relevant. *citing*
    is what each floor of the calibration cites of them.
    """

    calibration: Calibration
    pairs: Pairs
    before: Figures
    after: Figures
    best: tuple[float, ...]
    deserved: tuple[bool, ...]
    citing: Mapping[str, Citing]

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


def fit(  # noqa: PLR0913 -- what a fit depends on
    judgements: Iterable[Judgement],
    shelf: Shelf,
    embedder: Embedder,
    *,
    date: str,
    source: str = "own judgements",
    judged_only: bool = False,
) -> FittedCalibration:
    """Fit a calibration to judged questions, starting from the shipped one.

    Few judgements change it little, many replace it. The figures come from folds
    over questions, so that every question is held out of the fit that predicts it.
    """
    pairs = judged_pairs(judgements, shelf, embedder, judged_only=judged_only)
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
    held_out = _held_out(pairs, start, knots)
    promised = start.probabilities(pairs.signals)
    after = Figures.of(held_out, pairs.truths)
    best, deserved = _best_of_each(pairs, held_out)
    whole = _calibration(pairs, start, knots)
    fitted_on = {
        "set": source,
        "questions": len(pairs.questions),
        "pairs": len(pairs),
        "relevant": int(pairs.truths.sum()),
        "relevant_not_recalled": pairs.unfound,
    }
    provenance: dict[str, Any] = {
        "date": date,
        "fitted_on": [fitted_on],
        "started_from": start.id,
        "left_out": {"folds": FOLDS, **after.as_json()},
    }
    return FittedCalibration(
        calibration=replace(
            whole, name=name, embedder=embedder_id, provenance=provenance
        ),
        pairs=pairs,
        before=Figures.of(promised, pairs.truths),
        after=after,
        best=best,
        deserved=deserved,
        citing=dict(citing_at(start.floors, held_out, pairs)),
    )


def plot(table: Sequence[ReliabilityBin]) -> list[str]:
    """Draw a reliability table as text, a line for each bin.

    The bar is the observed share, the mark the mean probability.
    """
    lines = ["relevance     pairs  promised  observed"]
    for row in table:
        filled = round(row.observed * BAR)
        mark = min(round(row.promised * BAR), BAR - 1)
        drawn = list(f"{'#' * filled:.<{BAR}}")
        drawn[mark] = "|"
        lines.append(
            f"{row.low:.1f} to {row.high:.1f}  {row.count:6}  {row.promised:8.3f}  "
            f"{row.observed:8.3f}  {''.join(drawn)}"
        )
    return lines


def _knots(start: Calibration, pairs: Pairs) -> Knots:
    """Return the knots to fit at: those of *start*, and new ones for the cosine."""
    knots = {curve.signal: curve.knots for curve in start.curves}
    if "cosine" not in knots:
        places = np.quantile(pairs.signals["cosine"], QUANTILES)
        rising = np.unique(np.round(places, 3))
        if len(rising) > 1:
            knots["cosine"] = tuple(rising.tolist())
    return knots


def _held_out(pairs: Pairs, start: Calibration, knots: Knots) -> Floats:
    """Return each pair's probability under a fit without its question."""
    folds = pairs.folds(FOLDS)
    probabilities = np.zeros(len(pairs))
    for fold in np.unique(folds):
        left_out = folds == fold
        trained = _calibration(pairs.where(~left_out), start, knots)
        held_out = pairs.where(left_out).signals
        probabilities[left_out] = trained.probabilities(held_out)
    return probabilities


def _calibration(pairs: Pairs, start: Calibration, knots: Knots) -> Calibration:
    steps = steps_of(start.curves)
    added = sum(len(places) - 1 for places in knots.values()) - len(steps)
    prior = np.concatenate([steps, np.zeros(added)])
    intercept, found = fitted(
        basis(knots, pairs.signals),
        pairs.truths,
        np.ones(len(pairs)),
        Prior(start.intercept, prior, STRENGTH),
    )
    return Calibration(
        name=start.name,
        embedder=start.embedder,
        intercept=round(intercept, 6),
        curves=climbed(knots, found.tolist()),
        other_scripts=start.other_scripts,
        reading=start.reading,
        floors=start.floors,
    )


def _best_of_each(
    pairs: Pairs, probabilities: Floats
) -> tuple[tuple[float, ...], tuple[bool, ...]]:
    """Return each question's best relevance and whether that passage is relevant."""
    order = np.lexsort((-probabilities, pairs.question))
    first = np.unique(pairs.question[order], return_index=True)[1]
    best = order[first]
    return tuple(probabilities[best].tolist()), tuple((pairs.truths[best] > 0).tolist())
