"""Handing over: sources become a job that outlives the request."""

import asyncio
import hashlib
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from starlette.datastructures import UploadFile
from starlette.responses import Response

from kept.http.callers import Caller
from kept.http.problems import Problem
from kept.http.replying import replied
from kept.http.schemas import DocumentIn
from kept.stores.jobs import Job, new_id
from kept.text.draft import Draft

SHOWN_RECEIPTS = 100
LONGEST_NAME = 500


@dataclass(frozen=True, slots=True)
class HandedIn:
    """A source as a job remembers it, and its bytes if they came with it."""

    item: Mapping[str, Any] = field(hash=False)
    data: BinaryIO | None = None


def text_or_url(place: int, given: DocumentIn) -> HandedIn:
    """Return a text or a URL as the source number *place* of a job."""
    declared = given.declared()
    if given.url is not None:
        item = {"kind": "url", "uri": given.url, "fields": declared}
        return HandedIn(item)
    data = (given.text or "").encode()
    Draft(**{**declared, "text": given.text or ""})
    uri = given.source_uri or f"text:{hashlib.sha256(data).hexdigest()[:16]}"
    item = {"kind": "text", "name": str(place), "uri": uri, "fields": declared}
    return HandedIn(item, io.BytesIO(data))


def uploaded(place: int, file: UploadFile, declared: Mapping[str, Any]) -> HandedIn:
    """Return a file as the source number *place* of a job."""
    name = (file.filename or f"file-{place + 1}")[-LONGEST_NAME:]
    name = name.encode("utf-8", "replace").decode()
    item = {
        "kind": "file",
        "name": str(place),
        "file": name,
        "uri": declared.get("source_uri") or f"upload:{name}",
        "content_type": _content_type(file),
        "fields": declared,
    }
    return HandedIn(item, file.file)


def _content_type(file: UploadFile) -> str:
    """Return what the client says of a file, where that says something."""
    stated = file.content_type or ""
    return "" if stated.startswith("application/octet-stream") else stated


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
    receipts = await service.workers.finish(
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
                job = await job_still(caller, job.id)
                if not job.ended:
                    await bell.wait()
                    bell.clear()
    except TimeoutError:
        job = await job_still(caller, job.id)
    finally:
        runner.unplug(bell)
    return job


async def job_still(caller: Caller, job_id: str) -> Job:
    """Return a job as it stands, to whoever waits for it already."""
    service = caller.service
    return await service.workers.finish(lambda: service.jobs.job(caller.tenant, job_id))


async def job_now(caller: Caller, job_id: str) -> Job:
    """Return a job as it stands."""
    service = caller.service
    return await service.workers(lambda: service.jobs.job(caller.tenant, job_id))
