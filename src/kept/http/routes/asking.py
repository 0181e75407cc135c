"""Asking: search, answers, why, and why not."""

from collections.abc import Callable
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from kept.explain import why as why_of
from kept.explain import why_not as why_not_of
from kept.http import shapes
from kept.http.answering import Answering
from kept.http.callers import SECURED, Caller, Reader
from kept.http.replying import replied
from kept.http.schemas import AskIn, SearchIn, WhyIn, WhyNotIn
from kept.http.searching import (
    ANSWERED,
    BESIDE,
    failures_noted,
    question_kept,
    searched,
    within_limits,
)
from kept.http.streaming import MEDIA_TYPE, EventStream, from_thread
from kept.render import found_json
from kept.telling import story_json, why_not_json

router = APIRouter(prefix="/v1", tags=["asking"], dependencies=SECURED)


@router.post(
    "/search", response_model=shapes.Search, responses={200: {"headers": BESIDE}}
)
async def search(asked: SearchIn, caller: Reader) -> Response:
    """Find the passages that deserve to be cited, or say that there are none."""
    told = await searched(caller, asked, "search")
    return replied(found_json(told.found), headers=told.headers())


@router.post(
    "/ask",
    response_model=shapes.Asked,
    responses={200: {"content": {MEDIA_TYPE: {}}, "headers": BESIDE}},
)
async def ask(asked: AskIn, caller: Reader, request: Request) -> Response:
    """Answer from the passages that deserve to be cited.

    With `stream` the answer comes as server-sent events: `found` with the search,
    then `piece` after `piece` of the text, and at the end `answer` with the whole
    of it, or `problem`.
    """
    answering = caller.service.answering
    told = await answering(lambda: Answering.begun(caller, asked))
    if not asked.stream:
        return replied(await answering(told.whole), headers=told.headers())
    name = request.state.request_id
    return EventStream(
        from_thread(answering, lambda: told.events(name)), told.headers()
    )


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
