"""Bounds: what a stage accepts as a parameter, and how a signal is held to one."""

import math
from typing import overload

import numpy as np
from numpy.typing import NDArray

from kept.errors import SettingsError

# Vectors are stored as float32, so a cosine of .9 is read as .899999976. Every bound
# is inclusive at this many places; float32 errs by one in the seventh.
COMPARED_PLACES = 6


def demand(
    stage: str, name: str, value: float, low: float, high: float = math.inf
) -> None:
    """Raise unless *low* <= *value* <= *high*; NaN is never within bounds."""
    if low <= value <= high:
        return
    wanted = f"at least {low:g}" if high == math.inf else f"{low:g} to {high:g}"
    msg = f"{stage}: {name} is {value!r}; expected {wanted}"
    raise SettingsError(msg)


@overload
def reaches(value: float, at_least: float) -> bool: ...
@overload
def reaches(value: NDArray[np.float64], at_least: float) -> NDArray[np.bool_]: ...
def reaches(
    value: float | NDArray[np.float64], at_least: float
) -> bool | NDArray[np.bool_]:
    """Return whether *value* is *at_least* so much, the bound included."""
    if isinstance(value, np.ndarray):
        found: NDArray[np.bool_] = value.round(COMPARED_PLACES) >= _rounded(at_least)
        return found
    return _rounded(value) >= _rounded(at_least)


@overload
def within(value: float, at_most: float) -> bool: ...
@overload
def within(value: NDArray[np.float64], at_most: float) -> NDArray[np.bool_]: ...
def within(
    value: float | NDArray[np.float64], at_most: float
) -> bool | NDArray[np.bool_]:
    """Return whether *value* is *at_most* so much, the bound included."""
    return reaches(-value, -at_most)


def _rounded(value: float) -> float:
    return round(value, COMPARED_PLACES)
