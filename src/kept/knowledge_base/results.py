"""Results of the Python door: passages with attributes, which display themselves."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from html import escape
from typing import TYPE_CHECKING, Any, Self

from kept._runtime import ARROW, PANDAS
from kept.ingest.receipts import Receipt
from kept.kernel.model import Candidate
from kept.search.answer.extractive import missing_words
from kept.search.funnel import account, funnel_rows
from kept.search.render import (
    FoundJson,
    PassageJson,
    candidate_json,
    found_json,
    rating_of,
)
from kept.search.retrieve import Found

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from rich.table import Table

SHOWN = 60
# The funnel's drawing, in units of its view box.
WIDTH, ROW, LABEL, ROOM = 640, 22, 170, 330


@dataclass(frozen=True, slots=True)
class ResultPassage:
    """A passage of a search result; ``str()`` of it is its text.

    It deserves to be cited unless it is context (*cited* is False).
    """

    candidate: Candidate
    question: str = field(repr=False)
    cited: bool = True

    @property
    def id(self) -> str:
        """The id of the chunk, as `SearchResult.explain` takes it."""
        return self.candidate.id

    @property
    def text(self) -> str:
        """The passage, word for word."""
        return self.candidate.chunk.text

    @property
    def title(self) -> str:
        """The title of its document, else where the document came from."""
        return self.candidate.document.title or self.source

    @property
    def source(self) -> str:
        """Where its document came from: a path, a URL or a name."""
        return self.candidate.document.source_uri

    @property
    def document_id(self) -> str:
        """The id of its document."""
        return self.candidate.document.id

    @property
    def relevance(self) -> float | None:
        """The probability that a careful writer would cite it for this question.

        None where it is not measured.
        """
        return self.candidate.signals.get("relevance")

    @property
    def rating(self) -> str | None:
        """The relevance in a word: strong, good or partial."""
        return rating_of(self.relevance)

    @property
    def missing(self) -> tuple[str, ...]:
        """The words of content in the question that it has in no form."""
        return missing_words(self.question, (self.candidate,))

    @property
    def score(self) -> float:
        """The score that decided the order, in the preset's own scale."""
        return self.candidate.score

    @property
    def page(self) -> int | None:
        """The page of a PDF that the passage is on, where it is known."""
        page = self.metadata.get("page")
        return page if isinstance(page, int) else None

    @property
    def tags(self) -> tuple[str, ...]:
        """The tags of the passage."""
        return self.candidate.chunk.tags

    @property
    def metadata(self) -> dict[str, Any]:
        """The metadata of the document, with the passage's own on top."""
        candidate = self.candidate
        return {**candidate.document.metadata, **candidate.chunk.metadata}

    @property
    def protected(self) -> bool:
        """Whether no stage was allowed to drop it."""
        return self.candidate.protected

    def to_json(self) -> PassageJson:
        """Return the passage as the JSON of every door has it."""
        return candidate_json(self.candidate, self.question, cited=self.cited)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<passage {self.id} of {self.title!r}{_rated(self)}>"

    def _repr_html_(self) -> str:
        return (
            f"<strong>{escape(self.title)}</strong>{_rated(self)}"
            f"<br>{escape(self.text)}"
        )


