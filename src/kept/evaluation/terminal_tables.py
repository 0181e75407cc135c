"""Reports in the terminal, as rich tables."""

from collections.abc import Iterable
from typing import Literal

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from kept._runtime import printable
from kept.evaluation.fixture_arms import FixtureReport
from kept.evaluation.report import RunReport
from kept.evaluation.tables import Cell, ReportTable, fixture_tables, run_tables


def drawn(tables: Iterable[ReportTable]) -> RenderableType:
    """Draw tables one below the other."""
    return Group(*map(_drawn, tables))


def drawn_report(report: RunReport) -> RenderableType:
    """Draw a run: its title, its notes and its tables."""
    return Group(
        Text(printable(f"{report.title}: {report.summary}")),
        *(Text(note, style="yellow") for note in report.notes),
        drawn(run_tables(report)),
    )


def drawn_fixture(report: FixtureReport) -> RenderableType:
    """Draw a fixture: what went wrong at ingestion, and its tables."""
    problems = [Text(p, style="red") for p in report.ingested.problems]
    return Group(*problems, drawn(fixture_tables(report)))


def _drawn(table: ReportTable) -> Table:
    shown = Table(
        title=Text(printable(table.title)), box=box.SIMPLE, title_justify="left"
    )
    for i, name in enumerate(table.head):
        words = all(isinstance(row[i], str) for row in table.rows)
        justify: Literal["left", "right"] = "left" if words else "right"
        shown.add_column(Text(name), justify=justify, overflow="fold")
    for row in table.rows:
        shown.add_row(*(Text(_text(cell)) for cell in row))
    return shown


def _text(cell: Cell) -> str:
    if cell is None:
        return "-"
    return f"{cell:.4f}" if isinstance(cell, float) else printable(str(cell))
