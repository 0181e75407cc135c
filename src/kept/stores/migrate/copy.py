"""Copying one store into another, from wherever an earlier attempt stopped.

Each step is a transaction of the target, and what is there already is not copied
again: documents are taken in their order of arrival behind the last one that
arrived, and rows behind the last key.
"""

import io
import json
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from kept.errors import StoreError
from kept.ingest.plain_words import sketch_of
from kept.kernel.ports import Vectors
from kept.stores import queries as reading
from kept.stores.document_rows import CHUNK_COLUMNS, DOCUMENT_COLUMNS, Filed
from kept.stores.migrate.tables import JOBS, OF_TENANTS, OF_THE_STORE, TRUTHS, Table
from kept.stores.ports import ManagedStore
from kept.stores.service.jobs import ENDED
from kept.stores.sql import Connection, Row, each, every, first, only

DOCUMENTS = 50
SECRETS = ("service_secret",)
BEGIN_AGAIN = (
    "if a program wrote to it meanwhile, stop that, empty the target and migrate again"
)

Report = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Carried:
    """A document as it is carried: its rows, its vectors and whether it lives."""

    filed: Filed
    vectors: Vectors
    live: bool
    superseded_by: str | None


def copy(source: ManagedStore, target: ManagedStore, report: Report) -> None:
    """Copy everything that *target* lacks of *source*; *report* gets the progress."""
    embedder = source.embedder()
    if embedder is not None:
        target.claim(*embedder)
    for tenant in source.tenants():
        _copy_documents(source, target, tenant, report)
        for table in OF_TENANTS:
            _copy_table(source, target, table, tenant)
        if overrides := source.overrides(tenant):
            target.set_overrides(tenant, overrides)
    for table in OF_THE_STORE:
        _copy_table(source, target, table, None)
    _copy_jobs(source, target)
    _copy_secrets(source, target)


def _carried(store: ManagedStore, connection: Connection, row: Row) -> Carried:
    """Return a document by its number, life and values, with all that hangs on it."""
    no, live, superseded_by, *document = row
    chunks = every(
        connection,
        f"SELECT {', '.join(CHUNK_COLUMNS)} FROM chunks"  # noqa: S608 -- ours
        " WHERE document_no = ? ORDER BY ord",
        (no,),
    )
    truths = [name in TRUTHS for name in CHUNK_COLUMNS]
    plain = tuple(
        tuple(
            bool(value) if truth else value
            for truth, value in zip(truths, chunk, strict=True)
        )
        for chunk in chunks
    )
    vectors = store.books.first_vectors(connection, no, len(chunks))
    sketch = sketch_of(document[DOCUMENT_COLUMNS.index("text")])
    filed = Filed(tuple(document), plain, sketch)
    return Carried(filed, vectors, bool(live), superseded_by)


def numbers_by(
    connection: Connection, tenant: int, order: str, place: Row | None = None
) -> "array[int]":
    """Return the numbers of documents behind *place* in an *order* of two columns.

    All at once, at 8 bytes each: no index has such an order, so reading a page
    at a time would sort all documents for every page.
    """
    behind = "" if place is None else f" AND ({order}) > (?, ?)"
    rows = connection.execute(
        f"SELECT no FROM documents WHERE tenant_no = ?{behind} ORDER BY {order}",  # noqa: S608 -- ours
        (tenant, *(place or ())),
    )
    return array("q", (row[0] for row in rows))


def documents_of(
    store: ManagedStore, connection: Connection, tenant: int, numbers: Sequence[int]
) -> list[Carried]:
    """Return those of the documents of these *numbers* that are there, in order."""
    rows = each(
        connection,
        f"SELECT no, live, superseded_by, {', '.join(DOCUMENT_COLUMNS)}"  # noqa: S608 -- ours
        " FROM documents WHERE tenant_no = ? AND no = ?",
        [(tenant, number) for number in numbers],
    )
    return [_carried(store, connection, row) for row in rows]


def _copy_documents(
    source: ManagedStore, target: ManagedStore, tenant: str, report: Report
) -> None:
    done, place = _arrived(source, target, tenant)
    with source.database.reading(tenant) as connection:
        (total,) = only(
            connection,
            "SELECT COUNT(*) FROM documents WHERE tenant_no = ?",
            (reading.tenant_no(connection, tenant),),
        )
    report(f"copying {tenant}", done, total)
    for some in _batches(source, tenant, place):
        _store(target, tenant, some)
        done += len(some)
        report(f"copying {tenant}", done, total)


