"""The pages of documents: submitting them, the list, one document, and jobs."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Query
from starlette.responses import Response

from kept.doors.http import document_writes as writes
from kept.doors.http.own_jobs import OwnJobs
from kept.doors.http.pages.page_request import (
    ReaderVisit,
    Visit,
    WriterVisit,
    page_links,
)
from kept.doors.http.problems import Problem, validated
from kept.doors.http.responses import Cursor, place_of
from kept.doors.http.schemas import DocumentIn
from kept.kernel.model import Chunk
from kept.knowledge_base.job_worker import JobSource
from kept.search.render import document_json
from kept.stores.service.jobs import Job

HERE = "/documents"
JOBS = f"{HERE}/jobs"
PAGE = 25
CHUNKS = 20
ALIASES = 50
LATEST_JOBS = 3
NAMED = 3

Containing = Annotated[str, Query(max_length=200)]

router = APIRouter(include_in_schema=False)


@router.get(HERE)
async def list_documents(
    visit: ReaderVisit, containing: Containing = "", cursor: Cursor = None
) -> Response:
    """List documents, the newest first, with forms to submit more."""
    wanted, own = containing.strip(), OwnJobs(visit.caller)
    before = place_of(cursor or None, int, str)

    def read() -> tuple[list[Any], list[Job]]:
        rows = visit.lists.documents(before, PAGE + 1, containing=wanted)
        return rows, own.page(None, LATEST_JOBS)

    rows, jobs = await visit.work(read)
    return visit.page(
        "documents.html",
        documents=[document_json(stored) for _, stored in rows[:PAGE]],
        containing=wanted,
        jobs=[_job_shown(job, own.as_data(job)) for job in jobs],
        most_bytes=visit.caller.service.limits.max_upload_bytes,
        **page_links(HERE, rows, PAGE, lambda row: row[0], cursor, containing=wanted),
    )


def _job_shown(job: Job, shown: Mapping[str, Any]) -> dict[str, Any]:
    """Return a job with the names of its first sources."""
    names = [
        str(item.get("file") or item["fields"].get("title") or item["uri"])
        for item in job.items[:NAMED]
    ]
    more = len(job.items) - len(names)
    return {**shown, "ended": job.ended, "names": names, "more": more}


@router.post(f"{HERE}/files")
async def submit_files(visit: WriterVisit) -> Response:
    """Submit files from a form."""
    files = visit.files("files")
    if not files:
        raise Problem("invalid_input", "no file was chosen; choose one and try again")
    declared = {"tags": tags} if (tags := _tags(visit)) else {}
    return await _submitted(
        visit,
        [writes.uploaded(place, one, declared) for place, one in enumerate(files)],
    )


@router.post(f"{HERE}/text")
async def submit_text(visit: WriterVisit) -> Response:
    """Submit a text from a form."""
    given = {"text": visit.text("text"), "title": visit.text("title").strip()}
    return await _submitted(visit, [_described(visit, given)])


@router.post(f"{HERE}/url")
async def submit_url(visit: WriterVisit) -> Response:
    """Submit a URL to fetch."""
    given = {"url": visit.text("url").strip() or None}
    return await _submitted(visit, [_described(visit, given)])


def _described(visit: Visit, given: dict[str, Any]) -> JobSource:
    tagged = {**given, "tags": _tags(visit)}
    return writes.text_or_url(0, validated(DocumentIn, tagged, "document"))


def _tags(visit: Visit) -> list[str]:
    return [tag for one in visit.text("tags").split(",") if (tag := one.strip())]


async def _submitted(visit: Visit, sources: Sequence[JobSource]) -> Response:
    job = await writes.submitted(visit.caller, sources)
    return visit.back_to(f"{JOBS}/{job.id}")


@router.get(JOBS)
async def list_jobs(visit: ReaderVisit, cursor: Cursor = None) -> Response:
    """List jobs, the newest first."""
    after, own = place_of(cursor or None, str), OwnJobs(visit.caller)
    rows = await visit.work(lambda: own.page(after, PAGE + 1))
    return visit.page(
        "jobs.html",
        jobs=[_job_shown(job, own.as_data(job)) for job in rows[:PAGE]],
        **page_links(JOBS, rows, PAGE, lambda job: job.id, cursor),
    )


@router.get(f"{JOBS}/{{job_id}}")
async def show_job(visit: ReaderVisit, job_id: str) -> Response:
    """Show the progress of a job, and its receipts."""
    job, body = await visit.work(lambda: writes.job_with_receipts(visit.caller, job_id))
    receipts = body["receipts"]
    return visit.page("job.html", job=_job_shown(job, body), receipts=receipts)


@router.post(f"{JOBS}/{{job_id}}/cancel")
async def cancel_job(visit: WriterVisit, job_id: str) -> Response:
    """Stop a job."""
    job = await visit.work(lambda: writes.cancelled(visit.caller, job_id))
    return visit.back_to(f"{JOBS}/{job.id}", "job-cancelled")


@router.get(f"{HERE}/{{document_id}}")
async def show_document(
    visit: ReaderVisit, document_id: str, cursor: Cursor = None
) -> Response:
    """Show a document with its chunks, and the texts that it stands for."""
    after = place_of(cursor or None, int)

    def read() -> tuple[dict[str, Any], list[Chunk]]:
        pages = visit.caller.pages
        found = {
            "document": document_json(pages.document(document_id)),
            "aliases": visit.lists.aliases_of(document_id, ALIASES),
        }
        return found, pages.chunks(document_id, after, CHUNKS + 1)

    found, chunks = await visit.work(read)
    here = f"{HERE}/{quote(document_id, safe='')}"
    return visit.page(
        "document.html",
        **found,
        chunks=chunks[:CHUNKS],
        here=here,
        **page_links(here, chunks, CHUNKS, lambda chunk: chunk.ord, cursor),
    )


@router.post(f"{HERE}/{{document_id}}/delete")
async def delete_document(visit: WriterVisit, document_id: str) -> Response:
    """Delete a document permanently."""
    with_aliases = bool(visit.text("with_aliases"))
    await visit.work(
        lambda: writes.deleted(visit.caller, document_id, with_aliases=with_aliases)
    )
    return visit.back_to(HERE, "document-deleted")
