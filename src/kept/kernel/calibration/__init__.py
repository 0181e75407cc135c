"""Calibration: from absolute signals to relevance, a probability.

Fitted numbers are data files with their provenance, one per embedder; see
``parameters/``. What is fitted, how, and on what is told in
``docs/concepts/calibration.md``. A search needs only what is named here; fitting
one's own is in ``refit`` and ``judgements``.
"""

from kept.calibration.curves import Curve
from kept.calibration.files import calibration_of, known_cosines, load, save, shipped
from kept.calibration.floors import Floor, choose_floor
from kept.calibration.model import Calibration

__all__ = [
    "Calibration",
    "Curve",
    "Floor",
    "calibration_of",
    "choose_floor",
    "known_cosines",
    "load",
    "save",
    "shipped",
]
