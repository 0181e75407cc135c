"""The doctor on PostgreSQL: holds every count and every derived row against the truth.

The server looks after its own indexes, and foreign keys see to it that nothing hangs
in the air, so what is examined is what we derive: postings, statistics, the marks of
live vectors, and what filters look at.
"""

import heapq
import json
from collections.abc import Callable, Iterator
from itertools import groupby
from typing import Any

from kept.stores.meta import meta_of
from kept.stores.ports import DoctorFinding
from kept.stores.postgres.connection import PostgresDatabase
from kept.stores.postgres.dialect import PostgresConnection
from kept.stores.postgres.documents import change_postings, note_facts
from kept.stores.postgres.metadata_rows import facts_of
from kept.stores.postgres.tenant_scope import each_tenant
from kept.stores.reanalysis import analysed_again, mark_analysed, outdated
from kept.stores.sql import Connection, every, only
from kept.stores.statistics import differences, recount
from kept.text.terms import postings_of

BATCH = 500
STREAMED = 10_000
BOTH = 2

Posting = tuple[int, int, int, int, int]


def examine(
    database: PostgresDatabase, vector: str, *, repair: bool
) -> list[DoctorFinding]:
    """Return everything that does not fit, put right if *repair*."""
    findings: list[DoctorFinding] = []
    with database.reading() as connection:
        analysis = outdated(connection)
    if analysis is not None:
        findings.append(_analysis(database, analysis, repair=repair))
    with database.reading() as connection:
        tenants = [name for _, name in each_tenant(connection)]
    for name in tenants:
        findings += _of_tenant(database, vector, name, repair=repair)
    return findings


def rebuild(database: PostgresDatabase) -> int:
    """Rewrite everything that is derived; return the number of tenants."""
    with database.reading() as connection:
        tenants = [name for _, name in each_tenant(connection)]
    for name in tenants:
        _rebuilt(database, name)
    return len(tenants)


def _analysis(
    database: PostgresDatabase, analysis: str, *, repair: bool
) -> DoctorFinding:
    """Analyse again what another version of the analysis has stored."""
    if repair:
        reanalyse(database, outdated)
    return DoctorFinding(
        what="words",
        where=database.where,
        detail=f"they were made by analysis {analysis}",
        repaired=repair,
    )


def reanalyse(
    database: PostgresDatabase, which: Callable[[Connection], str | None]
) -> bool:
    """Make the terms of every chunk again, if *which* finds that they need it."""
    with database.reading() as connection:
        if which(connection) is None:
            return False
    with database.writing() as connection:
        connection.execute("LOCK TABLE states IN EXCLUSIVE MODE")
        # Another node may have done it while this one waited for the lock.
        if which(connection) is None:
            return False
        for no, _ in each_tenant(connection):
            analysed_again(connection)
            _derive(connection, no)
        mark_analysed(connection)
    return True


def _of_tenant(
    database: PostgresDatabase, vector: str, name: str, *, repair: bool
) -> Iterator[DoctorFinding]:
    with database.reading(name) as connection:
        (no,) = only(connection, "SELECT kept.current_tenant()")
        lost = list(_lost(connection, vector))
        derived = [
            ("statistics", f"{what} differ from the chunks")
            for what in differences(connection, no)
        ]
        derived += _underived(connection)
    for what, detail in lost:
        yield DoctorFinding(what=what, where=name, detail=detail)
    if derived and repair:
        _rebuilt(database, name)
    for what, detail in derived:
        yield DoctorFinding(what=what, where=name, detail=detail, repaired=repair)


def _lost(connection: PostgresConnection, vector: str) -> Iterator[tuple[str, str]]:
    """Yield what lacks something that cannot be derived."""
    meta = meta_of(connection)
    epoch, dimension = int(meta.get("epoch", 0)), int(meta.get("dimension", 0))
    for what, sql, values in (
        (
            "chunks without a vector",
            (
                "SELECT count(*) FROM chunks c WHERE NOT EXISTS"
                " (SELECT 1 FROM vectors v WHERE v.no = c.no AND v.epoch = ?)"
            ),
            (epoch,),
        ),
        (
            "documents with a wrong number of chunks",
            (
                "SELECT count(*) FROM documents d WHERE chunk_count <>"
                " (SELECT count(*) FROM chunks c WHERE c.document_no = d.no)"
            ),
            (),
        ),
        (
            "documents under a wrong list of readers",
            (
                "SELECT count(*) FROM documents d WHERE NOT EXISTS"
                " (SELECT 1 FROM acls a"
                " WHERE a.no = d.acl_no AND a.readers = d.readers)"
                " OR EXISTS (SELECT 1 FROM chunks c LEFT JOIN vectors v ON v.no = c.no"
                " WHERE c.document_no = d.no AND (c.acl_no <> d.acl_no"
                " OR v.acl_no <> d.acl_no))"
            ),
            (),
        ),
        (
            "vectors of another length",
            (
                "SELECT count(*) FROM vectors WHERE epoch = ?"  # noqa: S608 -- quoted
                f" AND {vector}.vector_dims(embedding) <> ?"
            ),
            (epoch, dimension),
        ),
    ):
        (count,) = only(connection, sql, values)
        if count:
            advice = "; 'kept reembed' creates them again" if "vector" in what else ""
            yield what, f"{count} rows{advice}"


