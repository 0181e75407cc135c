"""One result, several readers: a machine, a person, a prompt."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from kept.decisions import Decision, Refusal, Selection, Verdict
from kept.model import Candidate
from kept.receipts import Alias, LedgerRow, Receipt, StoredDocument
from kept.retrieve import Found


def found_json(found: Found) -> dict[str, Any]:
    """Return a search result as every door shows it."""
    selection = found.selection
    return {
        "query": found.request.question,
        "refused": refusal_json(found.refused),
        "selected": [candidate_json(c) for c in selection.candidates],
        "record": record_json(selection),
        "fingerprints": asdict(found.fingerprints),
        "timings": dict(found.timings),
    }


def refusal_json(refused: Refusal | None) -> dict[str, Any] | None:
    """Return a refusal, or null."""
    if refused is None:
        return None
    return {
        "reason": refused.reason,
        "message": refused.message,
        "evidence": dict(refused.evidence),
    }


def candidate_json(candidate: Candidate) -> dict[str, Any]:
    """Return a selected passage with everything that was measured of it."""
    chunk, document = candidate.chunk, candidate.document
    return {
        "chunk_id": chunk.id,
        "document_id": document.id,
        "ord": chunk.ord,
        "title": document.title,
        "source_uri": document.source_uri,
        "text": chunk.text,
        "score": candidate.score,
        "relevance": candidate.signals.get("relevance"),
        "protected": candidate.protected,
        "tags": list(chunk.tags),
        "signals": dict(candidate.signals),
    }


def record_json(selection: Selection) -> dict[str, Any]:
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
        "candidates": [
            {
                "chunk_id": c.id,
                "document_id": c.document.id,
                "title": c.document.title,
                "state": state,
                "signals": dict(c.signals),
            }
            for state, pool in (
                ("selected", selection.candidates),
                ("dropped", selection.dropped),
            )
            for c in pool
        ],
    }


def decision_json(decision: Decision) -> dict[str, Any]:
    """Return one decision with what was compared."""
    return {
        "chunk_id": decision.chunk_id,
        "verdict": str(decision.verdict),
        "reason": str(decision.reason),
        "evidence": dict(decision.evidence),
    }


def receipt_json(receipt: Receipt) -> dict[str, Any]:
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


def ledger_json(row: LedgerRow) -> dict[str, Any]:
    """Return a line of the ledger."""
    return {"no": row.no, "at": row.at, **receipt_json(row.receipt)}


def alias_json(alias: Alias) -> dict[str, Any]:
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


def document_json(stored: StoredDocument) -> dict[str, Any]:
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
    }


def told(stage: str, decision: Decision) -> str:
    """Return one decision as a sentence."""
    verb = {
        Verdict.DROPPED: "dropped",
        Verdict.SPARED: "would have been dropped, spared because it is protected",
        Verdict.PROTECTED: "protected",
        Verdict.ADDED: "added",
    }[decision.verdict]
    return f"{stage}: {verb}: {decision.reason} ({listed(decision.evidence)})"


def listed(values: Mapping[str, Any]) -> str:
    """Return names and values in one line."""
    return ", ".join(f"{key}={short(value)}" for key, value in values.items())


def short(value: object) -> str:
    """Return a value for people: four digits of a number."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)
