"""Grids: cells that span rows and columns, written as a Markdown table."""

from collections.abc import Sequence
from dataclasses import dataclass, field

LONGEST_REPEATED = 200
# A cell is repeated where it spans; so often, for each cell that stands there.
MOST_REPEATED = 20


@dataclass(frozen=True, slots=True)
class Cell:
    """What stands in a cell, and how many columns and rows it takes."""

    text: str
    columns: int = 1
    rows: int = 1
    heading: bool = False


EMPTY = Cell("")


@dataclass(slots=True)
class _Filling:
    """Rows on the way to having a cell in each column."""

    width: int
    room: int
    below: dict[int, tuple[Cell, int]] = field(default_factory=dict)

    def row(self, cells: Sequence[Cell]) -> list[Cell]:
        """Return a row with what spans into it from above."""
        line: list[Cell] = []
        above, self.below = self.below, {}
        for cell in cells:
            self._continued(line, above)
            columns = max(1, min(cell.columns, self.width))
            for place in range(columns):
                shown = cell if place == 0 or cell.heading else EMPTY
                self._spans(len(line), shown, cell.rows)
                line.append(shown)
        while above:
            line += [EMPTY] * (min(above) - len(line))
            self._continued(line, above)
        return line

    def _continued(self, line: list[Cell], above: dict[int, tuple[Cell, int]]) -> None:
        while len(line) in above:
            cell, rows = above.pop(len(line))
            self._spans(len(line), cell, rows)
            line.append(cell)

    def _spans(self, column: int, cell: Cell, rows: int) -> None:
        """Note that *cell* goes on in the next row, while there is room."""
        if rows > 1 and self.room > 0:
            self.room -= 1
            repeated = cell if len(cell.text) <= LONGEST_REPEATED else EMPTY
            self.below[column] = (repeated, rows - 1)


def filled(rows: Sequence[Sequence[Cell]]) -> list[list[Cell]]:
    """Return rows with a cell in each of their columns.

    A cell over several rows is repeated in each, and one over several columns if it is
    a heading. No span is wider than the longest row has cells: one of 100,000,000
    columns took a gigabyte.
    """
    rows = [row for row in rows if row]
    cells = sum(map(len, rows))
    filling = _Filling(max(map(len, rows), default=0), MOST_REPEATED * cells)
    return [filling.row(row) for row in rows]


def as_table(rows: Sequence[Sequence[Cell]]) -> list[str]:
    """Return a table's rows as the lines of a Markdown table.

    Several rows of headings become one. A table of one column is lines, and one without
    headings has no line below its first row.
    """
    grid = [row for row in filled(rows) if any(cell.text for cell in row)]
    width = max(map(len, grid), default=0)
    if width == 0:
        return []
    grid = [row + [EMPTY] * (width - len(row)) for row in grid]
    heads = _headings(grid)
    lines = [_line([cell.text for cell in row]) for row in grid[heads:]]
    if not heads:
        return lines
    columns = zip(*grid[:heads], strict=True)
    names = [" ".join(dict.fromkeys(c.text for c in col if c.text)) for col in columns]
    return [_line(names), "|" + "---|" * width, *lines]


def _headings(grid: Sequence[Sequence[Cell]]) -> int:
    """Return how many rows at the top hold nothing but headings."""
    for place, row in enumerate(grid):
        if not all(cell.heading or not cell.text for cell in row):
            return place
    return 0


def _line(texts: Sequence[str]) -> str:
    cells = (" ".join(text.split()).replace("|", "\\|") for text in texts)
    return f"| {' | '.join(cells)} |"
