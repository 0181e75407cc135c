"""Carrying: the bars of the calibration that ships, on the scale of a refit.

A refit knows how many of one's own candidates are relevant, so all relevances
shift: where any utterance of the same intent is right they rise by 3 in log-odds,
where one abstract in eighty is right they fall by 2. A bar that was chosen for
refusing, not for its meaning as a probability, has to shift with them, or else
nothing is refused any more, or too much.
"""

from dataclasses import dataclass

import numpy as np

from kept.calibration.fitting import probability
from kept.presets.default import DefaultSettings
from kept.signals import BEST, Floats

NEAREST = 50
SHARE = 50
LEAST = 1e-9
DIGITS = 3


@dataclass(frozen=True, slots=True)
class Bars:
    """The bars of the ``default`` preset that stand on the scale of relevance."""

    refuse_below: float
    relevance_floor: float


def carried(before: Floats, after: Floats) -> Bars:
    """Return the bars under which a refit refuses and drops about as before.

    *before* and *after* are the relevances of the same pairs under the calibration
    that ships and under the refit; no label is looked at. The floor is a promise
    about passages and true on any scale, so it is never raised; it falls where
    it would otherwise refuse what the bar lets through.
    """
    shipped = shipped_bars()
    floor = shipped.relevance_floor
    alike = 1.0 - (1.0 - shipped.refuse_below) ** (1.0 / BEST)
    refuse_below = 1.0 - (1.0 - shifted(alike, before, after)) ** BEST
    return Bars(
        refuse_below=_short(refuse_below),
        relevance_floor=_short(min(floor, shifted(floor, before, after))),
    )


def shipped_bars() -> Bars:
    """Return the bars that go with the calibrations that ship."""
    fields = DefaultSettings.model_fields
    return Bars(
        refuse_below=float(fields["refuse_below"].default),
        relevance_floor=float(fields["relevance_floor"].default),
    )


def shifted(relevance: float, before: Floats, after: Floats) -> float:
    """Return what a passage of *relevance* before has after.

    The pairs nearest to it tell: by the median of how far their log-odds moved.
    """
    place = _log_odds(np.array([relevance]))
    old, new = _log_odds(before), _log_odds(after)
    count = max(NEAREST, len(old) // SHARE)
    nearest = np.argsort(np.abs(old - place), kind="stable")[:count]
    moved = np.median(new[nearest] - old[nearest])
    return float(probability(place + moved)[0])


def _log_odds(relevances: Floats) -> Floats:
    inside = np.clip(relevances, LEAST, 1.0 - LEAST)
    odds: Floats = np.log(inside) - np.log1p(-inside)
    return odds


def _short(bar: float) -> float:
    return float(f"{bar:.{DIGITS}g}")
