"""Rendering: a search result as JSON, as text and for a prompt."""

from collections.abc import Mapping
from typing import Any

# Pydantic reads the TypedDict of typing from Python 3.12 on only.
from typing_extensions import TypedDict

from kept.ingest.receipts import Alias, LedgerRow, Receipt, StoredDocument
from kept.kernel.model import Candidate, Chunk
from kept.kernel.record import Decision, Refusal, Selection, Verdict
from kept.search.answer.extractive import missing_words
from kept.search.candidate_rows import candidate_rows
from kept.search.retrieve import Fingerprints, Found

VERBS = {
    Verdict.DROPPED: "dropped",
    Verdict.SPARED: "kept all the same",
    Verdict.PROTECTED: "protected",
    Verdict.INJECTED: "injected",
    Verdict.ADDED: "added",
    Verdict.READ: "read",
}

# Wide enough that on collections left out each word keeps its promise.
RATINGS = (("strong", 0.7), ("good", 0.4), ("partial", 0.0))


class RefusalJson(TypedDict):
    """Why a question was answered with nothing."""

    reason: str
    message: str
    evidence: dict[str, Any]


class FingerprintsJson(TypedDict):
    """The state of the knowledge and the configuration that an answer rests on."""

    knowledge_base: str
    configuration: str


class PassageJson(TypedDict):
    """A passage with all its signals, and whether it deserves to be cited.

    *rating* puts its relevance into a word, *missing* are the words of content in the
    question that it has in no form.
    """

    chunk_id: str
    document_id: str
    ord: int
    title: str
    source_uri: str
    text: str
    score: float
    relevance: float | None
    rating: str | None
    cited: bool
    missing: list[str]
    protected: bool
    tags: list[str]
    signals: dict[str, float]


class RecordJson(TypedDict):
    """What happened to every candidate, stage by stage."""

    recalled: int
    added: int
    selected: int
    dropped: int
    stages: list[dict[str, Any]]
    candidates: list[dict[str, Any]]


class FoundJson(TypedDict):
    """What a search found: *selected* is cited, *context* is not."""

    query: str
    refused: RefusalJson | None
    selected: list[PassageJson]
    context: list[PassageJson]
    record: RecordJson
    fingerprints: FingerprintsJson
    timings: dict[str, float]


def found_json(found: Found) -> FoundJson:
    """Return a search result as every door shows it."""
    selection, question = found.selection, found.request.question
    return {
        "query": question,
        "refused": refusal_json(found.refused),
        "selected": [candidate_json(c, question) for c in selection.candidates],
        "context": [candidate_json(c, question, cited=False) for c in found.context],
        "record": record_json(selection),
        "fingerprints": fingerprints_json(found.fingerprints),
        "timings": dict(found.timings),
    }


def fingerprints_json(fingerprints: Fingerprints) -> FingerprintsJson:
    """Return the state that an answer rests on."""
    return {
        "knowledge_base": fingerprints.knowledge_base,
        "configuration": fingerprints.configuration,
    }


def refusal_json(refused: Refusal | None) -> RefusalJson | None:
    """Return a refusal, or null."""
    if refused is None:
        return None
    return {
        "reason": refused.reason,
        "message": refused.message,
        "evidence": dict(refused.evidence),
    }


def candidate_json(
    candidate: Candidate, question: str, *, cited: bool = True
) -> PassageJson:
    """Return a passage with everything that was measured of it for *question*."""
    chunk, document = candidate.chunk, candidate.document
    relevance = candidate.signals.get("relevance")
    return {
        "chunk_id": chunk.id,
        "document_id": document.id,
        "ord": chunk.ord,
        "title": document.title,
        "source_uri": document.source_uri,
        "text": chunk.text,
        "score": candidate.score,
        "relevance": relevance,
        "rating": rating_of(relevance),
        "cited": cited,
        "missing": list(missing_words(question, (candidate,))),
        "protected": candidate.protected,
        "tags": list(chunk.tags),
        "signals": dict(candidate.signals),
    }


def rating_of(relevance: float | None) -> str | None:
    """Put a relevance into a word: percentages promise more than is known."""
    if relevance is None:
        return None
    return next(word for word, least in RATINGS if relevance >= least)


def record_json(selection: Selection) -> RecordJson:
    """Return what happened to every candidate, stage by stage."""
    return {
        "recalled": selection.recalled,
        "added": selection.added,
        "selected": len(selection.candidates),
        "dropped": len(selection.dropped),
        "stages": [
            {
                "stage": step.stage,
                "before": step.before,
                "after": step.after,
                "facts": dict(step.facts),
                "decisions": [decision_json(d) for d in step.decisions],
            }
            for step in selection.trace
        ],
        "candidates": list(candidate_rows(selection)),
    }


