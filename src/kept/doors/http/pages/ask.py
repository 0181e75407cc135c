"""The Ask page: a question, its answer, and the sources that support it."""

import re
from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from kept.doors.http.pages.page_request import ReaderVisit, Visit
from kept.doors.http.problems import Problem, validated
from kept.doors.http.schemas import AskIn
from kept.doors.http.searches import Answering

MARKER = re.compile(r"\[(\d+)\]")
TOPICS = 5
FIELDS = ("question", "k", "tag", "extractive")

router = APIRouter(include_in_schema=False)


@router.get("/ask")
async def show_ask(visit: ReaderVisit) -> Response:
    """Show the form, with the question of a link if there is one."""
    question = visit.request.query_params.get("question", "")
    return await _page(visit, {"question": question})


@router.post("/ask")
async def ask(visit: ReaderVisit) -> Response:
    """Answer a question without scripts."""
    form = {name: visit.text(name) for name in FIELDS}
    given: dict[str, Any] = {
        "question": form["question"],
        "extractive": bool(form["extractive"]),
        "filters": {"tags": [tag] if (tag := form["tag"].strip()) else []},
        "k": form["k"].strip() or None,
    }

    def whole() -> dict[str, Any]:
        asked = validated(AskIn, given, "question")
        begun = Answering.begun(visit.caller, asked)
        answer = begun.whole()
        # The JSON of an answer has snippets only.
        texts = {c.id: c.chunk.text for c in begun.found.selection.candidates}
        cited = answer["citations"]
        return {
            **answer,
            "segments": segments(answer["text"], len(cited)),
            "sources": [{**one, "text": texts[one["chunk_id"]]} for one in cited],
            "trace": begun.trace,
        }

    try:
        answer = await visit.caller.service.answering(whole)
    except Problem as problem:
        if problem.code != "invalid_input":
            raise
        return await _page(visit, form, status=422, fault=problem.detail)
    return await _page(visit, form, answer=answer)


async def _page(
    visit: Visit,
    form: dict[str, str],
    *,
    status: int = 200,
    fault: str = "",
    answer: dict[str, Any] | None = None,
) -> Response:
    newest = await visit.work(lambda: visit.lists.documents(None, TOPICS))
    titles = (stored.document.title for _, stored in newest)
    bounds = visit.caller.service.bounds
    return visit.page(
        "ask.html",
        status,
        form={**dict.fromkeys(FIELDS, ""), **form},
        fault=fault,
        answer=answer,
        topics=[title for title in titles if title],
        stocked=bool(newest),
        longest=bounds.question_chars,
        most=bounds.k,
    )


def segments(text: str, sources: int) -> list[str | int]:
    """Split a text at its markers; those of a source become numbers."""
    parts: list[str | int] = list(MARKER.split(text))
    for place in range(1, len(parts), 2):
        number = int(parts[place])
        parts[place] = number if 1 <= number <= sources else f"[{number}]"
    return [part for part in parts if part != ""]
