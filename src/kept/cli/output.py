"""Printing: JSON for machines, tables for people."""

import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any


def print_json(value: Any) -> None:  # noqa: ANN401 -- whatever JSON can hold
    """Print one JSON value on a line of its own, at once."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False) + "\n")
    sys.stdout.flush()


def say(text: str = "") -> None:
    """Print a line."""
    sys.stdout.write(text + "\n")


def print_table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print rows under headings, as wide as the terminal is."""
    from rich.console import Console  # noqa: PLC0415 -- slow to load, not for --json
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in headings:
        table.add_column(heading, overflow="fold")
    for row in rows:
        table.add_row(*(Text("" if cell is None else str(cell)) for cell in row))
    Console(highlight=False).print(table)


def shortened(text: str, most: int = 100) -> str:
    """Return *text* on one line, cut where it gets too long."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + "…"


def number(value: float | None) -> str:
    """Return a score for people; nothing for none."""
    return "" if value is None else f"{value:.3f}"
