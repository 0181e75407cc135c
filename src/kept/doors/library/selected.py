"""An answer that shows itself: in a terminal, in a notebook, as a table."""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from html import escape
from typing import TYPE_CHECKING, Self

from kept.doors.library.dataframes import (
    as_arrow,
    as_pandas,
    candidate_rows,
)
from kept.doors.library.html import answer_html, funnel_html
from kept.explain.explanations import why
from kept.explain.render import story_lines
from kept.search.funnel import account, funnel_rows
from kept.search.render import (
    FoundJson,
    PassageJson,
    candidate_json,
    found_json,
)
from kept.search.retrieve import Found

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from rich.table import Table

SHOWN = 60


@dataclass(frozen=True, slots=True)
class Explanation:
    """Sentences that show themselves; *drawn* is the picture that goes with them."""

    lines: tuple[str, ...]
    drawn: str = ""

    def __str__(self) -> str:
        return "\n".join(self.lines)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        told = "".join(f"<li>{escape(line)}</li>" for line in self.lines)
        return f"{self.drawn}<ul>{told}</ul>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Selected(Found):
    """What a search found, ready to be looked at."""

    @classmethod
    def of(cls, found: Found) -> Self:
        """Return *found* as something to look at."""
        return cls(
            **{field.name: getattr(found, field.name) for field in fields(Found)}
        )

    def __len__(self) -> int:
        return len(self.selection.candidates)

    def __iter__(self) -> Iterator[PassageJson]:
        """Yield every selected passage as every door shows it."""
        return (candidate_json(c) for c in self.selection.candidates)

    def __bool__(self) -> bool:
        """Whether there is anything to cite."""
        return bool(self.selection.candidates)

    def explain(self, chunk_id: str | None = None) -> Explanation:
        """Tell how the answer came about, or the story of one candidate."""
        if chunk_id is not None:
            return Explanation(tuple(story_lines(why(self, chunk_id))))
        lines = [
            f"{stage}: {'' if before is None else f'{before} → '}{after}"
            + (f" ({told})" if told else "")
            for stage, before, after, told in funnel_rows(self)
        ]
        lines.append(account(self.selection))
        if self.refused is not None:
            lines.append(f"refused: {self.refused.reason}. {self.refused.message}")
        return Explanation(tuple(lines), funnel_html(self))

    def to_json(self) -> FoundJson:
        """Return the same JSON that every other door gives."""
        return found_json(self)

    def to_pandas(self) -> "pd.DataFrame":
        """Return every candidate as a row, the selected first."""
        return as_pandas(candidate_rows(self))

    def to_arrow(self) -> "pa.Table":
        """Return every candidate as a row of an Arrow table, the selected first."""
        return as_arrow(candidate_rows(self))

    def __repr__(self) -> str:
        question = self.request.question
        asked = question if len(question) <= SHOWN else question[: SHOWN - 1] + "…"
        if self.refused is not None:
            return f"no passage for {asked!r}: {self.refused.reason}"
        titles = dict.fromkeys(
            c.document.title or c.document.source_uri for c in self.selection.candidates
        )
        noun = "passage" if len(self) == 1 else "passages"
        return f"{len(self)} {noun} for {asked!r}: {', '.join(titles)}"

    def __rich__(self) -> "Table":
        """Return a table for the terminal."""
        from rich.table import Table  # noqa: PLC0415 -- only where it is shown
        from rich.text import Text  # noqa: PLC0415

        table = Table(title=Text(repr(self)), title_justify="left")
        for name in ("relevance", "title", "passage"):
            table.add_column(name)
        for shown in self:
            relevance = shown["relevance"]
            share = "" if relevance is None else f"{relevance:.0%}"
            table.add_row(share, Text(shown["title"]), Text(shown["text"]))
        return table

    def _repr_html_(self) -> str:
        return answer_html(self)
