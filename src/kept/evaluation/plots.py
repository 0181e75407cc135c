"""Plots: drawings as plain SVG, without scripts, fonts or colours of their own.

Colours come from the page's style sheet through classes, so that one drawing is
readable in light and dark; series differ in dashes and shapes too.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

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
    """What is measured along one side, and from where to where.

    On a *mirrored* axis the values below zero count upwards again.
    """

    label: str
    low: float = 0.0
    high: float = 1.0
    mirrored: bool = False

    def told(self, value: float) -> str:
        """Return *value* as it is written at a tick."""
        return f"{abs(value) if self.mirrored else value:g}"


@dataclass(frozen=True, slots=True)
class Plane:
    """Two axes, and where a value lies on the drawing."""

    across: Axis
    up: Axis

    def x(self, value: float) -> float:
        """Return where *value* lies from the left."""
        return LEFT + _share(value, self.across) * (WIDTH - LEFT - RIGHT)

    def y(self, value: float) -> float:
        """Return where *value* lies from the top."""
        return HEIGHT - BOTTOM - _share(value, self.up) * (HEIGHT - TOP - BOTTOM)

    def frame(self) -> str:
        """Draw grid, ticks and labels."""
        parts = []
        for tick in ticks(self.across):
            x = _n(self.x(tick))
            parts.append(
                f'<line class="grid" x1="{x}" x2="{x}" y1="{TOP}" '
                f'y2="{HEIGHT - BOTTOM}"/>'
                f'<text x="{x}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">'
                f"{self.across.told(tick)}</text>"
            )
        for tick in ticks(self.up):
            y = _n(self.y(tick))
            parts.append(
                f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" '
                f'y2="{y}"/><text x="{LEFT - 8}" y="{y}" dy="4" text-anchor="end">'
                f"{self.up.told(tick)}</text>"
            )
        middle = _n((LEFT + WIDTH - RIGHT) / 2)
        across, up = escape(self.across.label), escape(self.up.label)
        half = _n((TOP + HEIGHT - BOTTOM) / 2)
        parts.append(
            f'<text class="label" x="{middle}" y="{HEIGHT - 10}" '
            f'text-anchor="middle">{across}</text>'
            f'<text class="label" transform="translate(16 {half}) rotate(-90)" '
            f'text-anchor="middle">{up}</text>'
        )
        return "".join(parts)


def lines(title: str, plane: Plane, series: Iterable[Series]) -> str:
    """Draw lines with a legend."""
    drawn = list(series)
    body = "".join(
        f'<polyline class="line {each.tone}" points="{_path(plane, each.points)}">'
        f"<title>{escape(each.label)}</title></polyline>"
        for each in drawn
    )
    legend = [(each.label, each.tone) for each in drawn]
    return _drawing(title, plane.frame() + body + _legend(legend, "line"))


def reliability_plot(title: str, bins: Sequence[tuple[float, float, int]]) -> str:
    """Draw (promised, observed, count) against the diagonal of perfect trust."""
    plane = Plane(Axis("confidence (mean of the bin)"), Axis("share correct"))
    most = max((count for *_, count in bins), default=1)
    diagonal = _path(plane, [(0, 0), (1, 1)])
    dots = "".join(
        f'<circle class="dot one" cx="{_n(plane.x(promised))}" '
        f'cy="{_n(plane.y(observed))}" r="{_n(4 + 8 * math.sqrt(count / most))}">'
        f"<title>confidence {promised:.3f}, correct {observed:.3f}, "
        f"{count} questions</title></circle>"
        for promised, observed, count in bins
    )
    path = _path(plane, [(p, o) for p, o, _ in bins])
    body = (
        f'<polyline class="line faint" points="{diagonal}"/>'
        f'<polyline class="line one" points="{path}"/>{dots}'
    )
    legend = [("measured", "one"), ("perfect trust", "faint")]
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
    totals = [max(1, sum(relevant)), max(1, sum(irrelevant))]
    shares = [
        [count / total for count in counts]
        for counts, total in zip((relevant, irrelevant), totals, strict=True)
    ]
    top = max((s for each in shares for s in each), default=1.0) or 1.0
    plane = Plane(across, Axis("share of its kind", -top, top, mirrored=True))
    width = (across.high - across.low) / max(1, len(relevant))
    bars = []
    for tone, sign, counts, each in zip(
        ("one", "two"), (1, -1), (relevant, irrelevant), shares, strict=True
    ):
        for i, share in enumerate(each):
            left, right = across.low + i * width, across.low + (i + 1) * width
            y0, y1 = sorted((plane.y(0), plane.y(sign * share)))
            bars.append(
                f'<rect class="bar {tone}" x="{_n(plane.x(left) + 0.5)}" '
                f'y="{_n(y0)}" width="{_n(plane.x(right) - plane.x(left) - 1)}" '
                f'height="{_n(y1 - y0)}"><title>{left:.3f} to {right:.3f}: '
                f"{counts[i]} ({share:.1%})</title></rect>"
            )
    legend = [(f"{names[0]}, upwards", "one"), (f"{names[1]}, downwards", "two")]
    line = _marked(plane, *mark) if mark else ""
    return _drawing(title, plane.frame() + "".join(bars) + line + _legend(legend))


def _marked(plane: Plane, label: str, value: float) -> str:
    x = _n(plane.x(value))
    return (
        f'<line class="mark" x1="{x}" x2="{x}" y1="{TOP - 6}" y2="{HEIGHT - BOTTOM}">'
        f"<title>{escape(label)} {value:g}</title></line>"
    )


def funnel(title: str, rows: Sequence[tuple[str, int, int]]) -> str:
    """Draw for each (stage, before, after) how many went in and came out."""
    most = max((max(before, after) for _, before, after in rows), default=1) or 1
    height, room, start = 30, WIDTH - 180 - 150, 180
    parts = []
    for i, (stage, before, after) in enumerate(rows):
        y = 8 + i * height
        parts.append(
            f'<text x="{start - 10}" y="{y + 15}" text-anchor="end">'
            f"{escape(_short(stage))}</text>"
            f'<rect class="bar faint" x="{start}" y="{y}" height="22" '
            f'width="{_n(room * before / most)}"/>'
            f'<rect class="bar one" x="{start}" y="{y}" height="22" '
            f'width="{_n(room * after / most)}">'
            f"<title>{escape(stage)}: {before} in, {after} out</title></rect>"
            f'<text x="{_n(start + room * max(before, after) / most + 8)}" '
            f'y="{y + 15}">{before} → {after}</text>'
        )
    return _drawing(title, "".join(parts), 16 + len(rows) * height)


def scatter(title: str, plane: Plane, points: Points) -> str:
    """Draw points above and below the diagonal; equal ones as one larger dot."""
    low, high = plane.across.low, plane.across.high
    diagonal = _path(plane, [(low, low), (high, high)])
    dots = "".join(
        f'<circle class="dot {_side(x, y)}" cx="{_n(plane.x(x))}" '
        f'cy="{_n(plane.y(y))}" r="{_n(2.5 + 1.2 * math.sqrt(count))}">'
        f"<title>{x:.3f} → {y:.3f}, {count} questions</title></circle>"
        for (x, y), count in sorted(Counter(points).items())
    )
    body = f'<polyline class="line faint" points="{diagonal}"/>{dots}'
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
            f'<line class="line {tone}" x2="24" y1="-4" y2="-4"/>'
            if mark == "line"
            else f'<circle class="dot {tone}" cx="17" cy="-4" r="6"/>'
        )
        parts.append(
            f'<g transform="translate({_n(x)} {TOP - 16})">{sign}'
            f'<text class="legend" x="31">{escape(label)}</text></g>'
        )
        x += 56 + LETTER * len(label)
    return "".join(parts)


def _path(plane: Plane, points: Points) -> str:
    """Write a line's points, leaving out those that fall on the same spot."""
    spots = [(f"{plane.x(x):.1f}", f"{plane.y(y):.1f}") for x, y in points]
    return " ".join(f"{x},{y}" for x, y in dict.fromkeys(spots))


def _share(value: float, axis: Axis) -> float:
    span = axis.high - axis.low
    return (value - axis.low) / span if span else 0.5


def _side(before: float, after: float) -> str:
    if after == before:
        return "faint"
    return "one" if after > before else "two"


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_NAME else text[: LONGEST_NAME - 1] + "…"


def _n(value: float) -> str:
    return f"{value:.2f}"
