"""The thresholds of the shipped calibration, carried over to the scale of a refit.

A refit knows how many of your own candidates are relevant, so all relevances shift:
where any utterance of the same intent is right they rise by 3 in log-odds (CLINC),
where one abstract in eighty is right they fall by 2 (SciFact). A threshold that was
chosen for what it refuses has to shift with them, or it refuses nothing or too much.
"""

from dataclasses import dataclass

import numpy as np

from kept.kernel.calibration.curves import probability
from kept.kernel.presets.default import DefaultSettings
from kept.kernel.signals import BEST, Floats

# At least fifty pairs, or one in fifty, so that the median shift is not that of a few
# outliers.
NEAREST = 50
SHARE = 50
LEAST = 1e-9
DIGITS = 3


@dataclass(frozen=True, slots=True)
class Bars:
    """The thresholds of the ``default`` preset on calibrated relevance."""

    refuse_below: float
    relevance_floor: float


def carried(before: Floats, after: Floats) -> Bars:
    """Return the thresholds with which a refit refuses and drops about as before.

    *before* and *after* are the relevances of the same pairs under the shipped
    calibration and under the refit; labels are not used. The floor is a probability
    and means the same on any scale, so it is never raised; it falls where it would
    otherwise drop what `refuse_below` lets through.
    """
    shipped = shipped_bars()
    floor = shipped.relevance_floor
    # The relevance of each of the best three at which a question is just not refused.
    alike = 1.0 - (1.0 - shipped.refuse_below) ** (1.0 / BEST)
    refuse_below = 1.0 - (1.0 - shifted(alike, before, after)) ** BEST
    return Bars(
        refuse_below=_rounded(refuse_below),
        relevance_floor=_rounded(min(floor, shifted(floor, before, after))),
    )


def shipped_bars() -> Bars:
    """Return the thresholds for the shipped calibrations: the preset's defaults."""
    fields = DefaultSettings.model_fields
    return Bars(
        refuse_below=float(fields["refuse_below"].default),
        relevance_floor=float(fields["relevance_floor"].default),
    )


def shifted(relevance: float, before: Floats, after: Floats) -> float:
    """Return the relevance after the refit of a passage that had *relevance* before.

    It moves by the median shift in log-odds of the pairs nearest to it.
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


def _rounded(bar: float) -> float:
    return float(f"{bar:.{DIGITS}g}")
