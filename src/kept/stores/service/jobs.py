"""Jobs: submitted documents that are ingested in the background, across restarts."""

import json
import secrets
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from typing_extensions import TypedDict

from kept.errors import NotFoundError, StoreError
from kept.stores.documents_port import repeatable
from kept.stores.locks import Holds
from kept.stores.row_writer import as_json, now
from kept.stores.sql import Connection, Database, Row, every, first

State = Literal["queued", "running", "done", "failed", "cancelled"]
ENDED = ("done", "failed", "cancelled")
TRIED = 100
_COLUMNS = (
    "no, id, tenant, principal, key_id, state, cancel, items, done, counts, error,"
    " created_at, started_at, ended_at"
)
_GOING_ON = "state IN ('queued', 'running')"


class JobLost(StoreError):  # noqa: N818 -- a state of a job, not a failure
    """Another process does a job that this one was doing."""

    def __init__(self, job_id: str) -> None:
        super().__init__(
            f"job {job_id} was taken over by another process; this one held its name "
            "no longer, so leave the job to the other"
        )


class JobJson(TypedDict):
    """A job, without numbers that count those of other tenants."""

    job_id: str
    state: State
    sources: int
    done: int
    counts: dict[str, int]
    cancelling: bool
    error: str | None
    principal: str
    created_at: str
    started_at: str | None
    ended_at: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Some sources on their way in, and how far they have come.

    *items* say what was handed in; *done* counts receipts and *counts* counts them
    by status. A source of rows gives a receipt for each row.
    """

    no: int
    id: str
    tenant: str
    principal: str
    key_id: str
    state: State
    cancel: bool
    items: tuple[Mapping[str, Any], ...] = field(hash=False)
    done: int
    counts: Mapping[str, int] = field(hash=False)
    error: str | None
    created_at: str
    started_at: str | None
    ended_at: str | None

    @property
    def ended(self) -> bool:
        """Whether nothing more will happen."""
        return self.state in ENDED

    def as_data(self) -> JobJson:
        """Return the job as every door shows it."""
        return {
            "job_id": self.id,
            "state": self.state,
            "sources": len(self.items),
            "done": self.done,
            "counts": dict(self.counts),
            "cancelling": self.cancel and not self.ended,
            "error": self.error,
            "principal": self.principal,
            "created_at": self.created_at,
            "started_at": self.started_at,
            "ended_at": self.ended_at,
        }


class Jobs:
    """The jobs of one store, which any number of processes may do.

    A worker holds the name of the job it runs; a job that is marked as running although
    its name is free was left by a process that died.
    """

    def __init__(self, database: Database, holds: Holds) -> None:
        self.database = database
        self._holds = holds

    @repeatable
    def add(
        self,
        tenant: str,
        principal: str,
        key_id: str,
        items: Sequence[Mapping[str, Any]],
        job_id: str | None = None,
    ) -> Job:
        """Take a job; once it is returned it will be done, restarts or not."""
        job_id = job_id or new_id()
        with self.database.writing() as connection:
            connection.execute(
                "INSERT INTO jobs (id, tenant, principal, key_id, state, items,"
                " created_at) VALUES (?,?,?,?,'queued',?,?)",
                (job_id, tenant, principal, key_id, as_json(list(items)), now()),
            )
            return _named(connection, tenant, job_id)

    def job(self, tenant: str, job_id: str) -> Job:
        """Return one job of a tenant."""
        with self.database.reading() as connection:
            return _named(connection, tenant, job_id)

    def page(
        self, tenant: str, *, before: int | None, limit: int, principal: str = ""
    ) -> list[Job]:
        """Return a tenant's jobs, the newest first; with *principal*, only such."""
        with self.database.reading() as connection:
            rows = every(
                connection,
                f"SELECT {_COLUMNS} FROM jobs WHERE tenant = ?1"  # noqa: S608 -- ours
                # PostgreSQL cannot infer the type of a value that is only compared with
                # NULL.
                " AND (CAST(?2 AS BIGINT) IS NULL OR no < ?2)"
                " AND (?4 = '' OR principal = ?4) ORDER BY no DESC LIMIT ?3",
                (tenant, before, limit, principal),
            )
        return [_job(row) for row in rows]

    def receipts(self, job: Job, *, after: int, limit: int) -> list[dict[str, Any]]:
        """Return receipts of a job in the order they came."""
        with self.database.reading() as connection:
            rows = every(
                connection,
                "SELECT receipt FROM job_receipts WHERE job_no = ? AND place > ?"
                " ORDER BY place LIMIT ?",
                (job.no, after, limit),
            )
        return [json.loads(row[0]) for row in rows]

    def waiting(self, tenant: str) -> int:
        """Return how many jobs of a tenant have not ended."""
        with self.database.reading() as connection:
            row = first(
                connection,
                "SELECT COUNT(*) FROM jobs WHERE tenant = ?"
                " AND state IN ('queued', 'running')",
                (tenant,),
            )
        return int(row[0]) if row else 0

    def counts(self) -> dict[str, int]:
        """Return how many jobs there are in each state, of all tenants."""
        with self.database.reading() as connection:
            rows = every(connection, "SELECT state, COUNT(*) FROM jobs GROUP BY state")
        return dict(rows)

    @repeatable
    def cancel(self, tenant: str, job_id: str) -> Job:
        """Ask a job to stop; one that has not begun is over at once."""
        with self.database.writing() as connection:
            row = first(
                connection,
                "UPDATE jobs SET cancel = TRUE WHERE"  # noqa: S608 -- ours
                f" tenant = ? AND id = ? AND {_GOING_ON} RETURNING {_COLUMNS}",
                (tenant, job_id),
            )
            job = _job(row) if row else None
            if job is not None and job.state == "queued" and not job.done:
                connection.execute(
                    "UPDATE jobs SET state = 'cancelled', ended_at = ? WHERE no = ?",
                    (now(), job.no),
                )
            return _named(connection, tenant, job_id)

    # -- for workers

    def unfinished(self, job_id: str) -> bool:
        """Return whether a job may still need its sources; one to come may, too."""
        with self.database.reading() as connection:
            row = first(connection, "SELECT state FROM jobs WHERE id = ?", (job_id,))
        return row is None or row[0] not in ENDED

    def begin(self) -> Job | None:
        """Return the next job, now running; those of the dead first.

        Tenants take turns: the one whose last job began longest ago comes first.
        """
        with self.database.writing() as connection:
            for no, job_id in _waiting(connection):
                # A running job whose name is free belongs to a dead process; whose name
                # is held, to a live one.
                if not self._holds.take(job_id):
                    continue
                row = first(
                    connection,
                    "UPDATE jobs SET state = 'running', started_at = ?"  # noqa: S608 -- ours
                    f" WHERE no = ? AND {_GOING_ON} RETURNING {_COLUMNS}",
                    (now(), no),
                )
                if row is not None:
                    return _job(row)
                # It ended or was cancelled between the list and the update.
                self._holds.release(job_id)
        return None

    @repeatable
    def progress(self, job: Job, receipts: Sequence[Mapping[str, Any]]) -> Job:
        """Note what became of the next sources of a job that is still ours."""
        with self.database.writing() as connection:
            at = _ours(connection, job, "done = done + ?", len(receipts))
            connection.executemany(
                "INSERT INTO job_receipts VALUES (?, ?, ?)",
                [
                    (job.no, place, as_json(receipt))
                    for place, receipt in enumerate(
                        receipts, start=at.done - len(receipts) + 1
                    )
                ],
            )
            counts = Counter(at.counts) + Counter(str(r["status"]) for r in receipts)
            return _ours(connection, job, "counts = ?", as_json(counts))

    def end(self, job: Job, state: State, error: str | None = None) -> Job:
        """Note how a job ended."""
        changes = "state = ?, error = ?, ended_at = ?"
        ended = self._changed(job, changes, state, error, now())
        self._holds.release(job.id)
        return ended

    def put_back(self, job: Job, error: str | None = None) -> None:
        """Leave a job for later, with what keeps it from being done now."""
        self._changed(job, "state = 'queued', error = ?", error)
        self._holds.release(job.id)

    def lose(self, job: Job) -> None:
        """Release a job, so that the next worker takes it over."""
        self._holds.release(job.id)

    @repeatable
    def _changed(self, job: Job, changes: str, *values: object) -> Job:
        with self.database.writing() as connection:
            return _ours(connection, job, changes, *values)


