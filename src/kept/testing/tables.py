"""Candidates from tables of text, and what a stage decided, for tests of stages."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kept.kernel.model import Candidate, Chunk, Document, Query, Scalar
from kept.kernel.outcome import Outcome
from kept.kernel.pool import Pool
from kept.kernel.ports import Opinion, Reading

SIGNALS = (
    *("cosine", "distance", "bm25", "coverage", "bm25_share", "relevance"),
    *("in_dense", "in_keyword", "dense_norm", "keyword_norm", "fused", "composite"),
    *("meaning", "wave", "first_look"),
)

DOCUMENT_FIELDS: tuple[tuple[str, str, Callable[[str], Any]], ...] = (
    ("chunks", "chunk_count", int),
    ("authority", "authority", str),
    ("confidence", "confidence", float),
    ("horizon", "time_horizon", str),
)


def candidates(table: str) -> Pool:
    """Build a pool from a table of ``id score [!] [*] [key=value ...]`` lines.

    The score is also the cosine, and one minus the cosine the distance, unless
    they are given. ``!`` protects, ``*`` pins. Any signal can be given by name;
    ``bm25=`` puts the candidate in the keyword leg, and all are in the dense leg.
    ``text=``, ``ord=``, ``doc=``, ``tags=a,b``, ``role=``, ``excerpt=yes``,
    ``label.ITEM=2``, ``chunk_confidence=`` and ``tokens=`` describe the chunk;
    ``authority=``, ``confidence=``, ``horizon=`` and ``chunks=`` its document;
    ``vector=1,0`` is its vector; any other key is metadata of the chunk.
    """
    lines = (line.split() for line in table.strip().splitlines())
    return Pool.of(_candidate(words) for words in lines if words)


def _signals(score: float, given: dict[str, str]) -> dict[str, float]:
    """Remove the signals from *given* and add the defaults of the others."""
    named = {name: float(given.pop(name)) for name in SIGNALS if name in given}
    cosine = named.get("cosine", score)
    return {
        "cosine": cosine,
        "distance": round(1 - cosine, 9),
        "bm25": 0.0,
        "coverage": 0.0,
        "bm25_share": 0.0,
        "relevance": min(max(score, 0.0), 1.0),
        "in_dense": 1.0,
        "in_keyword": 1.0 if "bm25" in named else 0.0,
        **named,
    }


def _candidate(words: list[str]) -> Candidate:
    chunk_id, score, *rest = words
    given = dict(word.split("=", 1) for word in rest if "=" in word)
    signals = _signals(float(score), given)
    labels = {
        key.removeprefix("label."): None if given[key] == "null" else int(given[key])
        for key in list(given)
        if key.startswith("label.")
    }
    document: dict[str, Any] = {"id": given.pop("doc", chunk_id)}
    for key, name, kind in DOCUMENT_FIELDS:
        if key in given:
            document[name] = kind(given.pop(key))
    text = given.pop("text", chunk_id)
    chunk_confidence = given.pop("chunk_confidence", None)
    vector = given.pop("vector", None)
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
            confidence=None if chunk_confidence is None else float(chunk_confidence),
            labels=labels,
            metadata={k: v for k, v in given.items() if not k.startswith("label.")},
        ),
        document=Document(**document),
        score=float(score),
        signals=signals,
        protected="!" in rest or "*" in rest,
        pinned="*" in rest,
        vector=None
        if vector is None
        else np.asarray([float(x) for x in vector.split(",")], np.float32),
    )


def decisions_in(outcome: Outcome) -> list[tuple[str, str, str, dict[str, Scalar]]]:
    """Return each decision as (chunk id, verdict, reason, evidence)."""
    return [
        (d.chunk_id, str(d.verdict), str(d.reason), dict(d.evidence))
        for d in outcome.decisions
    ]


def ids(outcome: Outcome) -> list[str]:
    """Return the ids of what *outcome* kept, in its order."""
    return [c.id for c in outcome.kept]


@dataclass(frozen=True)
class ScriptedJudge:
    """A judge that accepts the given ids."""

    accepts: frozenset[str]

    def review(
        self, query: Query, candidates: Sequence[Candidate]
    ) -> Sequence[Opinion]:
        """Accept or reject; never unsure."""
        return [
            Opinion.ACCEPT if c.id in self.accepts else Opinion.REJECT
            for c in candidates
        ]


@dataclass(frozen=True)
class ScriptedReader:
    """A reader that has a reading for each text; a text without one is not worth it.

    It knows no question that begins with one of *foreign*.
    """

    readings: Mapping[str, Reading] = field(default_factory=dict, hash=False)
    foreign: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """Name the reader."""
        return "scripted-reader"

    def knows(self, question: str) -> bool:
        """Return whether it would read for this question."""
        return not question.startswith(self.foreign) if self.foreign else True

    def read(
        self, question: str, passages: Sequence[tuple[str, str]]
    ) -> Sequence[Reading]:
        """Return the reading of each text, in order."""
        nothing = Reading(worth=-5.0)
        return [self.readings.get(text, nothing) for _, text in passages]
