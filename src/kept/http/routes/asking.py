"""Asking: search, answers, why, why not, and references."""

from collections.abc import Callable
from typing import Any

import structlog
from fastapi import APIRouter, Request
from starlette.responses import Response

from kept.asking import Asking, asked_json
from kept.explain import why as why_of
from kept.explain import why_not as why_not_of
from kept.http import shapes
from kept.http.callers import SECURED, Caller, Reader
from kept.http.problems import Shown, problem_of
from kept.http.replying import replied
from kept.http.schemas import AskIn, ReferencesIn, SearchIn, WhyIn, WhyNotIn
from kept.http.searching import (
    ANSWERED,
    facts_of_answer,
    failures_noted,
    question_kept,
    searched,
    within_limits,
)
from kept.http.streaming import MEDIA_TYPE, Events, event_stream, from_thread
from kept.questionnaire import phq8
from kept.reference_store import ReferenceStore
from kept.render import found_json
from kept.telling import story_json, why_not_json

CACHE = "kept-cache"
BROKEN_OFF = "broken_off"

logger = structlog.get_logger(__name__)
router = APIRouter(prefix="/v1", tags=["asking"], dependencies=SECURED)


@router.post("/search", response_model=shapes.Search)
async def search(asked: SearchIn, caller: Reader) -> Response:
    """Find the passages that deserve to be cited, or say that there are none."""
    found, known = await searched(caller, asked, "search")
    headers = {CACHE: "hit" if known else "miss"}
    return replied(found_json(found), headers=headers)


@router.post(
    "/ask",
    response_model=shapes.Asked,
    responses={200: {"content": {MEDIA_TYPE: {}}}},
)
async def ask(asked: AskIn, caller: Reader, request: Request) -> Response:
    """Answer from the passages that deserve to be cited.

    With `stream` the answer comes as server-sent events: `found` with the search,
    then `piece` after `piece` of the text, and at the end `answer` with the whole
    of it, or `problem`.
    """
    wanted = within_limits(caller, asked)
    answering = caller.service.answering
    preset = asked.preset or caller.service.settings.preset

    def begin() -> Asking:
        with failures_noted(caller, "ask", asked.question):
            base = caller.base(asked.preset)
            return base.asking(wanted, extractive=asked.extractive)

    def whole() -> dict[str, Any]:
        running = begin()
        with failures_noted(caller, "ask", asked.question):
            for _ in running:
                pass
        return _answered(caller, running, preset)

    if not asked.stream:
        return replied(await answering(whole))
    running = await answering(begin)
    name = request.state.request_id
    return event_stream(
        from_thread(answering, lambda: _told(caller, running, preset, name))
    )


def _told(caller: Caller, running: Asking, preset: str, request_id: str) -> Events:
    """Yield an answer on its way; however it ends, the audit hears of it."""
    question = running.found.request.question
    try:
        yield "found", found_json(running.found)
        with failures_noted(caller, "ask", question):
            for piece in running:
                yield "piece", {"text": piece}
        answer = _answered(caller, running, preset)
    except GeneratorExit:
        running.close()
        caller.note("ask", BROKEN_OFF, **question_kept(caller, question))
        raise
    except Exception as error:
        logger.exception("answer_broke_off", request=request_id)
        problem = problem_of(error)
        shown = Shown(code=problem.code, detail=problem.detail, instance=request_id)
        yield "problem", shown.as_data()
        return
    yield "answer", answer


def _answered(caller: Caller, running: Asking, preset: str) -> dict[str, Any]:
    """Return a whole answer, once its row is in the audit."""
    asked = running.asked
    refused = asked.found.refused
    caller.service.metrics.answered("ask", asked.found)
    caller.note(
        "ask",
        refused.reason if refused else ANSWERED,
        **question_kept(caller, asked.found.request.question),
        facts=facts_of_answer(asked, preset),
    )
    return asked_json(asked)


@router.post("/why", response_model=shapes.Story)
async def why(asked: WhyIn, caller: Reader) -> Response:
    """Tell what happened to one chunk when a question was asked."""
    wanted = within_limits(caller, asked)

    def told() -> dict[str, Any]:
        base = caller.base(asked.preset)
        found = base.retriever(base.plan(wanted))(wanted)
        return story_json(why_of(found, asked.chunk_id))

    return await _explained(caller, asked, "why", asked.chunk_id, told)


@router.post("/why-not", response_model=shapes.WhyNot)
async def why_not(asked: WhyNotIn, caller: Reader) -> Response:
    """Tell why something is not in an answer, and what would let it in.

    The smallest change of one setting is looked for and verified by a run.
    """
    wanted = within_limits(caller, asked)

    def told() -> dict[str, Any]:
        return why_not_json(why_not_of(caller.base(asked.preset), asked.named, wanted))

    return await _explained(caller, asked, "why_not", asked.named, told)


async def _explained(
    caller: Caller,
    asked: SearchIn,
    action: str,
    target: str,
    tell: Callable[[], dict[str, Any]],
) -> Response:
    def work() -> dict[str, Any]:
        with failures_noted(caller, action, asked.question):
            told = tell()
        kept = question_kept(caller, asked.question)
        caller.note(action, ANSWERED, target=target, **kept)
        return told

    return replied(await caller.service.workers(work))


@router.post("/references", response_model=shapes.References)
async def references(asked: ReferencesIn, caller: Reader) -> Response:
    """Choose labelled references for the evidence of one participant."""

    def chosen() -> dict[str, Any]:
        store = ReferenceStore(caller.base("few_shot"), phq8())
        data = store.choose(asked.evidence, asked.participant).as_data()
        caller.note("references", ANSWERED, target=asked.participant)
        return data

    return replied(await caller.service.workers(chosen))
