"""Bounds: what a stage accepts as a parameter, refused when it is built."""

import math

from kept.errors import SettingsError


def demand(
    stage: str, name: str, value: float, low: float, high: float = math.inf
) -> None:
    """Raise unless *low* <= *value* <= *high*; NaN is never within bounds."""
    if low <= value <= high:
        return
    wanted = f"at least {low:g}" if high == math.inf else f"{low:g} to {high:g}"
    msg = f"{stage}: {name} is {value!r}; expected {wanted}"
    raise SettingsError(msg)
