"""A chart of times against sizes, both axes logarithmic, as one SVG file."""

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from itertools import cycle

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 720, 420, 64, 120, 36, 48
LINE = 13
COLOURS = (
    *("#0b6e4f", "#b5473c", "#3d5a98", "#a8701a", "#6b4a8e", "#3c7f8c", "#6d6d6d"),
    *("#b0578f", "#5c7a29"),
)
STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#333}.grid{stroke:#ddd}"
    "path{fill:none;stroke-width:2}"
    "@media(prefers-color-scheme:dark){text{fill:#ddd}.grid{stroke:#444}}"
)

Points = Sequence[tuple[float, float]]


def chart(title: str, series: Mapping[str, Points]) -> str:
    """Draw a line for each of *series*, named at its end."""
    points = [point for line in series.values() for point in line]
    across = _decades(x for x, _ in points)
    up = _decades(y for _, y in points)

    def place(x: float, y: float) -> tuple[float, float]:
        wide = (math.log10(x) - across[0]) / (across[1] - across[0])
        high = (math.log10(y) - up[0]) / (up[1] - up[0])
        return (
            round(LEFT + wide * (WIDTH - LEFT - RIGHT), 1),
            round(HEIGHT - BOTTOM - high * (HEIGHT - TOP - BOTTOM), 1),
        )

    body = [f'<text x="{LEFT}" y="20">{escape(title)}</text>']
    for power in range(across[0], across[1] + 1):
        x, y = place(10.0**power, 10.0 ** up[0])
        body.append(f'<line class="grid" x1="{x}" x2="{x}" y1="{TOP}" y2="{y}"/>')
        body.append(
            f'<text x="{x}" y="{y + 18}" text-anchor="middle">{10**power:,}</text>'
        )
    for power in range(up[0], up[1] + 1):
        x, y = place(10.0 ** across[0], 10.0**power)
        right = WIDTH - RIGHT
        body.append(f'<line class="grid" x1="{x}" x2="{right}" y1="{y}" y2="{y}"/>')
        body.append(
            f'<text x="{x - 8}" y="{y + 4}" text-anchor="end">{10.0**power:g}</text>'
        )
    ends: list[tuple[float, float, str]] = []
    for colour, (name, line) in zip(cycle(COLOURS), series.items(), strict=False):
        if not line:
            continue
        places = [place(x, y) for x, y in line]
        path = " L".join(f"{x},{y}" for x, y in places)
        body.append(f'<path stroke="{colour}" d="M{path}"/>')
        body += [
            f'<circle cx="{x}" cy="{y}" r="3" fill="{colour}"/>' for x, y in places
        ]
        ends.append((*places[-1], name))
    for x, y, name in _apart(ends):
        body.append(f'<text x="{x + 8}" y="{y + 4:.1f}">{escape(name)}</text>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'role="img" aria-label="{escape(title)}"><style>{STYLE}</style>'
        + "".join(body)
        + "</svg>\n"
    )


def _apart(ends: Iterable[tuple[float, float, str]]) -> list[tuple[float, float, str]]:
    """Move names up, from the lowest on, that would lie on one another."""
    placed: list[tuple[float, float, str]] = []
    for x, y, name in sorted(ends, key=lambda end: -end[1]):
        under = [low for at, low, _ in placed if at == x and y > low - LINE]
        placed.append((x, min([y, *(low - LINE for low in under)]), name))
    return placed


def _decades(values: Iterable[float]) -> tuple[int, int]:
    powers = [math.log10(value) for value in values]
    low, high = math.floor(min(powers)), math.ceil(max(powers))
    return low, max(high, low + 1)