@dataclass(frozen=True, slots=True)
class Explanation:
    """Sentences that display themselves; *drawn* is the picture that goes with them."""

    lines: tuple[str, ...]
    drawn: str = ""

    def __str__(self) -> str:
        return "\n".join(self.lines)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        items = "".join(f"<li>{escape(line)}</li>" for line in self.lines)
        return f"{self.drawn}<ul>{items}</ul>"


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult(Found):
    """What a search found: iterate over its passages, or look at it."""

    @classmethod
    def of(cls, found: Found) -> Self:
        """Return *found* as something to look at."""
        return cls(**{each.name: getattr(found, each.name) for each in fields(Found)})

    @property
    def passages(self) -> tuple[ResultPassage, ...]:
        """The passages that deserve to be cited, best first."""
        return tuple(self)

    @property
    def context_passages(self) -> tuple[ResultPassage, ...]:
        """The best of the rest, as many as were asked for; none of it is cited."""
        question = self.request.question
        return tuple(ResultPassage(c, question, cited=False) for c in self.context)

    def __len__(self) -> int:
        return len(self.selection.candidates)

    def __iter__(self) -> Iterator[ResultPassage]:
        question = self.request.question
        return (ResultPassage(c, question) for c in self.selection.candidates)

    def __getitem__(self, place: int) -> ResultPassage:
        """Return the passage at a place; the best one is at 0."""
        return ResultPassage(self.selection.candidates[place], self.request.question)

    def __bool__(self) -> bool:
        """Whether there is anything to cite."""
        return bool(self.selection.candidates)

    def explain(self, chunk_id: str | None = None) -> Explanation:
        """Explain how the result came about, or what happened to one candidate."""
        if chunk_id is not None:
            # Loaded when asked for: a search that is not explained starts without it.
            from kept.explain.explanations import why  # noqa: PLC0415
            from kept.explain.render import story_lines  # noqa: PLC0415

            return Explanation(tuple(story_lines(why(self, chunk_id))))
        lines = [
            f"{stage}: {'' if before is None else f'{before} → '}{after}"
            + (f" ({what})" if what else "")
            for stage, before, after, what in funnel_rows(self)
        ]
        lines.append(account(self.selection))
        if self.refused is not None:
            lines.append(f"refused: {self.refused.reason}. {self.refused.message}")
        return Explanation(tuple(lines), _funnel_html(self))

    def to_json(self) -> FoundJson:
        """Return the same JSON that every other door gives."""
        return found_json(self)

    def to_pandas(self) -> "pd.DataFrame":
        """Return every candidate as a row, the selected first."""
        PANDAS.demand()
        import pandas as pd  # noqa: PLC0415 -- an extra

        return pd.DataFrame(_candidate_rows(self))

    def to_arrow(self) -> "pa.Table":
        """Return every candidate as a row of an Arrow table, the selected first."""
        ARROW.demand()
        import pyarrow as pa  # noqa: PLC0415 -- an extra

        return pa.Table.from_pylist(_candidate_rows(self))

    def __str__(self) -> str:
        """Return the passages numbered, or the refusal: what a person reads."""
        if self.refused is not None:
            return self.refused.message
        return "\n\n".join(
            f"[{place}] {passage.title}{_rated(passage)}\n{passage}"
            for place, passage in enumerate(self, start=1)
        )

    def __repr__(self) -> str:
        question = self.request.question
        asked = question if len(question) <= SHOWN else question[: SHOWN - 1] + "…"
        if self.refused is not None:
            return f"no passage for {asked!r}: {self.refused.reason}"
        titles = dict.fromkeys(passage.title for passage in self)
        noun = "passage" if len(self) == 1 else "passages"
        return f"{len(self)} {noun} for {asked!r}: {', '.join(titles)}"

    def __rich__(self) -> "Table":
        """Return a table for the terminal."""
        from rich.table import Table  # noqa: PLC0415 -- only where it is shown
        from rich.text import Text  # noqa: PLC0415

        table = Table(title=Text(repr(self)), title_justify="left")
        for name in ("relevance", "title", "passage"):
            table.add_column(name)
        for one in self:
            table.add_row(one.rating, Text(one.title), Text(one.text))
        return table

    def _repr_html_(self) -> str:
        if self.refused is not None:
            message = escape(self.refused.message)
            head = f"<p><strong>Nothing to cite.</strong> {message}</p>"
        else:
            items = "".join(f"<li>{one._repr_html_()}</li>" for one in self)
            head = f"<ol>{items}</ol>"
        return (
            f"<p><em>{escape(self.request.question)}</em></p>{head}<details><summary>"
            f"How it came about</summary>{_funnel_html(self)}</details>"
        )


