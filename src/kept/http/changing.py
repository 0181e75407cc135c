"""Changing what is stored, for the API and the pages alike: each leaves its row."""

from typing import Any

from kept.http.callers import Caller
from kept.render import receipt_json
from kept.stores.jobs import Job


def deleted(caller: Caller, document_id: str, *, with_aliases: bool) -> dict[str, Any]:
    """Delete a document for good."""
    receipt = caller.base().delete(document_id, with_aliases=with_aliases)
    caller.note("document.delete", "done", target=document_id)
    return receipt_json(receipt)


def undone(caller: Caller, alias_id: str) -> dict[str, Any]:
    """Make an alias a document of its own; an exact copy is only forgotten."""
    receipt = caller.base().undo(alias_id)
    caller.note("alias.undo", "done", target=alias_id)
    return receipt_json(receipt)


def cancelled(caller: Caller, job_id: str) -> Job:
    """Stop a job behind the document that is being stored; what is stored stays."""
    service = caller.service
    job = service.jobs.cancel(caller.tenant, job_id)
    if job.state == "cancelled" and not job.done:
        service.spool.drop(job.id)
    caller.note("job.cancel", job.state, target=job_id)
    return job
