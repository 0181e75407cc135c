"""Documents: handed in as jobs, listed, read and deleted."""

import hashlib
from typing import Annotated, Any, BinaryIO

from fastapi import APIRouter, Depends, File, Form, Query, Request, UploadFile
from fastapi.concurrency import run_in_threadpool
from pydantic import ValidationError
from starlette.responses import Response

from kept.http import shapes
from kept.http.callers import SECURED, Caller, Reader, Writer
from kept.http.changing import deleted
from kept.http.forms import MULTIPART, is_form
from kept.http.handing import handed_over, job_response, text_or_url, uploaded
from kept.http.problems import Problem
from kept.http.replying import (
    Cursor,
    IdempotencyKey,
    Limit,
    once,
    page,
    place_of,
    replied,
    shown,
)
from kept.http.schemas import DocumentFields, DocumentsIn
from kept.model import Chunk
from kept.render import document_json
from kept.text.draft import Draft

MOST_FILES = 1_000
BLOCK = 1 << 20

Wait = Annotated[
    float,
    Query(ge=0.0, le=60.0, description="Seconds to wait for the job to end."),
]

router = APIRouter(prefix="/v1", tags=["documents"], dependencies=SECURED)


async def _as_form(request: Request) -> None:
    """Refuse files that come as anything else."""
    if not is_form(request.headers.get("content-type", "")):
        msg = f"files are sent as {MULTIPART}, with the field files for each"
        raise Problem("unsupported_media_type", msg)


@router.post(
    "/documents",
    status_code=202,
    response_model=shapes.JobWithReceipts,
    responses={200: {"model": shapes.JobWithReceipts, "description": "It has ended"}},
)
async def create_documents(
    given: DocumentsIn,
    caller: Writer,
    request: Request,
    wait: Wait = 0.0,
    key: IdempotencyKey = None,
) -> Response:
    """Take in documents as texts or URLs; the answer is a job.

    What was acknowledged is stored, also if the service stops before it is done.
    """
    sources = [text_or_url(place, one) for place, one in enumerate(given.documents)]

    async def work() -> Response:
        job = await handed_over(caller, sources)
        return await job_response(caller, job, wait)

    return await once(request, caller, key, await request.body(), work)


@router.post(
    "/documents/files",
    dependencies=[Depends(_as_form)],
    status_code=202,
    response_model=shapes.JobWithReceipts,
    responses={200: {"model": shapes.JobWithReceipts, "description": "It has ended"}},
)
async def upload_documents(  # noqa: PLR0913 -- as many as a form has
    caller: Writer,
    request: Request,
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
    key: IdempotencyKey = None,
) -> Response:
    """Take in files; the answer is a job.

    A file is named `upload:` and its file name, unless `fields` name it: a later
    file of the same name takes its place.
    """
    if len(files) > MOST_FILES:
        raise Problem("invalid_input", f"at most {MOST_FILES} files are taken at once")
    declared = _declared(fields)
    digest = await run_in_threadpool(_digest, [one.file for one in files])
    sources = [uploaded(place, one, declared) for place, one in enumerate(files)]

    async def work() -> Response:
        job = await handed_over(caller, sources)
        return await job_response(caller, job, wait)

    told = f"{fields}\n{[one.filename for one in files]}\n{digest}".encode()
    return await once(request, caller, key, told, work)


def _declared(fields: str | None) -> dict[str, Any]:
    if not fields:
        return {}
    try:
        given = DocumentFields.model_validate_json(fields)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, ("fields", *fault["loc"])))
        raise Problem("invalid_input", f"{where}: {fault['msg']}") from None
    declared = given.declared()
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


@router.get("/documents", response_model=shapes.Documents)
async def list_documents(
    caller: Reader,
    request: Request,
    limit: Limit = 50,
    cursor: Cursor = None,
    *,
    all_versions: Annotated[
        bool, Query(description="Also those that a later version replaced.")
    ] = False,
) -> Response:
    """List documents, the oldest first."""
    after = unmasked(caller, place_of(cursor, int, str))
    rows = await caller.service.workers(
        lambda: caller.pages.documents(after, limit + 1, all_versions=all_versions)
    )
    return shown(
        request,
        page(
            rows,
            limit,
            lambda r: document_json(r[1]),
            lambda r: masked(caller, r[0]),
            "documents",
        ),
    )


def masked(caller: Caller, place: tuple[int, str]) -> tuple[int, str]:
    """Return a document's place so that nobody can read its age from a cursor.

    Ages count the documents of all tenants.
    """
    age, name = place
    return age ^ caller.service.signer.mask(f"{caller.tenant} {name}"), name


def unmasked(caller: Caller, place: tuple[int, str] | None) -> tuple[int, str] | None:
    """Return the place that was masked; masking twice gives it back."""
    return None if place is None else masked(caller, place)


@router.get("/documents/{document_id}", response_model=shapes.WholeDocument)
async def read_document(document_id: str, caller: Reader, request: Request) -> Response:
    """Read a document with its text."""

    def read() -> dict[str, Any]:
        stored = caller.pages.document(document_id)
        _, text = caller.service.base.store.document(caller.tenant, document_id)
        return {**document_json(stored), "text": text}

    return shown(request, await caller.service.workers(read))


@router.get("/documents/{document_id}/chunks", response_model=shapes.Chunks)
async def list_chunks(
    document_id: str,
    caller: Reader,
    request: Request,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Response:
    """List the chunks of a document in order."""
    after = place_of(cursor, int)
    rows = await caller.service.workers(
        lambda: caller.pages.chunks(document_id, after, limit + 1)
    )
    return shown(request, page(rows, limit, chunk_json, lambda c: c.ord, "chunks"))


def chunk_json(chunk: Chunk) -> dict[str, Any]:
    """Return a chunk as it is stored."""
    return {
        "chunk_id": chunk.id,
        "ord": chunk.ord,
        "text": chunk.text,
        "token_len": chunk.token_len,
        "tags": list(chunk.tags),
        "role": chunk.role,
        "excerpt": chunk.excerpt,
        "confidence": chunk.confidence,
        "labels": dict(chunk.labels),
        "metadata": dict(chunk.metadata),
    }


@router.delete("/documents/{document_id}", response_model=shapes.Receipt)
async def delete_document(
    document_id: str,
    caller: Writer,
    request: Request,
    key: IdempotencyKey = None,
    *,
    with_aliases: Annotated[
        bool, Query(description="Also the texts that it stands for.")
    ] = False,
) -> Response:
    """Delete a document for good."""

    async def work() -> Response:
        return replied(
            await caller.service.workers(
                lambda: deleted(caller, document_id, with_aliases=with_aliases)
            )
        )

    return await once(request, caller, key, b"", work)
