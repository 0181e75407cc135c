"""Plots as plain SVG, without scripts, fonts or colours of their own.

Colours come from the page's style sheet through classes, so that a plot is readable
in light and dark; series differ in dashes and shapes too.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

WIDTH, HEIGHT = 640, 340
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 40, 52
LETTER = 7.2
TICKS = 5
LONGEST_NAME = 24
STEPS = (1, 2, 2.5, 5, 10)

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Series:
    """A named line of points; *tone* picks its colour and dash."""

    label: str
    points: Points
    tone: str = "one"


@dataclass(frozen=True, slots=True)
class Axis:
    """What one side measures, and its range.

    On a *mirrored* axis values below zero are labelled with their magnitude.
    """

    label: str
    low: float = 0.0
    high: float = 1.0
    mirrored: bool = False

    def label_at(self, value: float) -> str:
        """Return the label of the tick at *value*."""
        return f"{abs(value) if self.mirrored else value:g}"

    def share(self, value: float) -> float:
        """Return how far along the axis *value* is; the middle of an empty one."""
        span = self.high - self.low
        return (value - self.low) / span if span else 0.5


@dataclass(frozen=True, slots=True)
class Plane:
    """Two axes, and the coordinates of values in the drawing."""

    across: Axis
    up: Axis

    def x(self, value: float) -> float:
        """Return the distance of *value* from the left."""
        return LEFT + self.across.share(value) * (WIDTH - LEFT - RIGHT)

    def y(self, value: float) -> float:
        """Return the distance of *value* from the top."""
        return HEIGHT - BOTTOM - self.up.share(value) * (HEIGHT - TOP - BOTTOM)

    def frame(self) -> str:
        """Draw grid, ticks and labels."""
        bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
        parts = []
        for tick in ticks(self.across):
            x, label = self.x(tick), self.across.label_at(tick)
            parts.append(_tag("line", cls="grid", x1=x, x2=x, y1=TOP, y2=bottom))
            parts.append(_tag("text", label, x=x, y=bottom + 18, text_anchor="middle"))
        for tick in ticks(self.up):
            y, label = self.y(tick), self.up.label_at(tick)
            parts.append(_tag("line", cls="grid", x1=LEFT, x2=right, y1=y, y2=y))
            parts.append(_tag("text", label, x=LEFT - 8, y=y, dy=4, text_anchor="end"))
        middle, half = (LEFT + right) / 2, (TOP + bottom) / 2
        names: dict[str, Any] = {"cls": "label", "text_anchor": "middle"}
        turned = f"translate(16 {_n(half)}) rotate(-90)"
        parts.append(_tag("text", self.across.label, x=middle, y=HEIGHT - 10, **names))
        parts.append(_tag("text", self.up.label, transform=turned, **names))
        return "".join(parts)

    def line(self, points: Points, tone: str, title: str = "") -> str:
        """Draw a line; points that fall on the same pixel are drawn once."""
        pixels = [(f"{self.x(x):.1f}", f"{self.y(y):.1f}") for x, y in points]
        path = " ".join(f"{x},{y}" for x, y in dict.fromkeys(pixels))
        return _tag("polyline", title=title, cls=f"line {tone}", points=path)

    def dot(self, point: tuple[float, float], tone: str, r: float, title: str) -> str:
        """Draw a dot."""
        x, y = self.x(point[0]), self.y(point[1])
        return _tag("circle", title=title, cls=f"dot {tone}", cx=x, cy=y, r=r)


def lines(title: str, plane: Plane, series: Iterable[Series]) -> str:
    """Draw lines with a legend."""
    drawn = list(series)
    body = "".join(plane.line(each.points, each.tone, each.label) for each in drawn)
    legend = [(each.label, each.tone) for each in drawn]
    return _drawing(title, plane.frame() + body + _legend(legend, "line"))


def reliability_plot(title: str, bins: Sequence[tuple[float, float, int]]) -> str:
    """Draw (promised, observed, count) against the diagonal of perfect calibration."""
    plane = Plane(Axis("confidence (mean of the bin)"), Axis("share correct"))
    most = max((count for *_, count in bins), default=1)
    body = plane.line([(0, 0), (1, 1)], "faint")
    body += plane.line([(p, o) for p, o, _ in bins], "one")
    for promised, observed, count in bins:
        label = f"confidence {promised:.3f}, correct {observed:.3f}, {count} questions"
        radius = 4 + 8 * math.sqrt(count / most)
        body += plane.dot((promised, observed), "one", radius, label)
    legend = [("measured", "one"), ("perfect calibration", "faint")]
    return _drawing(title, plane.frame() + body + _legend(legend, "line"))


def histograms(  # noqa: PLR0913 -- two of everything
    title: str,
    across: Axis,
    relevant: Sequence[int],
    irrelevant: Sequence[int],
    names: tuple[str, str] = ("relevant", "not relevant"),
    mark: tuple[str, float] | None = None,
) -> str:
    """Draw two histograms back to back, each as shares of its own total.

    A *mark* is a named line across both.
    """
    kinds = [(relevant, "one", 1), (irrelevant, "two", -1)]
    shares = [[count / max(1, sum(counts)) for count in counts] for counts, *_ in kinds]
    top = max((s for each in shares for s in each), default=1.0) or 1.0
    plane = Plane(across, Axis("share of its kind", -top, top, mirrored=True))
    width = (across.high - across.low) / max(1, len(relevant))
    body = plane.frame()
    for (counts, tone, sign), each in zip(kinds, shares, strict=True):
        for i, share in enumerate(each):
            left, right = across.low + i * width, across.low + (i + 1) * width
            y0, y1 = sorted((plane.y(0), plane.y(sign * share)))
            body += _tag(
                "rect",
                title=f"{left:.3f} to {right:.3f}: {counts[i]} ({share:.1%})",
                cls=f"bar {tone}",
                x=plane.x(left) + 0.5,
                y=y0,
                width=plane.x(right) - plane.x(left) - 1,
                height=y1 - y0,
            )
    if mark:
        x, label = plane.x(mark[1]), f"{mark[0]} {mark[1]:g}"
        y1, y2 = TOP - 6, HEIGHT - BOTTOM
        body += _tag("line", title=label, cls="mark", x1=x, x2=x, y1=y1, y2=y2)
    legend = [(f"{names[0]}, upwards", "one"), (f"{names[1]}, downwards", "two")]
    return _drawing(title, body + _legend(legend))


def funnel(title: str, rows: Sequence[tuple[str, int, int]]) -> str:
    """Draw how many candidates entered and left each (stage, before, after)."""
    most = max((max(before, after) for _, before, after in rows), default=1) or 1
    height, start = 30, 180
    room = WIDTH - start - 150
    body = ""
    for i, (stage, before, after) in enumerate(rows):
        y, label = 8 + i * height, f"{stage}: {before} in, {after} out"
        name = stage if len(stage) <= LONGEST_NAME else f"{stage[: LONGEST_NAME - 1]}…"
        box: dict[str, Any] = {"x": start, "y": y, "height": 22}
        end = start + room * max(before, after) / most
        body += (
            _tag("text", name, x=start - 10, y=y + 15, text_anchor="end")
            + _tag("rect", cls="bar faint", **box, width=room * before / most)
            + _tag("rect", "", label, cls="bar one", **box, width=room * after / most)
            + _tag("text", f"{before} → {after}", x=end + 8, y=y + 15)
        )
    return _drawing(title, body, 16 + len(rows) * height)


def scatter(title: str, plane: Plane, points: Points) -> str:
    """Draw points against the diagonal; equal points as one larger dot."""
    low, high = plane.across.low, plane.across.high
    body = plane.line([(low, low), (high, high)], "faint")
    for (x, y), count in sorted(Counter(points).items()):
        tone = "faint" if x == y else "one" if y > x else "two"
        label = f"{x:.3f} → {y:.3f}, {count} questions"
        body += plane.dot((x, y), tone, 2.5 + 1.2 * math.sqrt(count), label)
    legend = [("B is better", "one"), ("A is better", "two"), ("equal", "faint")]
    return _drawing(title, plane.frame() + body + _legend(legend))


def ticks(axis: Axis) -> list[float]:
    """Choose round values along *axis*."""
    span = axis.high - axis.low
    if span <= 0:
        return [axis.low]
    power = 10.0 ** math.floor(math.log10(span / TICKS))
    step = next(power * s for s in STEPS if span / (power * s) <= TICKS)
    first = math.ceil(axis.low / step - 1e-9)
    last = math.floor(axis.high / step + 1e-9)
    return [round(i * step, 12) + 0.0 for i in range(first, last + 1)]


def _drawing(title: str, body: str, height: int = HEIGHT) -> str:
    return (
        f'<svg class="plot" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'aria-label="{escape(title)}">{body}</svg>'
    )


def _legend(rows: Sequence[tuple[str, str]], mark: str = "dot") -> str:
    """Name the series in one row above the plot."""
    parts = []
    x = float(LEFT)
    for label, tone in rows:
        sign = (
            _tag("line", cls=f"line {tone}", x2=24, y1=-4, y2=-4)
            if mark == "line"
            else _tag("circle", cls=f"dot {tone}", cx=17, cy=-4, r=6)
        )
        text = _tag("text", label, cls="legend", x=31)
        place = f"translate({_n(x)} {TOP - 16})"
        parts.append(f'<g transform="{place}">{sign}{text}</g>')
        x += 56 + LETTER * len(label)
    return "".join(parts)


def _tag(name: str, text: str = "", title: str = "", **attributes: str | float) -> str:
    """Return an element, its text and attributes escaped."""
    written = "".join(
        f' {"class" if key == "cls" else key.replace("_", "-")}="{_escaped(value)}"'
        for key, value in attributes.items()
    )
    inner = f"<title>{escape(title)}</title>" if title else ""
    return f"<{name}{written}>{inner}{escape(text)}</{name}>"


def _escaped(value: str | float) -> str:
    return escape(value) if isinstance(value, str) else _n(value)


def _n(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