def _underived(connection: PostgresConnection) -> list[tuple[str, str]]:
    """Return what is derived from the rows and does not follow from them."""
    (marks,) = only(
        connection,
        "SELECT count(*) FROM vectors v JOIN chunks c ON c.no = v.no"
        " JOIN documents d ON d.no = c.document_no WHERE v.live <> d.live",
    )
    counts = (
        ("vectors", "are live or not, unlike their document", marks),
        ("keyword index", "differ from the documents", _wrong_postings(connection)),
        ("filters", "differ from the documents", _wrong_facts(connection)),
    )
    return [(what, f"{count} rows {how}") for what, how, count in counts if count]


def _live_chunks(
    connection: PostgresConnection,
) -> Iterator[list[tuple[int, bytes, int, int]]]:
    after = -1
    while rows := every(
        connection,
        "SELECT c.no, c.terms, c.length, d.acl_no FROM chunks c JOIN documents d"
        " ON d.no = c.document_no WHERE d.live AND c.no > ? ORDER BY c.no LIMIT ?",
        (after, BATCH),
    ):
        after = rows[-1][0]
        yield [(no, terms, length, acl) for no, terms, length, acl in rows]


def _wrong_postings(connection: PostgresConnection) -> int:
    """Count postings that chunks lack, and those that no live chunk has.

    Both are read in order, so that no more than a batch of each is held.
    """
    together = heapq.merge(_postings(connection), _stored_postings(connection))
    return sum(len(list(same)) != BOTH for _, same in groupby(together))


def _postings(connection: PostgresConnection) -> Iterator[Posting]:
    for rows in _live_chunks(connection):
        terms, places, counts = postings_of([row[1] for row in rows])
        yield from sorted(
            (rows[place][0], term, count, *rows[place][2:])
            for term, place, count in zip(
                terms.tolist(), places.tolist(), counts.tolist(), strict=True
            )
        )


def _stored_postings(connection: PostgresConnection) -> Iterator[Posting]:
    with connection.raw.cursor(name="postings") as cursor:
        cursor.itersize = STREAMED
        cursor.execute(
            "SELECT no, key, count, length, acl_no FROM postings ORDER BY no, key"
        )
        yield from ((row[0], row[1], row[2], row[3], row[4]) for row in cursor)


def _wrong_facts(connection: PostgresConnection) -> int:
    """Count facts that documents lack, and those that no document has."""
    wrong = 0
    for rows in _all_metadata(connection):
        derived = {
            (no, fact.key, fact.atom, fact.shown)
            for no, metadata in rows
            for fact in facts_of(metadata)
        }
        stored = every(
            connection,
            "SELECT document_no, key, atom, shown FROM facts"
            " WHERE document_no BETWEEN ? AND ?",
            (rows[0][0], rows[-1][0]),
        )
        wrong += len(derived ^ set(stored))
    return wrong


def _all_metadata(connection: PostgresConnection) -> Iterator[list[tuple[int, Any]]]:
    """Yield the documents' numbers and metadata, some at a time."""
    after = -1
    while rows := every(
        connection,
        "SELECT no, metadata FROM documents WHERE no > ? ORDER BY no LIMIT ?",
        (after, BATCH),
    ):
        after = rows[-1][0]
        yield [(no, json.loads(metadata)) for no, metadata in rows]


def _rebuilt(database: PostgresDatabase, name: str) -> None:
    with database.writing(name) as connection:
        (no,) = only(connection, "SELECT tenant_no FROM states FOR NO KEY UPDATE")
        _derive(connection, no)


def _derive(connection: PostgresConnection, tenant: int) -> None:
    """Rewrite everything of a tenant that follows from its documents."""
    connection.execute("DELETE FROM postings WHERE tenant_no = ?", (tenant,))
    for rows in _live_chunks(connection):
        for acl in sorted({row[3] for row in rows}):
            some = [row for row in rows if row[3] == acl]
            change_postings(connection, tenant, acl, some, live=True)
    connection.execute("DELETE FROM facts WHERE tenant_no = ?", (tenant,))
    for known in _all_metadata(connection):
        for no, metadata in known:
            note_facts(connection, tenant, no, metadata)
    connection.execute(
        "UPDATE vectors v SET live = d.live FROM chunks c JOIN documents d"
        " ON d.no = c.document_no WHERE c.no = v.no AND v.live <> d.live"
    )
    totals = recount(connection, tenant)
    connection.execute(
        "UPDATE states SET chunks = ?, terms = ?, state = ? WHERE tenant_no = ?",
        (*totals, tenant),
    )
