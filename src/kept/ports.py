"""Ports: the least that the core needs from the outside, in the core's words."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from enum import StrEnum
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from kept.duplicates import DuplicateRules, Match, Opening, Sought
from kept.filters import Filters
from kept.model import Candidate, Query
from kept.receipts import (
    Changes,
    KnownSource,
    NewDocument,
    Receipt,
    Similarity,
    Source,
)
from kept.signals import QueryTerms

Vectors = NDArray[np.float32]


class Embedder(Protocol):
    """Turns text into vectors, the same text into the same vector.

    A text's vector does not depend on the texts beside it in the call.
    """

    @property
    def id(self) -> str:
        """Name the model and version; vectors with another id never mix."""
        ...

    @property
    def dimension(self) -> int:
        """How long a vector is."""
        ...

    @property
    def near_match_distance(self) -> float:
        """The distance within which this embedder's matches are near-perfect."""
        ...

    @property
    def near_duplicate_cosine(self) -> float:
        """The cosine from which two openings count as near duplicates."""
        ...

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one unit vector per text, in order, as rows."""
        ...


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

        It sees its own changes, and nobody else does before the end.
        """
        ...

    def source(self, uri: str) -> KnownSource | None:
        """Return what is remembered of a source."""
        ...

    def exact(self, type_: str, sha256: str) -> tuple[str, bool] | None:
        """Return the document with this very text and whether it is live."""
        ...

    def unknown(
        self, texts: Sequence[tuple[str, str]], *, aliases: bool
    ) -> set[tuple[str, str]]:
        """Return those of *texts*, by type and sha256, that no document has.

        With *aliases*, those that a live alias has are left out, too.
        """
        ...

    def alias_of(self, type_: str, sha256: str) -> Match | None:
        """Return the match of an alias that already holds this very text."""
        ...

    def openings(
        self, sought: Sequence[Sought], rules: DuplicateRules
    ) -> Sequence[Sequence[Opening]]:
        """Return for each the documents that might be the same, the newest first."""
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
        """Tell whether a source stands for a document that is not a copy of it."""
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


class Leg(Protocol):
    """What one way of searching brought back, best first."""

    @property
    def keys(self) -> NDArray[np.int64]:
        """The chunks, by number."""
        ...

    @property
    def scores(self) -> NDArray[np.float64]:
        """Their scores, in the same order."""
        ...


class Shelf(Protocol):
    """One tenant's knowledge at one state, as a query sees it."""

    @property
    def state(self) -> str:
        """The fingerprint of what is on the shelf."""
        ...

    @property
    def embedder(self) -> tuple[str, int] | None:
        """The id and dimension of the embedder whose vectors are here, if any."""
        ...

    @property
    def chunks(self) -> int:
        """How many chunks can be found."""
        ...

    def weigh(self, question: str) -> QueryTerms:
        """Return the words of a question with what they weigh here."""
        ...

    def allowed(self, filters: Filters) -> NDArray[np.int64] | None:
        """Return the chunks that *filters* let through; None means all."""
        ...

    def dense_leg(
        self,
        vector: NDArray[np.float32],
        depth: int,
        allowed: NDArray[np.int64] | None,
        *,
        pause: Callable[[], object] = ...,
    ) -> Leg:
        """Return the nearest chunks by exact cosine.

        *pause* is called once the interpreter is needed for what was found.
        """
        ...

    def keyword_leg(
        self, terms: QueryTerms, depth: int, allowed: NDArray[np.int64] | None
    ) -> Leg:
        """Return the best chunks by exact BM25."""
        ...

    def ranks(
        self,
        vector: NDArray[np.float32],
        terms: QueryTerms,
        chunk_id: str,
        allowed: NDArray[np.int64] | None,
    ) -> Mapping[str, int | None]:
        """Return a chunk's place in each leg, however deep; None if in no place."""
        ...

    def candidates(
        self,
        vector: NDArray[np.float32],
        terms: QueryTerms,
        legs: Mapping[str, Leg],
        pinned: Iterable[str] = (),
    ) -> Sequence[Candidate]:
        """Return each chunk of the *legs* once, with all that was measured of it."""
        ...


class Store(Protocol):
    """Where tenants' documents live."""

    def shelf(self, tenant: str) -> AbstractContextManager[Shelf]:
        """Hold one tenant's knowledge at one state while a query is answered."""
        ...

    def intake(self, tenant: str) -> Intake:
        """Return the writing side for one tenant."""
        ...

    def claim(self, embedder_id: str, dimension: int) -> None:
        """Make this the store's embedder, or refuse if it has another one."""
        ...


class Opinion(StrEnum):
    """What a judge thinks of a reference; unsure counts as reject."""

    ACCEPT = "accept"
    REJECT = "reject"
    UNSURE = "unsure"


class Judge(Protocol):
    """A second reader who accepts or rejects candidates."""

    def review(
        self, query: Query, candidates: Sequence[Candidate]
    ) -> Sequence[Opinion]:
        """Return one opinion per candidate, in order, or raise."""
        ...


class Reranker(Protocol):
    """Scores candidates anew for a query."""

    @property
    def id(self) -> str:
        """Name the model or the method."""
        ...

    def scores(self, query: Query, candidates: Sequence[Candidate]) -> Sequence[float]:
        """Return one score in 0..1 per candidate, in order, or raise."""
        ...


class ChatModel(Protocol):
    """A language model that answers a conversation."""

    @property
    def id(self) -> str:
        """Name the model."""
        ...

    def complete(
        self,
        messages: Sequence[Mapping[str, str]],
        *,
        json_schema: Mapping[str, Any] | None = None,
    ) -> str:
        """Return the whole answer; with *json_schema*, a JSON text that fits it."""
        ...

    def stream(self, messages: Sequence[Mapping[str, str]]) -> Iterator[str]:
        """Yield the answer piece by piece."""
        ...
