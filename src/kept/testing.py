"""Tables, fakes and contracts for testing stages, stores and embedders."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kept.model import Candidate, Chunk, Document, Query
from kept.ports import Opinion

SIGNALS = (
    *("cosine", "distance", "bm25", "coverage", "bm25_share", "relevance"),
    *("dense_norm", "keyword_norm", "fused"),
)


def candidates(table: str) -> tuple[Candidate, ...]:
    """Build candidates from a table of ``id score [!] [key=value ...]`` lines.

    The score is also the cosine, and one minus it the distance, unless they are
    given. ``!`` protects. ``text=``, ``ord=``, ``doc=``, ``tags=a,b``, ``role=``,
    ``excerpt=yes``, ``label.ITEM=2`` and ``tokens=`` describe the chunk;
    ``authority=``, ``confidence=``, ``horizon=`` and ``chunks=`` its document;
    any other key is metadata of the chunk.
    """
    lines = (line.split() for line in table.strip().splitlines())
    return tuple(_candidate(words) for words in lines if words)


def _candidate(words: list[str]) -> Candidate:
    chunk_id, score, *rest = words
    given = dict(word.split("=", 1) for word in rest if "=" in word)
    signals = {
        "cosine": float(score),
        "distance": round(1 - float(score), 9),
    } | {name: float(given.pop(name)) for name in SIGNALS if name in given}
    labels = {
        key.removeprefix("label."): None if given[key] == "null" else int(given[key])
        for key in list(given)
        if key.startswith("label.")
    }
    document: dict[str, Any] = {"id": given.pop("doc", chunk_id)}
    if "chunks" in given:
        document["chunk_count"] = int(given.pop("chunks"))
    if "authority" in given:
        document["authority"] = given.pop("authority")
    if "confidence" in given:
        document["confidence"] = float(given.pop("confidence"))
    if "horizon" in given:
        document["time_horizon"] = given.pop("horizon")
    text = given.pop("text", chunk_id)
    return Candidate(
        chunk=Chunk(
            id=chunk_id,
            document_id=document["id"],
            ord=int(given.pop("ord", 0)),
            text=text,
            token_len=int(given.pop("tokens", 1)),
            tags=tuple(filter(None, given.pop("tags", "").split(","))),
            role=given.pop("role", None),
            excerpt=given.pop("excerpt", "no") == "yes",
            labels=labels,
            metadata={k: v for k, v in given.items() if not k.startswith("label.")},
        ),
        document=Document(**document),
        score=float(score),
        signals=signals,
        protected="!" in rest,
    )


@dataclass(frozen=True)
class ScriptedJudge:
    """A judge that accepts the ids it was told to accept."""

    accepts: frozenset[str]

    def review(
        self, query: Query, candidates: Sequence[Candidate]
    ) -> Sequence[Opinion]:
        """Accept or reject; never unsure."""
        return [
            Opinion.ACCEPT if c.id in self.accepts else Opinion.REJECT
            for c in candidates
        ]
