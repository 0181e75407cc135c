"""Handing over: sources become a job that outlives the request."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from starlette.responses import Response

from kept.http.callers import Caller
from kept.http.problems import Problem
from kept.http.replying import replied
from kept.stores.jobs import Job, new_id

SHOWN_RECEIPTS = 100


@dataclass(frozen=True, slots=True)
class HandedIn:
    """A source as a job remembers it, and its bytes if they came with it."""

    item: Mapping[str, Any] = field(hash=False)
    data: BinaryIO | None = None


async def handed_over(caller: Caller, sources: Sequence[HandedIn]) -> Job:
    """Write sources down and begin a job; once it returns, the job will be done."""
    service = caller.service

    def write() -> Job:
        limit = service.limits.waiting_jobs
        if service.jobs.waiting(caller.tenant) >= limit:
            msg = f"the tenant has {limit} unfinished jobs"
            raise Problem("too_many_jobs", msg, headers={"Retry-After": "10"})
        job_id = new_id()
        try:
            for source in sources:
                if source.data is not None:
                    service.spool.save(job_id, source.item["name"], source.data)
            items = [source.item for source in sources]
            job = service.jobs.add(
                caller.tenant, caller.key.principal, caller.key.id, items, job_id
            )
        except BaseException:
            service.spool.drop(job_id)
            raise
        caller.note(
            "document.create", "accepted", target=job.id, facts={"sources": len(items)}
        )
        return job

    job = await service.workers(write)
    service.runner.nudge()
    return job


async def job_response(caller: Caller, job: Job, wait: float) -> Response:
    """Return a job, as soon as it has ended or *wait* seconds are over."""
    job = await _ended(caller, job, wait)
    service = caller.service
    receipts = await service.workers(
        lambda: service.jobs.receipts(job, after=0, limit=SHOWN_RECEIPTS)
    )
    return replied(
        {**job.as_data(), "receipts": receipts},
        200 if job.ended else 202,
        headers={"location": f"/v1/jobs/{job.id}"},
    )


async def _ended(caller: Caller, job: Job, wait: float) -> Job:
    runner = caller.service.runner
    bell = runner.bell()
    try:
        async with asyncio.timeout(wait):
            while not job.ended and not caller.service.stopping.is_set():
                job = await job_now(caller, job.id)
                if not job.ended:
                    await bell.wait()
                    bell.clear()
    except TimeoutError:
        job = await job_now(caller, job.id)
    finally:
        runner.unplug(bell)
    return job


async def job_now(caller: Caller, job_id: str) -> Job:
    """Return a job as it stands."""
    service = caller.service
    return await service.workers(lambda: service.jobs.job(caller.tenant, job_id))
