"""Ports of the writing line: a tenant's store, and workers that embed."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from kept.ingest.duplicates import DuplicateRules, Match, Opening, SoughtText
from kept.ingest.receipts import (
    Changes,
    KnownSource,
    NewDocument,
    Receipt,
    Similarity,
    Source,
    TextName,
)
from kept.kernel.ports import Embedder, Vectors


class Crew(Protocol):
    """Others who embed for us, many at once."""

    @property
    def window_chunks(self) -> int:
        """How many chunks are embedded at once, so that everybody has some."""
        ...

    def embedder(self, local: Embedder) -> Embedder:
        """Return *local* with its work done by the others, the same bytes."""
        ...


class Intake(Protocol):
    """The writing side of one tenant's store; each call is one transaction."""

    def together(self) -> "AbstractContextManager[Intake]":
        """Yield an intake whose changes are one transaction: all happen, or none.

        It sees its own changes; other transactions see them only after the commit.
        """
        ...

    def source(self, uri: str) -> KnownSource | None:
        """Return what is remembered of a source."""
        ...

    def exact(self, name: TextName) -> tuple[str, bool] | None:
        """Return the document with this very text and whether it is live."""
        ...

    def unknown(self, texts: Sequence[TextName], *, aliases: bool) -> set[TextName]:
        """Return those of *texts* that no document has.

        With *aliases*, those that a live alias has are left out, too.
        """
        ...

    def alias_of(self, name: TextName) -> Match | None:
        """Return the match of an alias that already holds this very text."""
        ...

    def openings(
        self, sought: Sequence[SoughtText], rules: DuplicateRules
    ) -> Sequence[Sequence[Opening]]:
        """Return for each the documents that might be the same, the newest first."""
        ...

    def assign(self, uri: str, acl: str | None) -> None:
        """Give a source readers that count whatever it declares; None takes them."""
        ...

    def text_of(self, document_id: str) -> str:
        """Return the whole text of a document."""
        ...

    def create(  # noqa: PLR0913 -- all of it in one transaction
        self,
        new: NewDocument,
        vectors: Vectors,
        embedder_id: str,
        receipt: Receipt,
        source: Source,
        compared: Iterable[Similarity] = (),
    ) -> bool:
        """Store a document with its receipt; False if its text came in meanwhile.

        Vectors of another embedder than the store's are refused.
        """
        ...

    def owned(self, document_id: str) -> bool:
        """Return whether a source stands for a document that is not a copy of it."""
        ...

    def changes(self, new: NewDocument) -> Changes:
        """Return what *new* declares otherwise than the stored text that it is."""
        ...

    def describe(
        self,
        new: NewDocument,
        vectors: Vectors | None,
        embedder_id: str,
        receipt: Receipt,
        source: Source,
    ) -> bool:
        """Give the stored text that *new* is its declarations, and bring it back.

        False, and nothing is done, if its chunks are worded or cut otherwise than
        those stored, and there are no *vectors* for them.
        """
        ...

    def reuse(  # noqa: PLR0913 -- all of it in one transaction
        self,
        match: Match,
        new: NewDocument,
        draft: Mapping[str, Any],
        receipt: Receipt,
        source: Source,
        compared: Iterable[Similarity] = (),
    ) -> None:
        """Keep a text as an alias of the document that it repeats."""
        ...

    def touch(self, source: Source, document_id: str, alias_id: str | None) -> None:
        """Remember new bytes of a source whose text has not changed."""
        ...

    def note(self, receipt: Receipt) -> None:
        """Write a ledger row and nothing else."""
        ...
