"""Writes for the API and the pages: submit documents as a job, delete, undo, cancel."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from starlette.datastructures import UploadFile
from starlette.responses import Response
from typing_extensions import TypedDict

from kept.doors.http.callers import Caller
from kept.doors.http.own_jobs import OwnJobs, seen_receipts
from kept.doors.http.problems import Problem
from kept.doors.http.responses import replied
from kept.doors.http.schemas import DocumentIn, PruneIn, ReadersIn
from kept.knowledge_base.job_worker import JobSource
from kept.knowledge_base.readers import assign_readers
from kept.search.render import ReceiptJson, receipt_json
from kept.stores.service.jobs import Job, JobJson, new_id

SHOWN_RECEIPTS = 100


class Receipts(TypedDict):
    """A receipt for every document that was written or retired."""

    receipts: list[ReceiptJson]


class JobWithReceipts(JobJson):
    """A job with the first of its receipts."""

    receipts: list[ReceiptJson]


def text_or_url(place: int, given: DocumentIn) -> JobSource:
    """Return a text or a URL as the source number *place* of a job."""
    declared = given.declared()
    if given.url is not None:
        return JobSource.of_url(given.url, declared)
    return JobSource.of_text(place, given.text or "", declared)


def uploaded(place: int, file: UploadFile, declared: Mapping[str, Any]) -> JobSource:
    """Return a file as the source number *place* of a job."""
    stated = file.content_type or ""
    # Clients send this type for files that they do not know: the name says more.
    unknown = stated.startswith("application/octet-stream")
    return JobSource.of_file(
        place, file.filename or "", file.file, "" if unknown else stated, declared
    )


async def submitted(caller: Caller, sources: Sequence[JobSource]) -> Job:
    """Store sources and a job for them; from then on a restart loses nothing."""
    service = caller.service

    def write() -> Job:
        limit = service.bounds.waiting_jobs
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
                caller.tenant, caller.principal, caller.key.id, items, job_id
            )
        # Without a job nothing would ever drop the spooled files.
        except BaseException:
            service.spool.drop(job_id)
            raise
        counted = {"sources": len(items)}
        caller.note("document.create", "accepted", target=job.id, facts=counted)
        return job

    job = await caller.work(write)
    service.runner.nudge()
    return job


async def job_response(
    caller: Caller, sources: Sequence[JobSource], wait: float
) -> Response:
    """Submit a job, and return it when it has ended or *wait* seconds are over."""
    job = await _ended(caller, await submitted(caller, sources), wait)
    jobs = OwnJobs(caller)
    shown, receipts = await caller.service.workers.finish(
        lambda: (
            jobs.as_data(job),
            jobs.receipts(job, after=0, limit=SHOWN_RECEIPTS),
        )
    )
    return replied(
        {**shown, "receipts": receipts},
        200 if job.ended else 202,
        headers={"location": f"/v1/jobs/{job.id}"},
    )


async def _ended(caller: Caller, job: Job, wait: float) -> Job:
    runner = caller.service.runner
    bell = runner.bell()
    try:
        async with asyncio.timeout(wait):
            while not job.ended and not caller.service.stopping.is_set():
                # Read after the bell exists, or its ring could be missed.
                job = await job_again(caller, job)
                if not job.ended:
                    await bell.wait()
                    bell.clear()
    except TimeoutError:
        job = await job_again(caller, job)
    finally:
        runner.unplug(bell)
    return job


async def job_again(caller: Caller, job: Job) -> Job:
    """Return the present state of a job that the caller is waiting for."""
    service = caller.service
    return await service.workers.finish(lambda: service.jobs.job(caller.tenant, job.id))


def job_with_receipts(caller: Caller, job_id: str) -> tuple[Job, JobWithReceipts]:
    """Return the present state of a job, and it as JSON with its first receipts."""
    jobs = OwnJobs(caller)
    job = jobs.job(job_id)
    receipts: Any = jobs.receipts(job, after=0, limit=SHOWN_RECEIPTS)
    return job, {**jobs.as_data(job), "receipts": receipts}


def cancelled(caller: Caller, job_id: str) -> Job:
    """Stop a job after the document that is being stored; stored ones stay."""
    service = caller.service
    OwnJobs(caller).job(job_id)
    job = service.jobs.cancel(caller.tenant, job_id)
    if job.state == "cancelled" and not job.done:
        service.spool.drop(job.id)
    caller.note("job.cancel", job.state, target=job_id)
    return job


def pruned(caller: Caller, given: PruneIn) -> Receipts:
    """Retire the documents of a prefix that are not listed, and write an audit row."""
    receipts = caller.base().prune(given.prefix, frozenset(given.keep))
    facts = {"retired": len(receipts)}
    caller.note("document.prune", "done", target=given.prefix, facts=facts)
    return {"receipts": list(map(receipt_json, receipts))}


def assigned(caller: Caller, given: ReadersIn) -> Receipts:
    """Assign readers to sources, and write an audit row for each."""
    base, receipts = caller.base(), []
    for one in given.sources:
        receipts.append(assign_readers(base, one.source_uri, one.readers))
        facts = {"readers": one.readers}
        caller.note("document.readers", "done", target=one.source_uri, facts=facts)
    shown: Any = seen_receipts(caller, map(receipt_json, receipts))
    return {"receipts": shown}


def deleted(caller: Caller, document_id: str, *, with_aliases: bool) -> ReceiptJson:
    """Delete a document permanently, and write an audit row."""
    receipt = caller.base().delete(document_id, with_aliases=with_aliases)
    caller.note("document.delete", "done", target=document_id)
    return receipt_json(receipt)


def undone(caller: Caller, alias_id: str) -> ReceiptJson:
    """Make an alias a document of its own, or forget it if it is an exact copy."""
    receipt = caller.base().undo(alias_id)
    caller.note("alias.undo", "done", target=alias_id)
    return receipt_json(receipt)
