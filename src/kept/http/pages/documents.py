"""The pages of documents: handing them in, the list, one of them, and jobs."""

from collections.abc import Sequence
from typing import Annotated, Any
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Query
from pydantic import ValidationError
from starlette.responses import Response

from kept.http.changing import cancelled, deleted
from kept.http.handing import (
    SHOWN_RECEIPTS,
    HandedIn,
    handed_over,
    job_now,
    text_or_url,
    uploaded,
)
from kept.http.pages.visiting import ReaderVisit, Visit, WriterVisit
from kept.http.problems import Problem
from kept.http.replying import Cursor, cursor_of, place_of
from kept.http.schemas import DocumentIn
from kept.model import Chunk
from kept.render import document_json
from kept.stores.jobs import Job
from kept.stores.lists import Lists

HERE = "/documents"
PAGE = 25
CHUNKS = 20
ALIASES = 50
LATEST_JOBS = 3
NAMED = 3

Sought = Annotated[str, Query(max_length=200)]

router = APIRouter(include_in_schema=False)


def lists_of(visit: Visit) -> Lists:
    """Return the tenant's lists as people read them."""
    return Lists(visit.caller.service.base.store.database, visit.tenant)


def path_with(path: str, **given: str) -> str:
    """Return a path with the parameters that are set."""
    some = {name: value for name, value in given.items() if value}
    return f"{path}?{urlencode(some)}" if some else path


@router.get(HERE)
async def list_documents(
    visit: ReaderVisit, containing: Sought = "", cursor: Cursor = None
) -> Response:
    """List documents, the newest first, and hand in more."""
    sought = containing.strip()
    before = place_of(cursor or None, int, str)

    def read() -> tuple[list[Any], list[Job]]:
        lists = lists_of(visit)
        rows = lists.documents(before, PAGE + 1, containing=sought)
        jobs = visit.caller.service.jobs
        return rows, jobs.page(visit.tenant, before=None, limit=LATEST_JOBS)

    rows, jobs = await visit.work(read)
    shown = rows[:PAGE]
    onwards = cursor_of(shown[-1][0]) if len(rows) > PAGE else ""
    limits = visit.caller.service.limits
    return visit.page(
        "documents.html",
        documents=[document_json(stored) for _, stored in shown],
        containing=sought,
        next_href=path_with(HERE, containing=sought, cursor=onwards) if onwards else "",
        first_href=path_with(HERE, containing=sought) if cursor else "",
        jobs=[job_shown(job) for job in jobs],
        most_bytes=limits.max_upload_bytes,
    )


def job_shown(job: Job) -> dict[str, Any]:
    """Return a job with the names of what was handed in."""
    names = [
        str(item.get("file") or item["fields"].get("title") or item["uri"])
        for item in job.items[:NAMED]
    ]
    return {
        **job.as_data(),
        "ended": job.ended,
        "names": names,
        "more": len(job.items) - len(names),
    }


@router.post(f"{HERE}/files")
async def hand_in_files(visit: WriterVisit) -> Response:
    """Take files from a form."""
    files = visit.files("files")
    if not files:
        raise Problem("invalid_input", "no file was chosen; choose one and try again")
    declared = {"tags": tags} if (tags := _tags(visit)) else {}
    return await _handed_in(
        visit, [uploaded(place, one, declared) for place, one in enumerate(files)]
    )


@router.post(f"{HERE}/text")
async def hand_in_text(visit: WriterVisit) -> Response:
    """Take a text from a form."""
    given = {"text": visit.text("text"), "title": visit.text("title").strip()}
    return await _handed_in(visit, [_described(visit, given)])


@router.post(f"{HERE}/url")
async def hand_in_url(visit: WriterVisit) -> Response:
    """Take what is found at a URL."""
    given = {"url": visit.text("url").strip() or None}
    return await _handed_in(visit, [_described(visit, given)])


def _described(visit: Visit, given: dict[str, Any]) -> HandedIn:
    try:
        document = DocumentIn.model_validate({**given, "tags": _tags(visit)})
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        where = " ".join(map(str, fault["loc"])) or "document"
        raise Problem("invalid_input", f"{where}: {fault['msg']}") from None
    return text_or_url(0, document)


def _tags(visit: Visit) -> list[str]:
    return [tag for one in visit.text("tags").split(",") if (tag := one.strip())]


async def _handed_in(visit: Visit, sources: Sequence[HandedIn]) -> Response:
    job = await handed_over(visit.caller, sources)
    return visit.back_to(f"{HERE}/jobs/{job.id}")


@router.get(f"{HERE}/jobs")
async def list_jobs(visit: ReaderVisit, cursor: Cursor = None) -> Response:
    """List jobs, the newest first."""
    after = place_of(cursor or None, str)
    jobs = visit.caller.service.jobs

    def read() -> list[Job]:
        before = jobs.job(visit.tenant, after).no if after else None
        return jobs.page(visit.tenant, before=before, limit=PAGE + 1)

    rows = await visit.work(read)
    onwards = cursor_of(rows[PAGE - 1].id) if len(rows) > PAGE else ""
    here = f"{HERE}/jobs"
    return visit.page(
        "jobs.html",
        jobs=[job_shown(job) for job in rows[:PAGE]],
        next_href=path_with(here, cursor=onwards) if onwards else "",
        first_href=here if cursor else "",
    )


@router.get(f"{HERE}/jobs/{{job_id}}")
async def show_job(visit: ReaderVisit, job_id: str) -> Response:
    """Show how far a job has come, and what became of its documents."""
    job = await job_now(visit.caller, job_id)
    jobs = visit.caller.service.jobs
    receipts = await visit.work(
        lambda: jobs.receipts(job, after=0, limit=SHOWN_RECEIPTS)
    )
    return visit.page("job.html", job=job_shown(job), receipts=receipts)


@router.post(f"{HERE}/jobs/{{job_id}}/cancel")
async def cancel_job(visit: WriterVisit, job_id: str) -> Response:
    """Stop a job."""
    job = await visit.work(lambda: cancelled(visit.caller, job_id))
    return visit.back_to(f"{HERE}/jobs/{job.id}", "job-cancelled")


@router.get(f"{HERE}/{{document_id}}")
async def show_document(
    visit: ReaderVisit, document_id: str, cursor: Cursor = None
) -> Response:
    """Show a document with its chunks, and the texts that it stands for."""
    after = place_of(cursor or None, int)

    def read() -> dict[str, Any]:
        pages = visit.caller.pages
        stored = pages.document(document_id)
        return {
            "document": document_json(stored),
            "chunks": pages.chunks(document_id, after, CHUNKS + 1),
            "aliases": lists_of(visit).aliases_of(document_id, ALIASES),
        }

    shown = await visit.work(read)
    chunks: list[Chunk] = shown.pop("chunks")
    here = f"{HERE}/{quote(document_id, safe='')}"
    onwards = cursor_of(chunks[CHUNKS - 1].ord) if len(chunks) > CHUNKS else ""
    return visit.page(
        "document.html",
        **shown,
        chunks=chunks[:CHUNKS],
        here=here,
        next_href=path_with(here, cursor=onwards) if onwards else "",
        first_href=here if cursor else "",
    )


@router.post(f"{HERE}/{{document_id}}/delete")
async def delete_document(visit: WriterVisit, document_id: str) -> Response:
    """Delete a document for good."""
    with_aliases = bool(visit.text("with_aliases"))
    await visit.work(
        lambda: deleted(visit.caller, document_id, with_aliases=with_aliases)
    )
    return visit.back_to(HERE, "document-deleted")
