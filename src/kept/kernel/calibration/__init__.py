"""Calibration: from absolute signals to relevance, a probability.

Fitted numbers are data files with their provenance, one per embedder; see
``parameters/``. What is fitted, how, and on what is told in
``docs/concepts/calibration.md``. A search needs only what is named here; fitting
one's own is in ``refit`` and ``judgements``.
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