def decision_json(decision: Decision) -> dict[str, Any]:
    """Return one decision with what was compared."""
    return {
        "chunk_id": decision.chunk_id,
        "verdict": str(decision.verdict),
        "reason": str(decision.reason),
        "evidence": dict(decision.evidence),
    }


class ReceiptJson(TypedDict):
    """What became of one submitted text."""

    document_id: str | None
    status: str
    rule: str | None
    similarity: float | None
    canonical_id: str | None
    chunks: int
    chars_left_out: int
    source_uri: str
    error: str | None
    alias_id: str | None
    supersedes: str | None
    evidence: dict[str, Any]


def receipt_json(receipt: Receipt) -> ReceiptJson:
    """Return what became of one text that was handed in."""
    return {
        "document_id": receipt.document_id,
        "status": receipt.status,
        "rule": receipt.rule,
        "similarity": receipt.similarity,
        "canonical_id": receipt.canonical_id,
        "chunks": receipt.chunks,
        "chars_left_out": receipt.chars_left_out,
        "source_uri": receipt.source_uri,
        "error": receipt.error,
        "alias_id": receipt.alias_id,
        "supersedes": receipt.supersedes,
        "evidence": dict(receipt.evidence),
    }


class LedgerJson(ReceiptJson):
    """A line of the ledger."""

    no: int
    at: str


def ledger_json(row: LedgerRow) -> LedgerJson:
    """Return a line of the ledger."""
    return {"no": row.no, "at": row.at, **receipt_json(row.receipt)}


class AliasJson(TypedDict):
    """A text that was reused rather than stored."""

    alias_id: str
    canonical_id: str
    type: str
    title: str
    source_uri: str
    sha256: str
    rule: str
    similarity: float
    evidence: dict[str, Any]
    created_at: str
    chars: int


def alias_json(alias: Alias) -> AliasJson:
    """Return an alias without its text."""
    return {
        "alias_id": alias.id,
        "canonical_id": alias.canonical_id,
        "type": alias.type,
        "title": alias.title,
        "source_uri": alias.source_uri,
        "sha256": alias.sha256,
        "rule": alias.rule,
        "similarity": alias.similarity,
        "evidence": dict(alias.evidence),
        "created_at": alias.created_at,
        "chars": len(alias.text),
    }


class DocumentJson(TypedDict):
    """A document without its text."""

    document_id: str
    type: str
    title: str
    source_uri: str
    sha256: str
    chunks: int
    chars: int
    chars_left_out: int
    language: str
    authority: str | None
    confidence: float | None
    time_horizon: str | None
    metadata: dict[str, Any]
    aliases: int
    live: bool
    superseded_by: str | None
    created_at: str
    readers: list[str] | None


def document_json(stored: StoredDocument) -> DocumentJson:
    """Return a document as a list of them shows it."""
    document = stored.document
    return {
        "document_id": document.id,
        "type": document.type,
        "title": document.title,
        "source_uri": document.source_uri,
        "sha256": document.sha256,
        "chunks": document.chunk_count,
        "chars": stored.chars,
        "chars_left_out": stored.chars_left_out,
        "language": stored.language,
        "authority": document.authority,
        "confidence": document.confidence,
        "time_horizon": document.time_horizon,
        "metadata": dict(document.metadata),
        "aliases": stored.aliases,
        "live": stored.live,
        "superseded_by": stored.superseded_by,
        "created_at": stored.created_at,
        "readers": None if stored.readers is None else list(stored.readers),
    }


class ChunkJson(TypedDict):
    """A passage of a document, as stored."""

    chunk_id: str
    ord: int
    text: str
    token_len: int
    tags: list[str]
    role: str | None
    excerpt: bool
    confidence: float | None
    labels: dict[str, int | None]
    metadata: dict[str, Any]


def chunk_json(chunk: Chunk) -> ChunkJson:
    """Return a chunk as JSON."""
    return {
        "chunk_id": chunk.id,
        "ord": chunk.ord,
        "text": chunk.text,
        "token_len": chunk.token_len,
        "tags": list(chunk.tags),
        "role": chunk.role,
        "excerpt": chunk.excerpt,
        "confidence": chunk.confidence,
        "labels": dict(chunk.labels),
        "metadata": dict(chunk.metadata),
    }


def decision_line(stage: str, decision: Decision) -> str:
    """Return one decision as a sentence."""
    verb = VERBS[decision.verdict]
    return f"{stage}: {verb}: {decision.reason} ({listed(decision.evidence)})"


def listed(values: Mapping[str, Any]) -> str:
    """Return names and values in one line."""
    return ", ".join(f"{key}={short(value)}" for key, value in values.items())


def short(value: object) -> str:
    """Return a value for people: four digits of a number."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)