def _arrived(
    source: ManagedStore, target: ManagedStore, tenant: str
) -> tuple[int, Row | None]:
    """Return how many documents have arrived, and the last one's place of origin."""
    with target.database.reading(tenant) as connection:
        no = reading.tenant_no(connection, tenant)
        last = first(
            connection,
            "SELECT id FROM documents WHERE tenant_no = ?"
            " ORDER BY age DESC, id DESC LIMIT 1",
            (no,),
        )
        counting = "SELECT COUNT(*) FROM documents WHERE tenant_no = ?"
        (count,) = only(connection, counting, (no,))
    if last is None:
        return 0, None
    with source.database.reading(tenant) as connection:
        no = reading.tenant_no(connection, tenant)
        sql = "SELECT age, id FROM documents WHERE tenant_no = ? AND id = ?"
        place = first(connection, sql, (no, last[0]))
    if place is None:
        msg = (
            f"document {last[0]} of {tenant} has arrived in {target.where} and is gone "
            f"from {source.where} since; {BEGIN_AGAIN}"
        )
        raise StoreError(msg)
    return count, place


def _batches(
    source: ManagedStore, tenant: str, place: Row | None
) -> Iterator[list[Carried]]:
    with source.database.reading(tenant) as connection:
        no = reading.tenant_no(connection, tenant)
        numbers = numbers_by(connection, no, "age, id", place)
    for start in range(0, len(numbers), DOCUMENTS):
        with source.database.reading(tenant) as connection:
            numbered = numbers[start : start + DOCUMENTS]
            some = documents_of(source, connection, no, numbered)
        yield some


def _store(target: ManagedStore, tenant: str, some: list[Carried]) -> None:
    """Store documents as they were; one that was superseded lives for a moment."""
    books = target.books

    def write() -> None:
        with target.database.writing(tenant) as connection:
            no = books.tenant_no(connection, tenant)
            for one in some:
                document = books.file(connection, no, one.filed, one.vectors)
                if not one.live:
                    books.set_live(connection, no, document, live=False)
                    connection.execute(
                        "UPDATE documents SET superseded_by = ?"
                        " WHERE tenant_no = ? AND no = ?",
                        (one.superseded_by, no, document),
                    )

    target.database.again(write)


def _copy_table(
    source: ManagedStore, target: ManagedStore, table: Table, tenant: str | None
) -> None:
    place = _reached(source, target, table, tenant)
    while True:
        with source.database.reading(tenant) as connection:
            found = table.after(connection, _no(connection, tenant), place)
        if not found:
            return
        rows = [row for _, row in found]

        def write(rows: list[Row] = rows) -> None:
            with target.database.writing(tenant) as connection:
                no = 0 if tenant is None else target.books.tenant_no(connection, tenant)
                table.insert(connection, no, rows)

        target.database.again(write)
        place = found[-1][0]


def _reached(
    source: ManagedStore, target: ManagedStore, table: Table, tenant: str | None
) -> Row | None:
    """Return behind which row of the source the copy goes on."""
    with target.database.reading(tenant) as connection:
        no = _no(connection, tenant)
        if not table.counted:
            return table.last(connection, no)
        count = table.count(connection, no)
    with source.database.reading(tenant) as connection:
        return table.place(connection, _no(connection, tenant), count)


def _no(connection: Connection, tenant: str | None) -> int:
    return 0 if tenant is None else reading.tenant_no(connection, tenant)


def _copy_jobs(source: ManagedStore, target: ManagedStore) -> None:
    """Copy jobs with their receipts, and what unfinished ones still need."""
    _copy_table(source, target, JOBS, None)
    with source.database.reading() as connection:
        jobs = every(connection, "SELECT no, id, state, items FROM jobs ORDER BY no")
    for no, job_id, state, items in jobs:
        _copy_receipts(source, target, no, job_id)
        if state not in ENDED:
            _copy_spooled(source, target, job_id, json.loads(items))


def _copy_receipts(
    source: ManagedStore, target: ManagedStore, no: int, job_id: str
) -> None:
    with source.database.reading() as connection:
        rows = every(
            connection,
            "SELECT place, receipt FROM job_receipts WHERE job_no = ? ORDER BY place",
            (no,),
        )
    with target.database.writing() as connection:
        connection.executemany(
            "INSERT INTO job_receipts (job_no, place, receipt) VALUES"
            " ((SELECT no FROM jobs WHERE id = ?), ?, ?) ON CONFLICT DO NOTHING",
            [(job_id, *row) for row in rows],
        )


def _copy_spooled(
    source: ManagedStore, target: ManagedStore, job_id: str, items: list[dict[str, str]]
) -> None:
    """Copy the sources of a job again; those that were fetched by URL have none."""
    taken, given = source.spool(), target.spool()
    given.drop(job_id)
    for item in items:
        with suppress(FileNotFoundError, KeyError):
            data = taken.read(job_id, item["name"])
            given.save(job_id, item["name"], io.BytesIO(data))


def _copy_secrets(source: ManagedStore, target: ManagedStore) -> None:
    with source.database.reading() as connection:
        rows = [
            (key, value)
            for key, value in every(connection, "SELECT key, value FROM meta")
            if key in SECRETS
        ]
    with target.database.writing() as connection:
        connection.executemany(
            "INSERT INTO meta VALUES (?, ?)"
            " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
            rows,
        )
