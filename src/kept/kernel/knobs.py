"""Knobs: how a setting can be turned, and the least turn that has an effect.

Numbers are searched on a lattice: whole numbers, or decimals of nine places, which is
the precision of signals. From the present value towards both bounds some points are
tried, and between the first that works and the last that does not, bisection finds
the least change. Where the test is not monotone, a window between two points can be
missed; a change that is found always works.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from types import UnionType
from typing import Any, Union, get_args, get_origin

from pydantic.fields import FieldInfo

FARTHEST = 1 << 24
POINTS = 8
FIRST_STEP = 1_000_000
GROWTH = 4
PLACES = 9
SWITCH = 1.0

Value = Any
Test = Callable[[Value], bool]
NOTHING: Value = object()


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """One setting, its present value and another."""

    name: str
    variable: str
    before: Value
    after: Value


@dataclass(frozen=True)
class Switch:
    """A setting with a few values to choose from."""

    name: str
    variable: str
    value: Value
    others: tuple[Value, ...]

    def least(self, good: Test) -> Value:
        """Return another value that is good, or `NOTHING`."""
        return next((other for other in self.others if good(other)), NOTHING)

    def size(self, after: Value) -> float:
        """Return how large a change is: a switch counts as one."""
        return SWITCH

    def turned(self, after: Value) -> Assignment:
        """Return the setting with another value."""
        return Assignment(
            name=self.name, variable=self.variable, before=self.value, after=after
        )


@dataclass(frozen=True)
class Number:
    """A setting that is a number between *bounds*, or none.

    *also* is a value worth trying.
    """

    name: str
    variable: str
    value: Value
    bounds: tuple[float, float]
    whole: bool = True
    also: int | None = None

    def least(self, good: Test) -> Value:
        """Return the good value nearest to the present one, or `NOTHING`.

        Where there is no present number, the search starts from both bounds, and
        the value that is farther from its start wins: it is the milder one.
        """
        found = [
            (abs(self._on_lattice(value) - origin) == 1, value)
            for origin, goal in self._ways()
            if (value := self._outwards(origin, goal, good)) is not NOTHING
        ]
        if found and self.value is None:
            return min(found)[1]
        if found:
            return min((self.size(value), value) for _, value in found)[1]
        return NOTHING

    def size(self, after: Value) -> float:
        """Return how large a change is, relative to the present value."""
        if self.value is None:
            return SWITCH
        span = self.bounds[1] - self.bounds[0]
        scale = abs(self.value) or (span if math.isfinite(span) else 1.0)
        return round(abs(float(after) - float(self.value)) / float(scale), PLACES)

    def turned(self, after: Value) -> Assignment:
        """Return the setting with another value."""
        return Assignment(
            name=self.name, variable=self.variable, before=self.value, after=after
        )

    def _ways(self) -> list[tuple[int, int]]:
        """Return where to start and where to go, on the lattice."""
        low, high = self.bounds
        bottom = self._on_lattice(low if math.isfinite(low) else -FARTHEST)
        top = self._on_lattice(high if math.isfinite(high) else FARTHEST)
        if self.value is None:
            return [(top + 1, bottom), (bottom - 1, top)]
        origin = self._on_lattice(self.value)
        return [(origin, bottom), (origin, top)]

    def _outwards(self, origin: int, goal: int, good: Test) -> Value:
        last = origin
        for point in self._points(origin, goal):
            if good(self._value(point)):
                return self._value(self._halved(last, point, good))
            last = point
        return NOTHING

    def _halved(self, bad: int, reached: int, good: Test) -> int:
        while abs(reached - bad) > 1:
            middle = (reached + bad) // 2
            if good(self._value(middle)):
                reached = middle
            else:
                bad = middle
        return reached

    def _points(self, origin: int, goal: int) -> list[int]:
        """Return what to try between *origin* and *goal*, the nearest first."""
        way = abs(goal - origin)
        direction = 1 if goal > origin else -1
        steps = {way * place // POINTS for place in range(1, POINTS + 1)}
        step = 1 if self.whole else FIRST_STEP
        while step < way:
            steps.add(step)
            step *= GROWTH
        if self.also is not None:
            steps.add(direction * (self._on_lattice(self.also) - origin))
        return [origin + direction * s for s in sorted(steps) if 0 < s <= way]

    def _on_lattice(self, value: float) -> int:
        return int(value) if self.whole else round(value * 10**PLACES)

    def _value(self, point: int) -> float:
        return point if self.whole else round(point / 10**PLACES, PLACES)


Knob = Switch | Number


def kinds(info: FieldInfo) -> tuple[Value, ...]:
    """Return the types that a setting may have."""
    if get_origin(info.annotation) in (Union, UnionType):
        return get_args(info.annotation)
    return (info.annotation,)
