"""Jobs and receipts, as far as a caller may see them.

Where documents have readers, one sees one's own jobs, and of texts that one submitted
for others to read no more than that they were taken: a receipt that says what they
repeat would answer whether somebody has them already.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kept.doors.http.callers import Caller
from kept.errors import NotFoundError
from kept.stores.service.jobs import Job, JobJson

TAKEN, FAILED = "created", "failed"
HIDDEN = ("document_id", "canonical_id", "alias_id", "rule", "similarity", "supersedes")


@dataclass(frozen=True, slots=True)
class OwnJobs:
    """The jobs that a caller may see."""

    caller: Caller

    def job(self, job_id: str) -> Job:
        """Return one job, or raise as if others' did not exist."""
        caller = self.caller
        job = caller.service.jobs.job(caller.tenant, job_id)
        if caller.restricted and job.principal != caller.principal:
            raise NotFoundError("job", job_id, "the list of jobs has those that are")
        return job

    def page(self, after: str | None, limit: int) -> list[Job]:
        """Return jobs, the newest first, that are older than the job *after*."""
        caller = self.caller
        before = self.job(after).no if after else None
        mine = caller.principal if caller.restricted else ""
        jobs = caller.service.jobs
        return jobs.page(caller.tenant, before=before, limit=limit, principal=mine)

    def receipts(self, job: Job, *, after: int, limit: int) -> list[dict[str, Any]]:
        """Return receipts of a job in the order they came."""
        rows = self.caller.service.jobs.receipts(job, after=after, limit=limit)
        return seen_receipts(self.caller, rows)

    def as_data(self, job: Job) -> JobJson:
        """Return a job as JSON."""
        shown = job.as_data()
        if self.caller.restricted:
            failed = shown["counts"].get(FAILED, 0)
            taken = sum(shown["counts"].values()) - failed
            counts = {TAKEN: taken, FAILED: failed}
            shown["counts"] = {name: count for name, count in counts.items() if count}
        return shown


def seen_receipts(
    caller: Caller, receipts: Iterable[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Return receipts with what a caller may know of them."""
    rows = [dict(one) for one in receipts]
    if not caller.restricted:
        return rows
    named = (row[name] for row in rows for name in ("document_id", "supersedes"))
    readable = caller.pages.titles(name for name in named if name)
    return [_seen(row, readable) for row in rows]


def _seen(row: dict[str, Any], readable: Mapping[str, str]) -> dict[str, Any]:
    if row["document_id"] in readable:
        before = row["supersedes"]
        return {**row, "supersedes": before if before in readable else None}
    status = row["status"] if row["status"] == FAILED else TAKEN
    return {**row, **dict.fromkeys(HIDDEN), "status": status, "evidence": {}}
