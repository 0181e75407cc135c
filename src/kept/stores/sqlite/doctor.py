"""The doctor: compares every index and every statistic with the documents."""

from collections.abc import Iterator

import apsw
import numpy as np

from kept.errors import StoreCorruptError
from kept.stores.index_port import Indexes
from kept.stores.meta import embedder_in
from kept.stores.ports import DoctorFinding
from kept.stores.reanalysis import outdated, reanalyse, recount_states
from kept.stores.sql import Connection, each, every, only
from kept.stores.sqlite.index.vector_file import IndexTorn
from kept.stores.sqlite.store import SqliteStore
from kept.stores.statistics import differences

BATCH = 2_000


def examine(store: SqliteStore, *, repair: bool) -> list[DoctorFinding]:
    """Return everything in a store that does not fit, put right if *repair*.

    Indexes are compared only with a truth that is whole: they cannot fit another.
    """
    with store.database.reading() as connection:
        _check_file(connection, store)
        tenants = every(connection, "SELECT no, name FROM tenants ORDER BY no")
        lost = list(_orphans(connection))
        analysis = outdated(connection)
    findings = list(lost)
    if analysis is not None:
        findings.append(_analysis(store, analysis, repair=repair))
    for no, name in tenants:
        findings += _statistics(store, no, name, repair=repair)
        if not lost:
            findings += _indexes(store, no, name, repair=repair)
    return findings


def _analysis(store: SqliteStore, analysis: str, *, repair: bool) -> DoctorFinding:
    """Analyse again what another version of the analysis has stored."""
    if repair:
        reanalyse(store.database, outdated)
        rebuild(store)
    return DoctorFinding(
        what="words",
        where="kept.sqlite",
        detail=f"they were made by analysis {analysis}",
        repaired=repair,
    )


def rebuild(store: SqliteStore) -> int:
    """Delete and rebuild every index; return the number of tenants."""
    with store.database.reading() as connection:
        tenants = every(connection, "SELECT no, name FROM tenants ORDER BY no")
        for no, _ in tenants:
            store.indexes(connection, no).rebuild()
    for _, name in tenants:
        with store.shelf(name):
            continue
    return len(tenants)


def _check_file(connection: apsw.Connection, store: SqliteStore) -> None:
    problems = [row[0] for row in every(connection, "PRAGMA integrity_check(5)")]
    if problems != ["ok"]:
        msg = (
            f"{store.database.path} is damaged: {'; '.join(problems)}; "
            "restore it from a backup, it is the only copy of the documents"
        )
        raise StoreCorruptError(msg)


def _orphans(connection: apsw.Connection) -> Iterator[DoctorFinding]:
    """Yield rows that hang on nothing, or lack what hangs on them."""
    for what, sql in (
        (
            "chunks without a document",
            (
                "SELECT COUNT(*) FROM chunks c WHERE NOT EXISTS"
                " (SELECT 1 FROM documents d WHERE d.no = c.document_no)"
            ),
        ),
        (
            "chunks without a vector",
            (
                "SELECT COUNT(*) FROM chunks c WHERE NOT EXISTS"
                " (SELECT 1 FROM vectors v WHERE v.no = c.no)"
            ),
        ),
        (
            "vectors without a chunk",
            (
                "SELECT COUNT(*) FROM vectors v WHERE NOT EXISTS"
                " (SELECT 1 FROM chunks c WHERE c.no = v.no)"
            ),
        ),
        (
            "documents with a wrong number of chunks",
            (
                "SELECT COUNT(*) FROM documents d WHERE chunk_count !="
                " (SELECT COUNT(*) FROM chunks c WHERE c.document_no = d.no)"
            ),
        ),
        (
            "documents under a wrong list of readers",
            (
                "SELECT COUNT(*) FROM documents d WHERE NOT EXISTS"
                " (SELECT 1 FROM acls a WHERE a.tenant_no = d.tenant_no"
                " AND a.no = d.acl_no AND a.readers = d.readers)"
            ),
        ),
        (
            "vectors of another length",
            (
                "SELECT COUNT(*) FROM vectors WHERE length(data) != 4 *"
                " (SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'dimension')"
            ),
        ),
    ):
        (count,) = only(connection, sql)
        if count:
            advice = "; 'kept reembed' creates them again" if "vector" in what else ""
            detail = f"{count} rows{advice}"
            yield DoctorFinding(what=what, where="kept.sqlite", detail=detail)


def _statistics(
    store: SqliteStore, tenant: int, name: str, *, repair: bool
) -> Iterator[DoctorFinding]:
    """Count words, chunks and languages again, and compare."""
    with store.database.reading() as connection:
        differing = differences(connection, tenant)
    if not differing:
        return
    if repair:
        with store.database.writing() as connection:
            recount_states(connection, tenant)
    for what in differing:
        yield DoctorFinding(
            what="statistics",
            where=name,
            detail=f"{what} differ from the chunks",
            repaired=repair,
        )


def _indexes(
    store: SqliteStore, tenant: int, name: str, *, repair: bool
) -> Iterator[DoctorFinding]:
    """Compare what the indexes hold with what they should."""
    with store.shelf(name) as shelf:
        if embedder_in(shelf.connection) is None:
            return
        indexes = shelf.indexes
        try:
            wrong = list(_index_differences(shelf.connection, indexes, tenant))
        except IndexTorn as torn:
            wrong = [("index", torn.problem)]
    if wrong and repair:
        indexes.rebuild()
        with store.shelf(name):
            pass
    for what, detail in wrong:
        yield DoctorFinding(what=what, where=name, detail=detail, repaired=repair)


def _index_differences(
    connection: Connection, indexes: Indexes, tenant: int
) -> Iterator[tuple[str, str]]:
    truth = np.array(
        [
            row[0]
            for row in every(
                connection,
                "SELECT c.no FROM documents d JOIN chunks c ON c.document_no = d.no"
                " WHERE d.tenant_no = ? AND d.live ORDER BY c.no",
                (tenant,),
            )
        ],
        dtype=np.int64,
    )
    for kind, keys in (
        ("dense index", indexes.dense.keys()),
        ("keyword index", indexes.keyword.keys()),
    ):
        lacking, extra = np.setdiff1d(truth, keys), np.setdiff1d(keys, truth)
        if len(lacking) or len(extra) or len(keys) != len(truth):
            yield kind, f"{len(lacking)} chunks missing, {len(extra)} too many"
            return
    for start in range(0, len(truth), BATCH):
        part = truth[start : start + BATCH]
        rows = each(
            connection,
            "SELECT data FROM vectors WHERE no = ?",
            [(key,) for key in part.tolist()],
        )
        stored = np.frombuffer(b"".join(row[0] for row in rows), np.float32)
        if not np.array_equal(stored, indexes.indexed(part).ravel()):
            yield "dense index", "vectors differ from the truth"
            return
