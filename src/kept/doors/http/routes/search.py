"""Routes of questions: search, ask, select, why and why not."""

from collections.abc import Callable
from typing import TypeVar

from fastapi import APIRouter, Request
from starlette.responses import Response

from kept.doors.http import searches
from kept.doors.http.callers import SECURED, Caller, Reader
from kept.doors.http.event_streams import MEDIA_TYPE, EventStream, from_thread
from kept.doors.http.problems import Problem
from kept.doors.http.responses import replied
from kept.doors.http.schemas import AskIn, SearchIn, SelectIn, WhyIn, WhyNotIn
from kept.explain.explanations import why as why_of
from kept.explain.explanations import why_not as why_not_of
from kept.explain.render import StoryJson, WhyNotJson, story_json, why_not_json
from kept.knowledge_base.select import Selecting
from kept.search.answer.ask import AskedJson
from kept.search.query_log import search_facts
from kept.search.render import FoundJson, found_json
from kept.search.select import Given

T = TypeVar("T")

router = APIRouter(prefix="/v1", tags=["asking"], dependencies=SECURED)


@router.post(
    "/search",
    response_model=FoundJson,
    responses={200: {"headers": searches.ANSWER_HEADERS}},
)
async def search(asked: SearchIn, caller: Reader) -> Response:
    """Find the passages worth citing, or say that there are none."""
    result = await searches.searched(caller, asked, "search")
    return replied(found_json(result.found), headers=result.headers)


@router.post(
    "/ask",
    response_model=AskedJson,
    responses={200: {"content": {MEDIA_TYPE: {}}, "headers": searches.ANSWER_HEADERS}},
)
async def ask(asked: AskIn, caller: Reader, request: Request) -> Response:
    """Answer from the passages worth citing.

    With `stream` the answer is sent as server-sent events: `found` with the search,
    then the text in events named `piece`, and at the end `answer` with the whole
    answer, or `problem`.
    """
    answering = caller.service.answering
    if not asked.stream:

        def whole() -> tuple[AskedJson, dict[str, str]]:
            begun = searches.Answering.begun(caller, asked)
            return begun.whole(), begun.headers()

        answer, headers = await answering(whole)
        return replied(answer, headers=headers)
    begun = await answering(lambda: searches.Answering.begun(caller, asked))
    name = request.state.request_id
    events = from_thread(answering, lambda: begun.events(name))
    return EventStream(caller, events, begun.headers())


@router.post("/select", response_model=FoundJson)
async def select(asked: SelectIn, caller: Reader) -> Response:
    """Choose what to cite from passages that were found elsewhere.

    The result is that of a search. The words weigh what they weigh in the tenant's
    knowledge base, or among the passages if it is empty.
    """
    request = searches.within_limits(caller, asked)
    most = caller.service.bounds.batch
    if len(asked.passages) > most:
        msg = (
            f"{len(asked.passages)} passages were sent, at most {most} are taken; send "
            "the best of them"
        )
        raise Problem("invalid_input", msg)
    given = Given.of(
        asked.scores, order=asked.order, cosines=asked.cosines, ids=asked.ids
    )
    passages = [line.passage() for line in asked.passages]

    def work() -> FoundJson:
        base = caller.base(asked.preset)
        with searches.failures_noted(caller, "select", asked.question):
            found = Selecting(base=base).answer(request, passages, given)
        caller.service.metrics.answered("select", found)
        caller.note(
            "select",
            searches.outcome_of(found),
            asked.question,
            facts=search_facts(found, base.settings.preset),
        )
        return found_json(found)

    return replied(await caller.work(work))


@router.post("/why", response_model=StoryJson)
async def why(asked: WhyIn, caller: Reader) -> Response:
    """Explain what happened to one chunk when a question was asked."""
    request = searches.within_limits(caller, asked)

    def explain() -> StoryJson:
        found = caller.base(asked.preset).rerun(request)
        return story_json(why_of(found, asked.chunk_id))

    return await _explained(caller, "why", asked, asked.chunk_id, explain)


@router.post("/why-not", response_model=WhyNotJson)
async def why_not(asked: WhyNotIn, caller: Reader) -> Response:
    """Explain why something is not in an answer, and what would let it in.

    The smallest change of one setting is looked for and verified by a run.
    """
    request = searches.within_limits(caller, asked)

    def explain() -> WhyNotJson:
        base = caller.base(asked.preset)
        return why_not_json(why_not_of(base, asked.named, request))

    return await _explained(caller, "why_not", asked, asked.named, explain)


async def _explained(
    caller: Caller,
    action: str,
    asked: SearchIn,
    target: str,
    explain: Callable[[], T],
) -> Response:
    return replied(
        await caller.work(
            lambda: searches.audited(
                caller, action, explain, asked.question, target=target
            )
        )
    )
