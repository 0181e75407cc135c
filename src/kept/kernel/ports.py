"""Ports: the models that the kernel calls, in the words of the kernel."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from kept.kernel.model import Candidate, Query

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
    def distance_thresholds(self) -> tuple[float, float]:
        """Two distances that most right passages lie within, strict and fallback.

        Few unrelated passages lie within the first.
        """
        ...

    @property
    def near_duplicate_cosine(self) -> float:
        """The cosine from which two openings count as near duplicates."""
        ...

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one unit vector per text, in order, as rows."""
        ...

    def embed_query(self, texts: Sequence[str]) -> Vectors:
        """Return the same for questions.

        Models such as e5 were trained with another prefix before a question than
        before a passage; for a model that was not, this is *embed*.
        """
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
    """Scores candidates again for a query."""

    @property
    def id(self) -> str:
        """Name the model or the method."""
        ...

    def scores(self, query: Query, candidates: Sequence[Candidate]) -> Sequence[float]:
        """Return one score in 0..1 per candidate, in order, or raise."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a reader saw in one passage.

    *worth* is the log-odds that a careful writer would cite the passage. *answers* is
    the log-odds that it answers the question in full, *margin* how far the best span
    is ahead of "no answer here", *start* and *end* the characters of that span in the
    passage; a reader that only scores leaves these out.
    """

    worth: float
    answers: float | None = None
    margin: float | None = None
    start: int = 0
    end: int = 0


class PassageReader(Protocol):
    """Reads question and passage together.

    A pair's reading does not depend on the pairs beside it in the call.
    """

    @property
    def id(self) -> str:
        """Name the model and version; a calibration belongs to one of them."""
        ...

    def knows(self, question: str) -> bool:
        """Return whether the reader was trained on the question's language."""
        ...

    def read(
        self, question: str, passages: Sequence[tuple[str, str]]
    ) -> Sequence[Reading]:
        """Return one reading per passage, given as (title, text), in order."""
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
