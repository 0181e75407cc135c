"""The Ask page: a question, its answer, and the sources that carry it."""

import re
from typing import Any

from fastapi import APIRouter
from pydantic import ValidationError
from starlette.responses import Response

from kept.http.answering import Answering
from kept.http.pages.visiting import ReaderVisit, Visit
from kept.http.problems import Problem
from kept.http.schemas import AskIn
from kept.stores.lists import Lists

MARKER = re.compile(r"\[(\d+)\]")
TOPICS = 5

router = APIRouter(include_in_schema=False)


@router.get("/ask")
async def show_ask(visit: ReaderVisit) -> Response:
    """Show the form, filled in by a link if there was one; nothing is asked yet."""
    question = visit.request.query_params.get("question", "")
    return await _page(visit, {"question": question})


@router.post("/ask")
async def ask(visit: ReaderVisit) -> Response:
    """Answer a question on a page of its own, for those without scripts."""
    form = {name: visit.text(name) for name in ("question", "k", "tag", "extractive")}
    answering = visit.caller.service.answering
    try:
        asked = _asked(form)
        told = await answering(lambda: Answering.begun(visit.caller, asked))
    except Problem as problem:
        if problem.code != "invalid_input":
            raise
        return await _page(visit, form, status=422, fault=problem.detail)
    answer = await answering(told.whole)
    texts = {c.id: c.chunk.text for c in told.found.selection.candidates}
    shown = {
        **answer,
        "segments": segments(answer["text"], len(answer["citations"])),
        "sources": [
            {**one, "text": texts[one["chunk_id"]]} for one in answer["citations"]
        ],
        "trace": told.trace,
    }
    return await _page(visit, form, answer=shown)


def _asked(form: dict[str, str]) -> AskIn:
    """Return what a form asks for, or say what is wrong with it."""
    tags = [form["tag"].strip()] if form["tag"].strip() else []
    given: dict[str, Any] = {
        "question": form["question"],
        "extractive": bool(form["extractive"]),
        "filters": {"tags": tags},
    }
    if form["k"].strip():
        given["k"] = form["k"].strip()
    try:
        return AskIn.model_validate(given)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        where = " ".join(map(str, fault["loc"])) or "question"
        raise Problem("invalid_input", f"{where}: {fault['msg']}") from None


async def _page(
    visit: Visit,
    form: dict[str, str],
    *,
    status: int = 200,
    fault: str = "",
    answer: dict[str, Any] | None = None,
) -> Response:
    lists = Lists(visit.caller.service.base.store.database, visit.tenant)
    newest = await visit.work(lambda: lists.documents(None, TOPICS))
    titles = (stored.document.title for _, stored in newest)
    return visit.page(
        "ask.html",
        status,
        form={"question": "", "k": "", "tag": "", "extractive": "", **form},
        fault=fault,
        answer=answer,
        topics=[title for title in titles if title],
        stocked=bool(newest),
        longest=visit.caller.service.limits.max_question_chars,
        most=visit.caller.service.limits.max_k,
    )


def segments(text: str, sources: int) -> list[str | int]:
    """Cut a text at its markers; those that lead to a source become numbers."""
    parts: list[str | int] = list(MARKER.split(text))
    for place in range(1, len(parts), 2):
        number = int(parts[place])
        parts[place] = number if 1 <= number <= sources else f"[{number}]"
    return [part for part in parts if part != ""]
