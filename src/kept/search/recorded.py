"""Query records: what is stored of a query, so that it can be replayed."""

import hashlib
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from typing_extensions import TypedDict

from kept._runtime import DISTRIBUTION
from kept.kernel.counters import counters
from kept.kernel.filters import filters_json, filters_of
from kept.kernel.record import Selection
from kept.search.candidate_rows import candidate_rows
from kept.search.retrieve import Found, Request

# They show answers or measure them; none of them decides one.
DOORS = frozenset({"doors", "evaluation", "testing"})
DECIDING = ("faiss-cpu", "numpy", "onnxruntime", "PyStemmer", "tantivy")


class RecordedJson(TypedDict):
    """What is kept of one query."""

    no: int
    id: str
    at: str
    preset: str
    question: str | None
    question_sha256: str
    request: dict[str, Any]
    knowledge_base: str
    configuration: str
    code: str
    result_sha256: str
    result: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """One query that was answered: fingerprints always, its text only if wanted.

    *no* and *at* are given by the store that keeps it; *no* counts within the
    tenant. *id* names it before it is stored, and *path* is every candidate's way,
    for those who want to look at it later.
    """

    preset: str
    question_sha256: str
    knowledge_base: str
    configuration: str
    code: str
    result_sha256: str
    result: Mapping[str, Any] = field(default_factory=dict, hash=False)
    question: str | None = None
    request: Mapping[str, Any] = field(default_factory=dict, hash=False)
    no: int = 0
    at: str = ""
    id: str = ""
    path: Mapping[str, Any] | None = field(default=None, hash=False)

    @property
    def selected(self) -> list[str]:
        """The chunks that were selected, best first."""
        return [row["chunk_id"] for row in self.result["selected"]]

    @property
    def refused(self) -> str | None:
        """Why the question was refused, if it was."""
        reason = self.result["refused"]
        return None if reason is None else str(reason)


def new_trace_id() -> str:
    """Return a name for a query that is going to be recorded.

    It says nothing of what else is recorded, and is never part of an answer.
    """
    return f"t{secrets.token_hex(8)}"


def recorded(
    found: Found, preset: str, *, with_text: bool, trace_id: str = ""
) -> Recorded:
    """Return what is kept of an answered query.

    With a *trace_id* every candidate's path is kept too.
    """
    request = found.request
    return Recorded(
        preset=preset,
        question=request.question if with_text else None,
        question_sha256=sha256_of(request.question),
        request=request_json(request) if with_text else {},
        knowledge_base=found.fingerprints.knowledge_base,
        configuration=found.fingerprints.configuration,
        code=code_version(),
        result_sha256=digest(found),
        result={
            "refused": found.refused.reason if found.refused else None,
            "selected": [
                {"chunk_id": c.id, "score": c.score} for c in found.selection.candidates
            ],
            "counters": counters(found.selection, found.refused),
        },
        id=trace_id,
        path=path_json(found.selection, with_text=with_text) if trace_id else None,
    )


def path_json(selection: Selection, *, with_text: bool) -> dict[str, Any]:
    """Return what happened to every candidate, without a word of the documents.

    Unless texts may be kept, evidence in words is left out: it may repeat what was
    asked for.
    """
    pool = (*selection.candidates, *selection.dropped)
    names = {name for c in pool for name in (c.id, c.document.id)}

    def shown(evidence: Mapping[str, Any]) -> dict[str, Any]:
        return {
            name: value
            for name, value in evidence.items()
            if with_text or not isinstance(value, str) or value in names
        }

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
                "facts": shown(step.facts),
                "decisions": [
                    {
                        "chunk_id": d.chunk_id,
                        "verdict": str(d.verdict),
                        "reason": str(d.reason),
                        "evidence": shown(d.evidence),
                    }
                    for d in step.decisions
                ],
            }
            for step in selection.trace
        ],
        # A title is text of the document.
        "candidates": list(candidate_rows(selection, titled=False)),
    }


def digest(found: Found) -> str:
    """Return the digest of an answer: who was selected, who was not, and why.

    Equal answers have equal digests on every machine.
    """
    selection = found.selection
    shown = [
        found.refused.reason if found.refused else None,
        [(c.id, c.score, dict(c.signals)) for c in selection.candidates],
        [
            (
                step.stage,
                step.before,
                step.after,
                [f"{d.chunk_id} {d.verdict} {d.reason}" for d in step.decisions],
            )
            for step in selection.trace
        ],
    ]
    return sha256_of(json.dumps(shown, ensure_ascii=False, sort_keys=True))


def request_json(request: Request) -> dict[str, Any]:
    """Return everything of a request but its question and tenant."""
    return {
        "k": request.k,
        "filters": filters_json(request.filters),
        "intent": request.intent,
        "item": request.item,
        "pinned": sorted(request.pinned),
        "attributes": dict(request.attributes),
        "context": request.context,
    }


def request_of(tenant: str, question: str, shown: Mapping[str, Any]) -> Request:
    """Return the request that *shown* was made from."""
    return Request(
        question=question,
        tenant=tenant,
        k=shown["k"],
        filters=filters_of(shown["filters"]),
        intent=shown["intent"],
        item=shown["item"],
        pinned=frozenset(shown["pinned"]),
        attributes=shown["attributes"],
        # Queries recorded before there was a context asked for none.
        context=shown.get("context", 0),
    )


@cache
def code_version() -> str:
    """Name the code that decides answers: its version, its bytes, its libraries."""
    root = Path(__file__).parents[1]
    seen = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        name = path.relative_to(root)
        if name.parts[0] not in DOORS:
            seen.update(f"{name.as_posix()}\n".encode() + path.read_bytes())
    for library in DECIDING:
        seen.update(f"{library} {_version(library)}\n".encode())
    return f"{_version(DISTRIBUTION)}+{seen.hexdigest()[:12]}"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"


def sha256_of(text: str) -> str:
    """Return the digest of a text, whatever is in it."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
