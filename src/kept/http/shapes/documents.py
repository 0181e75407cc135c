"""What is told of documents, jobs, ledger and aliases."""

from typing import Any, Literal

from pydantic import ConfigDict, Field

from kept.http.shapes.base import Shape


class Document(Shape):
    """A document without its text."""

    document_id: str
    type: str
    title: str
    source_uri: str
    sha256: str
    chunks: int
    chars: int
    aliases: int
    live: bool
    created_at: str


class WholeDocument(Document):
    """A document with its text."""

    text: str


class Documents(Shape):
    """A page of documents."""

    documents: list[Document]
    next_cursor: str | None


class Chunk(Shape):
    """A passage of a document, as stored."""

    chunk_id: str
    ord: int
    text: str
    token_len: int
    tags: list[str]
    role: str | None
    excerpt: bool
    labels: dict[str, int | None]
    metadata: dict[str, Any]


class Chunks(Shape):
    """A page of a document's chunks."""

    chunks: list[Chunk]
    next_cursor: str | None


class Receipt(Shape):
    """What became of one text that was handed in."""

    document_id: str | None
    status: str
    rule: str | None
    similarity: float | None
    source_uri: str
    error: str | None


class Job(Shape):
    """Sources on their way in."""

    job_id: str
    state: Literal["queued", "running", "done", "failed", "cancelled"]
    sources: int
    done: int
    counts: dict[str, int]
    cancelling: bool
    error: str | None
    created_at: str
    started_at: str | None
    ended_at: str | None


class JobWithReceipts(Job):
    """A job with the first of its receipts."""

    receipts: list[Receipt]


class JobList(Shape):
    """A page of jobs."""

    jobs: list[Job]
    next_cursor: str | None


class Receipts(Shape):
    """A page of a job's receipts."""

    receipts: list[Receipt]
    next_cursor: str | None


class LedgerLine(Receipt):
    """A line of the ledger."""

    no: int
    at: str


class Ledger(Shape):
    """A page of the ledger, the newest first."""

    ledger: list[LedgerLine]
    next_cursor: str | None


class Alias(Shape):
    """A text that was reused rather than stored."""

    alias_id: str
    canonical_id: str
    rule: str
    similarity: float
    title: str
    source_uri: str


class WholeAlias(Alias):
    """An alias with its text."""

    text: str


class Aliases(Shape):
    """A page of aliases."""

    aliases: list[Alias]
    next_cursor: str | None


class Bin(Shape):
    """How often similarities of one span were accepted and rejected."""

    model_config = ConfigDict(extra="allow", populate_by_name=True)

    rule: str
    start: float = Field(alias="from")
    accepted: int
    rejected: int


class Similarities(Shape):
    """A histogram of the similarities of openings."""

    width: float
    bins: list[Bin]