class ReceiptList(list[Receipt]):
    """The receipts of everything that was submitted, counted when displayed."""

    def __repr__(self) -> str:
        counts = Counter(receipt.status for receipt in self)
        shown = ", ".join(f"{count} {status}" for status, count in counts.items())
        texts = "1 text" if len(self) == 1 else f"{len(self)} texts"
        return f"{texts}: {shown}" if self else "no texts"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{escape(r.source_uri)}</td><td>{escape(r.status)}</td>"
            f"<td>{r.chunks}</td><td>{escape(r.error or r.rule or '')}</td></tr>"
            for r in self
        )
        head = "<tr><th>source</th><th>status</th><th>chunks</th><th></th></tr>"
        return f"<p>{escape(repr(self))}</p><table>{head}{rows}</table>"


def _candidate_rows(found: Found) -> list[dict[str, Any]]:
    """Return a row for every candidate, the selected first, in order."""
    selection = found.selection
    dropped_by = {
        decision.chunk_id: (step.stage, str(decision.reason))
        for step in selection.trace
        for decision in step.decisions
        if decision.verdict == "dropped"
    }
    pool = (*selection.candidates, *selection.dropped)
    signals = dict.fromkeys(name for one in pool for name in one.signals)
    rows = []
    for place, candidate in enumerate(pool, start=1):
        kept = place <= len(selection.candidates)
        stage, reason = dropped_by.get(candidate.id, (None, None))
        rows.append(
            {
                "place": place if kept else None,
                "state": "selected" if kept else "dropped",
                # A candidate that was dropped and then put back has both.
                "dropped_by": None if kept else stage,
                "reason": None if kept else reason,
                "chunk_id": candidate.id,
                "document_id": candidate.document.id,
                "title": candidate.document.title,
                "source_uri": candidate.document.source_uri,
                "text": candidate.chunk.text,
                "score": candidate.score,
                "protected": candidate.protected,
                **{name: candidate.signals.get(name) for name in signals},
            }
        )
    return rows


def _funnel_html(found: Found) -> str:
    """Draw how many candidates each stage took in and let through."""
    rows = funnel_rows(found)
    most = max([1, *(max(before or 0, after) for _, before, after, _ in rows)])
    bars = "".join(
        _bar(place * ROW, stage, before, after, most, what)
        for place, (stage, before, after, what) in enumerate(rows)
    )
    label = escape(f"Candidates by stage: {account(found.selection)}")
    # No script and no style sheet: notebooks strip them from untrusted outputs.
    return (
        f'<svg role="img" aria-label="{label}" viewBox="0 0 {WIDTH} {len(rows) * ROW}" '
        f'width="100%" fill="currentColor" font-family="sans-serif" font-size="12">'
        f"{bars}</svg><p>{escape(account(found.selection))}</p>"
    )


def _bar(  # noqa: PLR0913 -- all of one line
    top: int, stage: str, before: int | None, after: int, most: int, what: str
) -> str:
    def rectangle(count: int, opacity: float) -> str:
        return (
            f'<rect x="{LABEL}" y="{top + 3}" width="{ROOM * count / most:.1f}" '
            f'height="{ROW - 6}" fill-opacity="{opacity}"/>'
        )

    shown = f"{after}" if before is None else f"{before} → {after}"
    lost = "" if before is None else rectangle(before, 0.15)
    return (
        f"<g><title>{escape(f'{stage}: {what}')}</title>"
        f'<text x="{LABEL - 8}" y="{top + 15}" text-anchor="end">{escape(stage)}</text>'
        f"{lost}{rectangle(after, 0.55)}"
        f'<text x="{LABEL + ROOM + 8}" y="{top + 15}">{shown}</text></g>'
    )


def _rated(passage: ResultPassage) -> str:
    return "" if passage.rating is None else f", {passage.rating}"
