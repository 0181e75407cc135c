"""Calibration: from absolute signals to relevance, a probability.

Fitted numbers are data files with their provenance, one per embedder; see
``parameters/``. ``docs/concepts/calibration.md``
explains the fit. A search needs only what is here; fitting is in
``kept.evaluation.calibrate``.
"""

from kept.kernel.calibration.curves import Curve
from kept.kernel.calibration.files import (
    calibration_of,
    known_cosines,
    load,
    save,
    shipped,
)
from kept.kernel.calibration.model import Calibration

__all__ = [
    "Calibration",
    "Curve",
    "calibration_of",
    "known_cosines",
    "load",
    "save",
    "shipped",
]
