"""Searches and answers for a caller: limits, the cache, and the audit."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from kept._runtime import Logger
from kept.doors.http.callers import Caller
from kept.doors.http.event_streams import Events
from kept.doors.http.problems import Problem, code_of, problem_of
from kept.doors.http.response_cache import CacheKey, normalised
from kept.doors.http.schemas import AnswerIn, SearchIn
from kept.errors import KeptError
from kept.knowledge_base.base import KnowledgeBase
from kept.knowledge_base.prepared import PreparedSearch
from kept.search.answer.ask import (
    Asked,
    AskedJson,
    StreamedAsk,
    answer_facts,
    asked_json,
)
from kept.search.query_log import search_facts
from kept.search.recorded import new_trace_id, request_json
from kept.search.render import found_json
from kept.search.retrieve import Found, Request
from kept.stores.row_writer import as_json

T = TypeVar("T")
ANSWERED = "answered"
ASK = "ask"
BROKEN_OFF = "broken_off"
CACHE = "kept-cache"
TRACE = "kept-trace"
# The response headers of an answer, for the OpenAPI.
ANSWER_HEADERS: dict[str, Any] = {
    "Kept-Cache": {
        "description": "hit if the answer came from the cache, else miss.",
        "schema": {"type": "string", "enum": ["hit", "miss"]},
    },
    "Kept-Trace": {
        "description": "The trace that the answer left, unless nothing is recorded.",
        "schema": {"type": "string"},
    },
}

logger = Logger(__name__)


def within_limits(caller: Caller, asked: SearchIn) -> Request:
    """Return the request in a body, or name the limit that it exceeds."""
    bounds = caller.service.bounds
    if len(asked.question) > bounds.question_chars:
        msg = (
            f"the question has {len(asked.question)} characters, at most "
            f"{bounds.question_chars} are taken; ask something shorter"
        )
        raise Problem("invalid_input", msg)
    if not asked.question.strip():
        raise Problem("invalid_input", "the question is empty; ask something")
    if asked.k is not None and asked.k > bounds.k:
        msg = f"k is {asked.k}, at most {bounds.k} come back; ask for fewer"
        raise Problem("invalid_input", msg)
    return asked.request(caller.tenant)


@dataclass(frozen=True, slots=True)
class Searched:
    """What a search found, and the response headers."""

    found: Found
    headers: Mapping[str, str]


async def searched(caller: Caller, asked: SearchIn, action: str) -> Searched:
    """Search, or return the cached result; the audit row is on disk before that."""
    request = within_limits(caller, asked)

    def search() -> tuple[Searched, Future[None]]:
        base = caller.base(asked.preset)
        prepared = base.prepared(request)
        key = cache_key(caller, base, request, prepared)
        known = caller.service.found.get(key)
        if known is not None:
            found, trace = replace(known[0], request=request), known[1]
        else:
            trace = new_trace(base, prepared)
            with failures_noted(caller, action, request.question):
                found = base.answer(request, trace_id=trace, prepared=prepared)
            caller.service.found.put(key, (without_vectors(found), trace))
        cached, facts = known is not None, search_facts(found, base.settings.preset)
        stored = _noted(caller, action, found, facts, trace, cached=cached)
        return Searched(found, answer_headers(trace, cached=cached)), stored

    # The row is awaited here and not in the thread, which is free for another search
    # while the audit's own thread writes many rows with one sync of the disk.
    result, stored = await caller.work(search)
    await asyncio.wrap_future(stored)
    return result


def _noted(  # noqa: PLR0913 -- all that a row is made of
    caller: Caller,
    action: str,
    found: Found,
    facts: Mapping[str, Any],
    trace: str,
    *,
    cached: bool,
) -> Future[None]:
    """Count a question, and begin to write its audit row."""
    metrics = caller.service.metrics
    metrics.looked_up(cached=cached)
    if not cached:
        metrics.answered(action, found)
    row = caller.row(
        action,
        outcome_of(found),
        found.request.question,
        facts={**facts, "cached": cached, "trace": trace or None},
    )
    return caller.service.audit.note(row)


@dataclass(frozen=True)
class Answering:
    """A question whose answer is being written, or was in the cache.

    Only word-for-word answers are cached: a language model may write another one the
    next time. Without a *key* the answer is not cached.
    """

    caller: Caller
    preset: str
    running: StreamedAsk | Asked
    trace: str
    key: CacheKey | None = field(default=None, repr=False)

    @classmethod
    def begun(cls, caller: Caller, asked: AnswerIn) -> "Answering":
        """Search for a question, unless its answer is in the cache."""
        request = within_limits(caller, asked)
        with failures_noted(caller, ASK, request.question):
            base = caller.base(asked.preset)
            preset = base.settings.preset
            prepared = base.prepared(request)
            key = None
            if asked.extractive or base.models.chat() is None:
                key = cache_key(caller, base, request, prepared)
                if (known := caller.service.asked.get(key)) is not None:
                    answer, trace = known
                    own = replace(answer, found=replace(answer.found, request=request))
                    return cls(caller, preset, own, trace)
            trace = new_trace(base, prepared)
            running = base.asking(
                request,
                extractive=asked.extractive,
                trace_id=trace,
                prepared=prepared,
            )
        return cls(caller, preset, running, trace, key)

    @property
    def found(self) -> Found:
        """The search that the answer rests on."""
        return self.running.found

    def headers(self) -> dict[str, str]:
        """Return the response headers."""
        return answer_headers(self.trace, cached=isinstance(self.running, Asked))

    def whole(self) -> AskedJson:
        """Return the whole answer, after the audit row is on disk."""
        with failures_noted(self.caller, ASK, self.found.request.question):
            for _ in self._pieces():
                pass
        return self._ended()

    def events(self, request_id: str) -> Events:
        """Yield the answer in pieces; the audit gets a row however it ends."""
        question = self.found.request.question
        trace = self.trace or None
        try:
            yield "found", {**found_json(self.found), "trace": trace}
            with failures_noted(self.caller, ASK, question):
                for piece in self._pieces():
                    yield "piece", {"text": piece}
            answer = self._ended()
        # The client disconnected, or the service stops.
        except GeneratorExit:
            if isinstance(self.running, StreamedAsk):
                self.running.close()
            self.caller.note(ASK, BROKEN_OFF, question, facts={"trace": trace})
            raise
        except Exception as error:
            logger.exception("answer_broke_off", request=request_id)
            yield "problem", problem_of(error).as_data(request_id)
            return
        yield "answer", {**answer, "trace": trace}

    def _pieces(self) -> Iterator[str]:
        if isinstance(self.running, Asked):
            return iter((self.running.answer.text,))
        return iter(self.running)

    def _ended(self) -> AskedJson:
        """Count and cache a whole answer, and write its audit row."""
        cached = isinstance(self.running, Asked)
        asked = self.running if isinstance(self.running, Asked) else self.running.asked
        if self.key is not None:
            known = replace(asked, found=without_vectors(asked.found))
            self.caller.service.asked.put(self.key, (known, self.trace))
        facts = answer_facts(asked, self.preset)
        _noted(self.caller, ASK, asked.found, facts, self.trace, cached=cached).result()
        return asked_json(asked)


def cache_key(
    caller: Caller, base: KnowledgeBase, request: Request, prepared: PreparedSearch
) -> CacheKey:
    """Return all that an answer depends on, the tenant first; and who may read it."""
    return (
        *(caller.tenant, caller.key.id, caller.asker),
        normalised(request.question),
        as_json(request_json(request)),
        base.settings.preset,
        prepared.retriever.configuration,
        prepared.version,
    )


def new_trace(base: KnowledgeBase, prepared: PreparedSearch) -> str:
    """Return an id for the trace of an answer, or "" where nothing is recorded.

    That depends on the settings; and without documents a tenant has no traces.
    """
    records = base.settings.record_queries != "off" and prepared.version
    return new_trace_id() if records else ""


def answer_headers(trace: str, *, cached: bool) -> dict[str, str]:
    """Return the response headers of an answer."""
    return {CACHE: "hit" if cached else "miss"} | ({TRACE: trace} if trace else {})


def without_vectors(found: Found) -> Found:
    """Return *found* without its vectors, which would fill the cache unread."""
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
    """Write an audit row if the block raises an error of the library."""
    try:
        yield
    except KeptError as error:
        caller.note(action, "failed", question, facts={"code": code_of(error)})
        raise


def audited(
    caller: Caller,
    action: str,
    work: Callable[[], T],
    question: str | None = None,
    **known: object,
) -> T:
    """Return the result of *work*, once an audit row says that it was answered."""
    with failures_noted(caller, action, question):
        result = work()
    caller.note(action, ANSWERED, question, **known)
    return result


def outcome_of(found: Found) -> str:
    """Return how a search ended, as the audit and the metrics name it."""
    return found.refused.reason if found.refused else ANSWERED
