"""Jobs: how far documents have come, live or on demand."""

import asyncio

from fastapi import APIRouter, Request
from starlette.responses import Response

from kept.http import shapes
from kept.http.callers import SECURED, Caller, Reader, Writer
from kept.http.changing import cancelled
from kept.http.handing import SHOWN_RECEIPTS, job_now, job_still
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
from kept.http.streaming import (
    HEARTBEAT_SECONDS,
    MEDIA_TYPE,
    EventStream,
    Wire,
    comment,
    event,
)
from kept.stores.jobs import Job

PACE_SECONDS = 0.1

router = APIRouter(prefix="/v1", tags=["documents"], dependencies=SECURED)


@router.get("/jobs", response_model=shapes.JobList)
async def list_jobs(
    caller: Reader, request: Request, limit: Limit = 50, cursor: Cursor = None
) -> Response:
    """List jobs, the newest first."""
    after = place_of(cursor, str)
    service = caller.service

    def read() -> list[Job]:
        before = service.jobs.job(caller.tenant, after).no if after else None
        return service.jobs.page(caller.tenant, before=before, limit=limit + 1)

    rows = await service.workers(read)
    return shown(request, page(rows, limit, Job.as_data, lambda j: j.id, "jobs"))


@router.get("/jobs/{job_id}", response_model=shapes.JobWithReceipts)
async def read_job(job_id: str, caller: Reader, request: Request) -> Response:
    """Read a job with its first receipts."""
    job = await job_now(caller, job_id)
    jobs = caller.service.jobs
    receipts = await caller.service.workers(
        lambda: jobs.receipts(job, after=0, limit=SHOWN_RECEIPTS)
    )
    return shown(request, {**job.as_data(), "receipts": receipts})


@router.get("/jobs/{job_id}/receipts", response_model=shapes.Receipts)
async def list_receipts(
    job_id: str,
    caller: Reader,
    request: Request,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Response:
    """List the receipts of a job in the order they came."""
    after = place_of(cursor, int) or 0
    job = await job_now(caller, job_id)
    rows = await caller.service.workers(
        lambda: caller.service.jobs.receipts(job, after=after, limit=limit + 1)
    )
    told = page(rows, limit, dict, lambda _: after + limit, "receipts")
    return shown(request, told)


@router.post("/jobs/{job_id}/cancel", response_model=shapes.Job)
async def cancel_job(
    job_id: str, caller: Writer, request: Request, key: IdempotencyKey = None
) -> Response:
    """Stop a job behind the document that is being stored; what is stored stays."""

    async def work() -> Response:
        job = await caller.service.workers(lambda: cancelled(caller, job_id))
        return replied(job.as_data())

    return await once(request, caller, key, b"", work)


@router.get(
    "/jobs/{job_id}/events",
    response_class=Response,
    responses={200: {"content": {MEDIA_TYPE: {}}}},
)
async def follow_job(job_id: str, caller: Reader) -> Response:
    """Follow a job by server-sent events: `progress`, and at the end `end`."""
    job = await job_now(caller, job_id)
    leave = caller.service.following.take(caller.tenant)
    return EventStream(_followed(caller, job), ended=leave)


async def _followed(caller: Caller, job: Job) -> Wire:
    service = caller.service
    bell = service.runner.bell()
    try:
        while not job.ended and not service.stopping.is_set():
            yield event("progress", job.as_data())
            try:
                async with asyncio.timeout(HEARTBEAT_SECONDS):
                    await bell.wait()
            except TimeoutError:
                yield comment()
            bell.clear()
            job = await job_still(caller, job.id)
            await asyncio.sleep(PACE_SECONDS if not job.ended else 0)
        yield event("end" if job.ended else "progress", job.as_data())
    finally:
        service.runner.unplug(bell)
