"""Routes of documents: submitted as jobs, listed, read, deleted, and their ledger."""

import asyncio
import hashlib
from contextlib import suppress
from functools import partial
from typing import Annotated, Any, BinaryIO

from fastapi import APIRouter, Depends, File, Form, Query, Request, UploadFile
from fastapi.concurrency import run_in_threadpool
from starlette.responses import Response

from kept.doors.http import document_writes as writes
from kept.doors.http.callers import SECURED, Caller, Reader, Writer
from kept.doors.http.event_streams import (
    HEARTBEAT_SECONDS,
    MEDIA_TYPE,
    EventStream,
    ServerEvents,
    event,
)
from kept.doors.http.own_jobs import OwnJobs
from kept.doors.http.problems import Problem, validated
from kept.doors.http.request_bodies import MULTIPART, is_form
from kept.doors.http.responses import Once, Paged, page_of, shape_of, shown
from kept.doors.http.schemas import DocumentsIn, FormFields, PruneIn, ReadersIn
from kept.ingest.receipts import Alias
from kept.search import render
from kept.stores.service.jobs import Job, JobJson
from kept.text.draft import Draft

MOST_FILES = 1_000
BLOCK = 1 << 20
PACE_SECONDS = 0.1

Wait = Annotated[
    float,
    Query(ge=0.0, le=60.0, description="Seconds to wait for the job to end."),
]
JOB: dict[str, Any] = {
    "status_code": 202,
    "response_model": writes.JobWithReceipts,
    "responses": {
        200: {"model": writes.JobWithReceipts, "description": "It has ended"}
    },
}
BIN = shape_of(
    "Bin",
    "How often similarities of one bin were accepted and rejected.",
    **{"rule": str, "from": float, "accepted": int, "rejected": int},
)
SIMILARITIES = shape_of(
    "Similarities",
    "A histogram of the similarities of openings.",
    width=float,
    bins=list[BIN],  # type: ignore[valid-type]  # a model
)

router = APIRouter(prefix="/v1", tags=["documents"], dependencies=SECURED)


class DocumentWithText(render.DocumentJson):
    """A document with its text."""

    text: str


class AliasWithText(render.AliasJson):
    """An alias with its text."""

    text: str


async def _check_is_form(request: Request) -> None:
    if not is_form(request.headers.get("content-type", "")):
        msg = f"files are sent as {MULTIPART}, with the field files for each"
        raise Problem("unsupported_media_type", msg)


@router.post("/documents", **JOB)
async def create_documents(
    given: DocumentsIn, caller: Writer, once: Once, wait: Wait = 0.0
) -> Response:
    """Ingest documents as texts or URLs; the response is a job.

    An acknowledged job is completed, even if the service stops before.
    """
    sources = [
        writes.text_or_url(place, one) for place, one in enumerate(given.documents)
    ]
    return await once.respond(
        caller, lambda: writes.job_response(caller, sources, wait)
    )


@router.post("/documents/files", dependencies=[Depends(_check_is_form)], **JOB)
async def upload_documents(
    caller: Writer,
    once: Once,
    files: Annotated[
        list[UploadFile], File(min_length=1, description="Files of any known format.")
    ],
    fields: Annotated[
        str | None,
        Form(
            description="What is declared of all of them: JSON, as for a text.",
            examples=['{"tags": ["leave"]}'],
        ),
    ] = None,
    wait: Wait = 0.0,
) -> Response:
    """Ingest files; the response is a job.

    A file is named `upload:` and its file name, unless `fields` name it: a later
    file of the same name replaces it.
    """
    if len(files) > MOST_FILES:
        raise Problem("invalid_input", f"at most {MOST_FILES} files are taken at once")
    declared = _declared(fields)
    # Not in the service's threads: large files would keep searches waiting.
    digest = await run_in_threadpool(_digest, [one.file for one in files])
    sources = [writes.uploaded(place, one, declared) for place, one in enumerate(files)]
    # The body itself differs between two equal requests: its boundary is random.
    content = f"{fields}\n{[one.filename for one in files]}\n{digest}".encode()
    respond = partial(writes.job_response, caller, sources, wait)
    return await once.respond(caller, respond, content)


