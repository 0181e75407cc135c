"""Transcripts: labelled interviews, cut into passages for references."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kept.errors import InputError
from kept.few_shot.questionnaire import KeywordTagger, Questionnaire
from kept.few_shot.references import check_split
from kept.text.chunking import sliding_windows

FIELDS = frozenset({"participant", "lines", "chunks", "labels"})
CHUNK_FIELDS = frozenset({"text", "labels", "tags"})


@dataclass(frozen=True, kw_only=True)
class ReferenceChunk:
    """A passage of one participant with its labels and tags."""

    participant: str
    ord: int
    text: str
    tags: tuple[str, ...] = ()
    labels: Mapping[str, int | None] = field(default_factory=dict, hash=False)

    @property
    def id(self) -> str:
        """The participant and the place: stable as long as the cutting is the same."""
        return f"{self.participant}:{self.ord}"


@dataclass(frozen=True, kw_only=True)
class ReferenceBuilder:
    """Cuts transcripts into windows of lines, with labels and tags.

    A chunk's own labels win over those of its participant, item by item. *scores* are
    labels by chunk id, for example from a language model; where they have a chunk,
    they are all its labels. Without a *tagger*, only supplied tags count.
    """

    questionnaire: Questionnaire
    tagger: KeywordTagger | None = None
    evaluation: frozenset[str] = frozenset()
    scores: Mapping[str, Mapping[str, int | None]] = field(
        default_factory=dict, hash=False
    )
    size: int = 8
    step: int = 2

    def __call__(self, rows: Iterable[Mapping[str, Any]]) -> list[ReferenceChunk]:
        """Return all chunks; raise if a participant is in the evaluation split too."""
        chunks = [chunk for row in rows for chunk in self._cut(row)]
        participants = list(dict.fromkeys(chunk.participant for chunk in chunks))
        check_split(participants, self.evaluation)
        ids = [chunk.id for chunk in chunks]
        if len(set(ids)) < len(ids):
            twice = min(one for one in ids if ids.count(one) > 1).rpartition(":")[0]
            msg = f"participant {twice!r} has two rows; join them"
            raise InputError(msg)
        return chunks

    def _cut(self, row: Mapping[str, Any]) -> Iterator[ReferenceChunk]:
        if unknown := row.keys() - FIELDS:
            msg = f"unknown fields {sorted(unknown)}; expected {sorted(FIELDS)}"
            raise InputError(msg)
        participant = str(row.get("participant", "")).strip()
        if not participant or ("lines" in row) == ("chunks" in row):
            msg = (
                f"participant {participant!r}: a row needs a participant and either "
                "lines or chunks"
            )
            raise InputError(msg)
        given = self.questionnaire.labels(row.get("labels") or {})
        parts = (
            [{"text": text} for text in self._windows(participant, row["lines"])]
            if "lines" in row
            else row["chunks"]
        )
        for place, part in enumerate(parts):
            chunk = _as_chunk(participant, part)
            own = self.questionnaire.labels(chunk.get("labels") or {})
            scored = self.scores.get(f"{participant}:{place}")
            hinted = self.tagger(chunk["text"]) if self.tagger else ()
            yield ReferenceChunk(
                participant=participant,
                ord=place,
                text=chunk["text"],
                tags=tuple(dict.fromkeys((*(chunk.get("tags") or ()), *hinted))),
                labels=self.questionnaire.labels(
                    {**given, **own} if scored is None else scored
                ),
            )

    def _windows(self, participant: str, lines: object) -> Sequence[str]:
        if not isinstance(lines, list) or not all(isinstance(x, str) for x in lines):
            msg = f"participant {participant!r}: lines must be a list of texts"
            raise InputError(msg)
        spoken = [line.strip() for line in lines if line.strip()]
        return sliding_windows(spoken, self.size, self.step)


def read_transcripts(path: Path) -> Iterator[Mapping[str, Any]]:
    """Yield the rows of a JSON-lines file."""
    with path.open(encoding="utf-8-sig") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except ValueError:
                row = None
            if not isinstance(row, dict):
                msg = f"{path.name}, line {number}: expected a JSON object"
                raise InputError(msg)
            yield row


def _as_chunk(participant: str, part: object) -> Mapping[str, Any]:
    if isinstance(part, str):
        part = {"text": part}
    if (
        isinstance(part, dict)
        and isinstance(part.get("text"), str)
        and part["text"].strip()
        and not part.keys() - CHUNK_FIELDS
    ):
        return part
    msg = (
        f"participant {participant!r}: a chunk is a text, or an object with text and "
        f"perhaps labels and tags; found {str(part)[:80]!r}"
    )
    raise InputError(msg)
