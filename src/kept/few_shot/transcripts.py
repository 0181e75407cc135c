"""Transcripts: labelled interviews, cut into the passages that become references."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kept.errors import InputError
from kept.questionnaire import KeywordTagger, Questionnaire
from kept.references import check_split
from kept.text.chunking import sliding_windows

FIELDS = frozenset({"participant", "lines", "chunks", "labels"})
CHUNK_FIELDS = frozenset({"text", "labels", "tags"})


@dataclass(frozen=True, kw_only=True)
class ReferenceChunk:
    """A passage of one participant with its labels and tags, ready to be stored.

    Its *id* is the same whenever the same transcript is cut in the same way.
    """

    participant: str
    ord: int
    text: str
    tags: tuple[str, ...] = ()
    labels: Mapping[str, int | None] = field(default_factory=dict, hash=False)

    @property
    def id(self) -> str:
        """The participant and the place."""
        return f"{self.participant}:{self.ord}"


@dataclass(frozen=True, kw_only=True)
class ReferenceBuilder:
    """Cuts transcripts into windows of lines and labels and tags them.

    A chunk's own labels go before those of its participant, item by item. *scores*
    are labels by chunk id, such as a language model has given; where they know a
    chunk, they are all its labels. Without a *tagger*, only supplied tags count.
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
        """Return all chunks, or raise: also if the splits are not kept apart."""
        chunks = [chunk for row in rows for chunk in self._cut(row)]
        participants = list(dict.fromkeys(chunk.participant for chunk in chunks))
        check_split(participants, self.evaluation)
        ids = [chunk.id for chunk in chunks]
        if len(set(ids)) < len(ids):
            twice = min(one for one in ids if ids.count(one) > 1).rpartition(":")[0]
            msg = f"participant {twice!r} is there twice; join the rows"
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
            yield self._chunk(participant, place, _as_chunk(participant, part), given)

    def _chunk(
        self,
        participant: str,
        place: int,
        part: Mapping[str, Any],
        given: Mapping[str, int | None],
    ) -> ReferenceChunk:
        text = part["text"]
        own = self.questionnaire.labels(part.get("labels") or {})
        scored = self.scores.get(f"{participant}:{place}")
        labels = {**given, **own} if scored is None else dict(scored)
        hinted = self.tagger(text) if self.tagger else ()
        supplied = tuple(part.get("tags") or ())
        return ReferenceChunk(
            participant=participant,
            ord=place,
            text=text,
            tags=tuple(dict.fromkeys((*supplied, *hinted))),
            labels=self.questionnaire.labels(labels),
        )

    def _windows(self, participant: str, lines: object) -> Sequence[str]:
        if not isinstance(lines, list) or not all(isinstance(x, str) for x in lines):
            msg = f"participant {participant!r}: lines must be a list of texts"
            raise InputError(msg)
        spoken = [line.strip() for line in lines if line.strip()]
        return sliding_windows(spoken, self.size, self.step)


def read_transcripts(path: Path) -> Iterator[Mapping[str, Any]]:
    """Yield the rows of a JSONL file, or say which line is none."""
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