def _declared(fields: str | None) -> dict[str, Any]:
    if not fields:
        return {}
    declared = validated(FormFields, {"fields": fields}, "form").fields.declared()
    # Refuses what the worker would refuse, while the client is still there.
    Draft(**{**declared, "text": "checked"})
    return declared


def _digest(files: list[BinaryIO]) -> str:
    digest = hashlib.sha256()
    for file in files:
        own = hashlib.sha256()
        while block := file.read(BLOCK):
            own.update(block)
        digest.update(own.digest())
        file.seek(0)
    return digest.hexdigest()


@router.get("/documents", response_model=page_of("documents", render.DocumentJson))
async def list_documents(
    caller: Reader,
    page: Paged,
    *,
    all_versions: Annotated[
        bool, Query(description="Also those that a later version replaced.")
    ] = False,
) -> Response:
    """List documents, the oldest first."""
    place = page.after(int, str)
    after = None if place is None else masked(caller, place)
    rows = await caller.work(
        lambda: caller.pages.documents(after, page.rows, all_versions=all_versions)
    )
    return page.shown(
        "documents",
        rows,
        lambda row: render.document_json(row[1]),
        lambda row: masked(caller, row[0]),
    )


def masked(caller: Caller, place: tuple[int, str]) -> tuple[int, str]:
    """Hide the age in a document's place; masking it twice gives it back.

    Ages count the documents of all tenants, so a cursor must not show them.
    """
    age, name = place
    return age ^ caller.service.signer.mask(f"{caller.tenant} {name}"), name


@router.get("/documents/{document_id}", response_model=DocumentWithText)
async def read_document(document_id: str, caller: Reader, request: Request) -> Response:
    """Read a document with its text."""

    def read() -> DocumentWithText:
        stored = caller.pages.document(document_id)
        _, text = caller.store.document(caller.tenant, document_id)
        return {**render.document_json(stored), "text": text}

    return shown(request, await caller.work(read))


@router.get(
    "/documents/{document_id}/chunks",
    response_model=page_of("chunks", render.ChunkJson),
)
async def list_chunks(document_id: str, caller: Reader, page: Paged) -> Response:
    """List the chunks of a document in order."""
    after = page.after(int)
    rows = await caller.work(lambda: caller.pages.chunks(document_id, after, page.rows))
    return page.shown("chunks", rows, render.chunk_json, lambda chunk: chunk.ord)


@router.delete("/documents/{document_id}", response_model=render.ReceiptJson)
async def delete_document(
    document_id: str,
    caller: Writer,
    once: Once,
    *,
    with_aliases: Annotated[
        bool, Query(description="Also the texts that it stands for.")
    ] = False,
) -> Response:
    """Delete a document permanently."""
    return await once(
        caller, lambda: writes.deleted(caller, document_id, with_aliases=with_aliases)
    )


@router.post("/documents/prune", response_model=writes.Receipts)
async def prune_documents(given: PruneIn, caller: Writer, once: Once) -> Response:
    """Retire the documents whose source begins with a prefix and is not listed.

    Send what still exists: a folder that was uploaded file by file loses those of
    its documents whose file is gone.
    """
    return await once(caller, lambda: writes.pruned(caller, given))


@router.put("/documents/readers", response_model=writes.Receipts)
async def put_readers(given: ReadersIn, caller: Writer, once: Once) -> Response:
    """Assign readers to sources, whatever they declare, now and when they change.

    An unknown source is an error; those before it in the list are assigned.
    """
    return await once(caller, lambda: writes.assigned(caller, given))


@router.get("/jobs", response_model=page_of("jobs", JobJson))
async def list_jobs(caller: Reader, page: Paged) -> Response:
    """List jobs, the newest first."""
    after, jobs = page.after(str), OwnJobs(caller)
    rows = await caller.work(
        lambda: [(job, jobs.as_data(job)) for job in jobs.page(after, page.rows)]
    )
    return page.shown("jobs", rows, lambda row: row[1], lambda row: row[0].id)


@router.get("/jobs/{job_id}", response_model=writes.JobWithReceipts)
async def read_job(job_id: str, caller: Reader, request: Request) -> Response:
    """Read a job with its first receipts."""
    _, body = await caller.work(lambda: writes.job_with_receipts(caller, job_id))
    return shown(request, body)


