"""Candidate rows: each candidate of a record, its attributes and its end, as JSON."""

from collections.abc import Iterator
from typing import Any

from kept.kernel.model import Candidate
from kept.kernel.record import Selection, Verdict


def candidate_rows(
    selection: Selection, *, titled: bool = True
) -> Iterator[dict[str, Any]]:
    """Yield every candidate, the selected first; *titled*, with its document's title.

    ``drop_reason`` is that of the stage that dropped it, and null for the selected.
    """
    reasons = {d.chunk_id: str(d.reason) for d in selection.decisions(Verdict.DROPPED)}
    for state, pool in (
        ("selected", selection.candidates),
        ("dropped", selection.dropped),
    ):
        for candidate in pool:
            yield {
                "chunk_id": candidate.id,
                "document_id": candidate.document.id,
                **({"title": candidate.document.title} if titled else {}),
                "state": state,
                "drop_reason": None if state == "selected" else reasons[candidate.id],
                "protected": candidate.protected,
                **attributes(candidate),
                "signals": dict(candidate.signals),
            }


def attributes(candidate: Candidate) -> dict[str, str | float | bool | None]:
    """Return what was declared or found out of a chunk and its document."""
    chunk, document = candidate.chunk, candidate.document
    return {
        "type": document.type,
        "role": chunk.role,
        "excerpt": chunk.excerpt,
        "confidence": chunk.confidence,
        "document_confidence": document.confidence,
        "authority": document.authority,
        "time_horizon": document.time_horizon,
    }


def declared(candidate: Candidate) -> dict[str, Any]:
    """Return the attributes that a candidate has."""
    # A confidence of 0 is one.
    found = attributes(candidate).items()
    return {name: v for name, v in found if v is not None and v is not False}
