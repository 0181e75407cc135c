"""A document as database rows, the same in every kind of store."""

from dataclasses import dataclass
from typing import Any

from kept.ingest.plain_words import NO_SKETCH

DOCUMENT_COLUMNS = (
    *("id", "type", "title", "source_uri", "sha256", "text", "opening", "language"),
    *("authority", "confidence", "time_horizon", "metadata", "chunk_count"),
    *("chars_left_out", "created_at", "readers"),
)
CHUNK_COLUMNS = (
    *("ord", "text", "token_len", "tags", "role", "excerpt", "labels", "metadata"),
    *("language", "length", "terms"),
)

_READERS = DOCUMENT_COLUMNS.index("readers")


@dataclass(frozen=True, slots=True)
class Filed:
    """The values of a document and of its chunks in order, column by column."""

    document: tuple[Any, ...]
    chunks: tuple[tuple[Any, ...], ...]
    sketch: frozenset[int] = NO_SKETCH

    @property
    def id(self) -> str:
        """The document's id."""
        return str(self.document[0])

    @property
    def acl(self) -> str:
        """Who may read it, as `acl_text` writes it."""
        return str(self.document[_READERS])
