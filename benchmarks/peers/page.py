"""The page: tables that were measured, kept one by one, and written as Markdown."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from peers.rankings import BENCH

MEASURED = BENCH / "quality" / "tables"


@dataclass(frozen=True)
class Terms:
    """Which other libraries take part, and how many questions are asked at most."""

    peers: tuple[str, ...]
    limit: int | None


@dataclass(frozen=True)
class Table:
    """A table of the page, with the sentence above it."""

    title: str
    text: str
    head: tuple[str, ...]
    rows: list[tuple[str, ...]]

    def markdown(self) -> str:
        """Return it as Markdown."""
        text = self.text.replace(". ", ".\n")
        lines = [f"## {self.title}", "", text, "", _row(self.head)]
        lines += [_row(["---"] * len(self.head)), *map(_row, self.rows), ""]
        return "\n".join(lines)


def save(name: str, table: Table) -> None:
    """Keep a table, so that the others can be measured again without it."""
    MEASURED.mkdir(parents=True, exist_ok=True)
    (MEASURED / f"{name}.json").write_text(json.dumps(asdict(table)), "utf-8")


def saved(name: str) -> Table | None:
    """Return a table that was measured, now or before."""
    path = MEASURED / f"{name}.json"
    return Table(**json.loads(path.read_text("utf-8"))) if path.exists() else None


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
