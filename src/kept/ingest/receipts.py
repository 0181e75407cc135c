"""Receipts: what ingestion writes, and what it leaves behind as proof."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from kept.kernel.model import Document
from kept.text.access import UNDECLARED, acl_text
from kept.text.draft import Authority, TimeHorizon

Status = Literal[
    "created",
    "reused",
    "unchanged",
    "described",
    "superseded",
    "failed",
    "deleted",
]
Rule = Literal["exact", "prefix", "cosine", "edit_distance", "minhash"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewChunk:
    """A passage on its way into the store, analysed but not yet embedded."""

    text: str
    terms: tuple[str, ...]
    language: str
    token_len: int
    tags: tuple[str, ...] = ()
    role: str | None = None
    excerpt: bool = False
    labels: Mapping[str, int | None] = field(default_factory=dict, hash=False)
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)


class TextName(NamedTuple):
    """What makes two texts of a tenant the same; *acl* says who may read them.

    A text for other readers is another document: were it an alias, its readers would
    not find it, or the title and source of a document that they may not read.
    """

    type: str
    sha256: str
    acl: str = UNDECLARED


@dataclass(frozen=True, slots=True, kw_only=True)
class NewDocument:
    """A document on its way into the store."""

    id: str
    type: str
    title: str
    source_uri: str
    sha256: str
    text: str
    language: str
    chunks: tuple[NewChunk, ...]
    sketch: frozenset[int] = frozenset()
    chars_left_out: int = 0
    authority: Authority | None = None
    confidence: float | None = None
    time_horizon: TimeHorizon | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)
    readers: tuple[str, ...] | None = None

    @property
    def name(self) -> TextName:
        """What makes two texts the same."""
        return TextName(self.type, self.sha256, acl_text(self.readers))


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where a text came from, and the digest of the bytes it was read from."""

    uri: str
    raw_sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownSource:
    """What the store remembers of a source that it has seen.

    *acl* are readers that were assigned to it, whatever it declares; None if none were.
    """

    uri: str
    raw_sha256: str
    document_id: str
    alias_id: str | None
    live: bool
    chars_left_out: int = 0
    acl: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What is declared of a stored text otherwise than before, by name.

    *reworded* says whether what is embedded and searched of it is another, too: a
    title stands above each of its chunks.
    """

    names: tuple[str, ...] = ()
    reworded: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What became of one text that was handed in."""

    status: Status
    source_uri: str
    document_id: str | None = None
    rule: Rule | None = None
    similarity: float | None = None
    canonical_id: str | None = None
    alias_id: str | None = None
    supersedes: str | None = None
    chunks: int = 0
    chars: int = 0
    chars_left_out: int = 0
    evidence: Mapping[str, Any] = field(default_factory=dict, hash=False)
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerRow:
    """A receipt as it stands in the ledger."""

    no: int
    at: str
    receipt: Receipt


@dataclass(frozen=True, slots=True, kw_only=True)
class Alias:
    """A text that was reused rather than stored as a document of its own."""

    id: str
    canonical_id: str
    type: str
    title: str
    source_uri: str
    sha256: str
    rule: Rule
    similarity: float
    evidence: Mapping[str, Any]
    created_at: str
    text: str = ""
    draft: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Similarity:
    """One comparison of two openings, for setting thresholds from data."""

    rule: str
    similarity: float
    accepted: bool


class SimilarityBin(NamedTuple):
    """How many comparisons fell into one bin: *step* counts bins from zero."""

    rule: str
    step: int
    accepted: bool
    times: int


def histogram(seen: Iterable[SimilarityBin], width: float) -> list[dict[str, Any]]:
    """Return how often each similarity was accepted and rejected, by rule."""
    counts: dict[tuple[str, float], list[int]] = {}
    for one in seen:
        start = round(one.step * width, 9)
        counts.setdefault((one.rule, start), [0, 0])[not one.accepted] += one.times
    return [
        {"rule": rule, "from": start, "accepted": accepted, "rejected": rejected}
        for (rule, start), (accepted, rejected) in sorted(counts.items())
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredDocument:
    """A document with what the store knows about its life."""

    document: Document
    live: bool
    language: str
    chars: int
    chars_left_out: int
    superseded_by: str | None
    created_at: str
    aliases: int = 0
    readers: tuple[str, ...] | None = None

    @property
    def id(self) -> str:
        """The id of the document."""
        return self.document.id

    @property
    def title(self) -> str:
        """The title of the document."""
        return self.document.title

    @property
    def source(self) -> str:
        """Where the document came from: a path, a URL or a name."""
        return self.document.source_uri