@router.get(
    "/jobs/{job_id}/receipts", response_model=page_of("receipts", render.ReceiptJson)
)
async def list_receipts(job_id: str, caller: Reader, page: Paged) -> Response:
    """List the receipts of a job in the order of its sources."""
    jobs, after = OwnJobs(caller), page.after(int) or 0
    rows = await caller.work(
        lambda: jobs.receipts(jobs.job(job_id), after=after, limit=page.rows)
    )
    return page.shown("receipts", rows, dict, lambda _: after + page.limit)


@router.post("/jobs/{job_id}/cancel", response_model=JobJson)
async def cancel_job(job_id: str, caller: Writer, once: Once) -> Response:
    """Stop a job after the document that is being stored; stored ones stay."""
    return await once(
        caller, lambda: OwnJobs(caller).as_data(writes.cancelled(caller, job_id))
    )


@router.get(
    "/jobs/{job_id}/events",
    response_class=Response,
    responses={200: {"content": {MEDIA_TYPE: {}}}},
)
async def follow_job(job_id: str, caller: Reader) -> Response:
    """Follow a job by server-sent events: `progress`, and at the end `end`."""
    job = await caller.work(lambda: OwnJobs(caller).job(job_id))
    free = caller.service.following.take(caller.tenant)
    return EventStream(caller, _followed(caller, job), ended=free)


async def _followed(caller: Caller, job: Job) -> ServerEvents:
    service, shown_of = caller.service, OwnJobs(caller).as_data
    # Read once: it is remembered with the caller, and reading it blocks.
    await caller.work(lambda: caller.restricted)
    bell = service.runner.bell()
    try:
        while not job.ended and not service.stopping.is_set():
            yield event("progress", shown_of(job))
            with suppress(TimeoutError):
                # The bell is silent while this process stores a long document; the
                # job may be another process's.
                async with asyncio.timeout(HEARTBEAT_SECONDS):
                    await bell.wait()
            bell.clear()
            job = await writes.job_again(caller, job)
            # A job of many small texts rings more often than a client can use.
            await asyncio.sleep(PACE_SECONDS if not job.ended else 0)
        yield event("end" if job.ended else "progress", shown_of(job))
    finally:
        service.runner.unplug(bell)


@router.get("/ledger", response_model=page_of("ledger", render.LedgerJson))
async def list_ledger(caller: Reader, page: Paged) -> Response:
    """List the receipts of all submitted texts, the newest first."""
    before = page.after(int)
    rows = await caller.work(lambda: caller.pages.ledger(before, page.rows))
    return page.shown("ledger", rows, render.ledger_json, lambda row: row.no)


@router.get("/aliases", response_model=page_of("aliases", render.AliasJson))
async def list_aliases(caller: Reader, page: Paged) -> Response:
    """List the texts that were reused rather than stored, the oldest first."""
    after = page.after(str, str)
    rows = await caller.work(lambda: caller.pages.aliases(after, page.rows))

    def place(alias: Alias) -> tuple[str, str]:
        return alias.created_at, alias.id

    return page.shown("aliases", rows, render.alias_json, place)


@router.get("/aliases/{alias_id}", response_model=AliasWithText)
async def read_alias(alias_id: str, caller: Reader, request: Request) -> Response:
    """Read an alias with its text."""
    alias = await caller.work(lambda: caller.store.alias(caller.tenant, alias_id))
    return shown(request, {**render.alias_json(alias), "text": alias.text})


@router.post("/aliases/{alias_id}/undo", response_model=render.ReceiptJson)
async def undo_alias(alias_id: str, caller: Writer, once: Once) -> Response:
    """Make an alias a document of its own, or forget it if it is an exact copy."""
    return await once(caller, lambda: writes.undone(caller, alias_id))


@router.get("/similarities", response_model=SIMILARITIES)
async def similarities(
    caller: Reader,
    request: Request,
    width: Annotated[
        float, Query(ge=0.001, le=1.0, description="How wide a bin is.")
    ] = 0.05,
) -> Response:
    """Count how often each similarity of openings was accepted and rejected."""
    bins = await caller.work(lambda: caller.base().similarity_histogram(width))
    return shown(request, {"width": width, "bins": bins})