def new_id() -> str:
    """Return a job id that cannot be guessed."""
    return secrets.token_hex(12)


def _waiting(connection: Connection) -> list[Row]:
    """Return the jobs that might be begun: those left running, then those queued."""
    return every(
        connection,
        "SELECT j.no, j.id FROM jobs j WHERE j.state IN ('queued', 'running')"
        " ORDER BY j.state DESC, (SELECT COALESCE(MAX(o.started_at), '') FROM jobs o"
        "  WHERE o.tenant = j.tenant), j.no LIMIT ?",
        (TRIED,),
    )


def _ours(connection: Connection, job: Job, changes: str, *values: object) -> Job:
    """Change a job that we do, unless it was taken over as that of a dead process."""
    row = first(
        connection,
        f"UPDATE jobs SET {changes} WHERE no = ? AND state = 'running'"  # noqa: S608 -- ours
        f" AND started_at = ? RETURNING {_COLUMNS}",
        (*values, job.no, job.started_at),
    )
    if row is None:
        raise JobLost(job.id)
    return _job(row)


def _named(connection: Connection, tenant: str, job_id: str) -> Job:
    row = first(
        connection,
        f"SELECT {_COLUMNS} FROM jobs WHERE tenant = ? AND id = ?",  # noqa: S608 -- ours
        (tenant, job_id),
    )
    if row is None:
        raise NotFoundError("job", job_id, "the list of jobs has those that are")
    return _job(row)


def _job(row: Row) -> Job:
    return Job(
        no=row[0],
        id=row[1],
        tenant=row[2],
        principal=row[3],
        key_id=row[4],
        state=row[5],
        cancel=bool(row[6]),
        items=tuple(json.loads(row[7])),
        done=row[8],
        counts=json.loads(row[9]),
        error=row[10],
        created_at=row[11],
        started_at=row[12],
        ended_at=row[13],
    )
