"""The nouns: what is stored, what is asked, what is weighed."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

from kept.errors import MissingSignalError
from kept.text.draft import Authority, TimeHorizon

Scalar = str | int | float | bool | None
Precedence = Literal["distance", "score"]


NOTHING: Mapping[str, Any] = MappingProxyType({})


def open_twin(kind: type[Any]) -> type[Any]:
    """Return a class with the slots of a frozen *kind*, which can still be filled.

    A query makes hundreds of candidates, chunks and decisions. Filling open slots and
    then giving the object its real class takes a sixth of the time of a frozen
    dataclass's own way.
    """
    return type(f"Open{kind.__name__}", kind.__bases__, {"__slots__": kind.__slots__})


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """What was handed in as one thing: a file, a page, a row."""

    id: str
    type: str = "document"
    title: str = ""
    source_uri: str = ""
    sha256: str = ""
    chunk_count: int = 1
    authority: Authority | None = None
    confidence: float | None = None
    time_horizon: TimeHorizon | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """A passage of a document, as stored."""

    id: str
    document_id: str
    ord: int
    text: str
    token_len: int = 0
    tags: tuple[str, ...] = ()
    role: str | None = None
    excerpt: bool = False
    confidence: float | None = None
    labels: Mapping[str, int | None] = field(default_factory=dict, hash=False)
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """What is asked, and the attributes that stages may match against.

    *intent* names the per-intent cap, *item* the questionnaire item whose labels
    and tags count, *pinned* the chunks that the caller forces in.
    """

    text: str
    intent: str = "other"
    item: str | None = None
    pinned: frozenset[str] = frozenset()
    attributes: Mapping[str, Scalar] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A chunk under consideration for one query.

    Signals accumulate: a stage may add one but never overwrite one, so the
    measurement that brought a chunk in is still there when it is explained.
    """

    chunk: Chunk
    document: Document
    score: float
    signals: Mapping[str, float] = field(default_factory=dict, hash=False)
    protected: bool = False
    pinned: bool = False
    vector: Any = field(default=None, compare=False, repr=False)

    @property
    def id(self) -> str:
        """The id of the chunk."""
        return self.chunk.id

    def signal(self, name: str) -> float:
        """Return a measurement, or say which ones there are."""
        try:
            return self.signals[name]
        except KeyError:
            raise MissingSignalError(self.id, name, self.signals.keys()) from None


_OpenCandidate = open_twin(Candidate)


def candidate_of(  # noqa: PLR0913 -- as many as a candidate has
    chunk: Chunk,
    document: Document,
    score: float,
    signals: Mapping[str, float],
    vector: Any,  # noqa: ANN401 -- as the candidate holds it
    *,
    protected: bool = False,
    pinned: bool = False,
) -> Candidate:
    """Make a candidate quickly."""
    made: Any = _OpenCandidate()
    made.chunk = chunk
    made.document = document
    made.score = score
    made.signals = signals
    made.protected = protected
    made.pinned = pinned
    made.vector = vector
    made.__class__ = Candidate
    frozen: Candidate = made
    return frozen
