"""Candidates as tables: a row each, its fate and every signal in columns."""

from typing import TYPE_CHECKING, Any

from kept._runtime import ARROW, PANDAS
from kept.search.retrieve import Found

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


def candidate_rows(found: Found) -> list[dict[str, Any]]:
    """Return a row for every candidate, the selected first, in order."""
    selection = found.selection
    fates = {
        decision.chunk_id: (step.stage, str(decision.reason))
        for step in selection.trace
        for decision in step.decisions
        if decision.verdict == "dropped"
    }
    names = dict.fromkeys(
        name
        for candidate in (*selection.candidates, *selection.dropped)
        for name in candidate.signals
    )
    rows = []
    for state, pool in (
        ("selected", selection.candidates),
        ("dropped", selection.dropped),
    ):
        for place, candidate in enumerate(pool, start=1):
            stage, reason = fates.get(candidate.id, (None, None))
            kept = state == "selected"
            rows.append(
                {
                    "place": place if kept else None,
                    "state": state,
                    "dropped_by": None if kept else stage,
                    "reason": None if kept else reason,
                    "chunk_id": candidate.id,
                    "document_id": candidate.document.id,
                    "title": candidate.document.title,
                    "source_uri": candidate.document.source_uri,
                    "text": candidate.chunk.text,
                    "score": candidate.score,
                    "protected": candidate.protected,
                    **{name: candidate.signals.get(name) for name in names},
                }
            )
    return rows


def as_pandas(rows: list[dict[str, Any]]) -> "pd.DataFrame":
    """Return *rows* as a data frame."""
    PANDAS.demand()
    import pandas as pd  # noqa: PLC0415 -- an extra

    return pd.DataFrame(rows)


def as_arrow(rows: list[dict[str, Any]]) -> "pa.Table":
    """Return *rows* as an Arrow table."""
    ARROW.demand()
    import pyarrow as pa  # noqa: PLC0415 -- an extra

    return pa.Table.from_pylist(rows)
