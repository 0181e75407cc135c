"""Searching for a caller: within limits, through the cache, into the audit."""

import asyncio
import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any

from kept.asking import Asked
from kept.counters import counters
from kept.errors import KeptError
from kept.fencing import neutral
from kept.http.cache import Key, normalised
from kept.http.callers import Caller
from kept.http.problems import Problem, code_of
from kept.http.schemas import SearchIn
from kept.knowledge_base import KnowledgeBase
from kept.recorded import new_trace_id, request_json
from kept.retrieve import Found, Request
from kept.stores.writing import as_json

ANSWERED = "answered"
CACHE = "kept-cache"
TRACE = "kept-trace"
BESIDE: dict[str, Any] = {
    "Kept-Cache": {
        "description": "hit if the answer was still known, else miss.",
        "schema": {"type": "string", "enum": ["hit", "miss"]},
    },
    "Kept-Trace": {
        "description": "The trace that the answer left, unless nothing is recorded.",
        "schema": {"type": "string"},
    },
}


def within_limits(caller: Caller, asked: SearchIn) -> Request:
    """Return the request that was sent, or say which limit it breaks."""
    limits = caller.service.limits
    if len(asked.question) > limits.max_question_chars:
        msg = (
            f"the question has {len(asked.question)} characters, at most "
            f"{limits.max_question_chars} are taken; ask something shorter"
        )
        raise Problem("invalid_input", msg)
    if not asked.question.strip():
        raise Problem("invalid_input", "the question is empty; ask something")
    if asked.k is not None and asked.k > limits.max_k:
        msg = f"k is {asked.k}, at most {limits.max_k} come back; ask for fewer"
        raise Problem("invalid_input", msg)
    return asked.request(caller.tenant)


@dataclass(frozen=True, slots=True)
class Searched:
    """What was found, whether it was still known, and the trace that it left."""

    found: Found
    cached: bool
    trace: str

    def headers(self) -> dict[str, str]:
        """Return what is said of an answer beside it."""
        return beside(self.trace, cached=self.cached)


async def searched(caller: Caller, asked: SearchIn, action: str) -> Searched:
    """Return what is found, from the cache if it is still known.

    The caller was let in before the cache is read, and the row of the audit is on
    the disk before the answer leaves.
    """
    request = within_limits(caller, asked)
    base = await caller.service.workers(lambda: caller.base(asked.preset))
    told = await caller.service.workers(
        lambda: _through_cache(caller, base, request, action)
    )
    metrics = caller.service.metrics
    metrics.cache.labels("hit" if told.cached else "miss").inc()
    if not told.cached:
        metrics.answered(action, told.found)
    refused = told.found.refused
    row = caller.row(
        action,
        refused.reason if refused else ANSWERED,
        **question_kept(caller, request.question),
        facts=facts(told.found, base.settings.preset)
        | {"cached": told.cached, "trace": told.trace or None},
    )
    await asyncio.wrap_future(caller.service.audit.note(row))
    return told


def _through_cache(
    caller: Caller, base: KnowledgeBase, request: Request, action: str
) -> Searched:
    key = cache_key(caller, base, request)
    known = caller.service.found.get(key)
    if known is not None:
        found, trace = known
        return Searched(replace(found, request=request), cached=True, trace=trace)
    trace = trace_of(base, key)
    with failures_noted(caller, action, request.question):
        found = base.answer(request, trace_id=trace)
    caller.service.found.put(key, (light(found), trace))
    return Searched(found, cached=False, trace=trace)


def cache_key(caller: Caller, base: KnowledgeBase, request: Request) -> Key:
    """Return everything that an answer to *request* depends on, and who may read it.

    The tenant is the first of it, and what the knowledge base holds the last.
    """
    return (
        *(caller.tenant, caller.key.id, normalised(request.question)),
        as_json(request_json(request)),
        base.settings.preset,
        base.retriever(base.plan(request)).configuration,
        caller.pages.generation(),
    )


def trace_of(base: KnowledgeBase, key: Key) -> str:
    """Return the name of the trace that an answer is going to leave.

    It is empty where nothing is recorded: by the settings, or because the tenant
    has no documents.
    """
    records = base.settings.record_queries != "off" and key[-1]
    return new_trace_id() if records else ""


def beside(trace: str, *, cached: bool) -> dict[str, str]:
    """Return the headers of an answer: whether it was known, and its trace."""
    return {CACHE: "hit" if cached else "miss"} | ({TRACE: trace} if trace else {})


def light(found: Found) -> Found:
    """Return *found* without the vectors, which nobody reads any more."""
    selection = found.selection
    kept, dropped = (
        tuple(replace(c, vector=None) for c in pool)
        for pool in (selection.candidates, selection.dropped)
    )
    return replace(
        found, selection=replace(selection, candidates=kept, dropped=dropped)
    )


@contextmanager
def failures_noted(
    caller: Caller, action: str, question: str | None = None
) -> Iterator[None]:
    """Leave a row of what cannot be answered, and of its question if there is one."""
    try:
        yield
    except KeptError as error:
        kept = {} if question is None else question_kept(caller, question)
        caller.note(action, "failed", **kept, facts={"code": code_of(error)})
        raise


def question_kept(caller: Caller, question: str) -> dict[str, str | None]:
    """Return what may be kept of a question: its digest, its text if allowed."""
    policy = caller.service.access.policy(caller.tenant)
    text = neutral(question, personal=True).text if policy.redact_personal else question
    digest = hashlib.sha256(question.encode("utf-8", "surrogatepass")).hexdigest()
    return {
        "question": text if policy.keep_questions else None,
        "question_sha256": digest,
    }


def facts(found: Found, preset: str) -> dict[str, Any]:
    """Return what an answer rests on, as the audit keeps it."""
    selection = found.selection
    pool = (*selection.candidates, *selection.dropped)
    counted = counters(selection, found.refused)

    def most(signal: str) -> float | None:
        return max(
            (c.signals[signal] for c in pool if signal in c.signals), default=None
        )

    return {
        "preset": preset,
        **asdict(found.fingerprints),
        "vectorMax": most("cosine"),
        "keywordMax": most("bm25"),
        "combinedTop": most("fused"),
        "relevanceTop": most("relevance"),
        "rerankMs": found.timings.get("rerank"),
        "usedRerank": bool(counted["reranked"]),
        "filteredByFloor": bool(counted["filtered_by_floor"]),
        "counts": {
            "recalled": selection.recalled,
            "added": selection.added,
            "selected": len(selection.candidates),
            "dropped": len(selection.dropped),
            **counted,
        },
    }


def facts_of_answer(asked: Asked, preset: str) -> dict[str, Any]:
    """Return what an answer in words rests on."""
    answer = asked.answer
    return {
        **facts(asked.found, preset),
        "kind": answer.kind,
        "supported": answer.supported,
        "faithfulness": answer.faithfulness,
        "citations": sum(1 for one in answer.citations if one.cited),
        "model": answer.record.model if answer.record else None,
    }
