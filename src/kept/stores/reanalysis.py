"""Re-analysis: the terms of stored chunks, made again by a newer analysis."""

from collections.abc import Callable

from kept.ingest.cutting import titled
from kept.stores.meta import begin_epoch, meta_of
from kept.stores.sql import Connection, Database, every
from kept.stores.statistics import recount
from kept.text.terms import packed
from kept.text.tokens import analysis_id, index_terms, made_by_older_analysis

BATCH = 1_000


def outdated(connection: Connection) -> str | None:
    """Return the analysis that the words were made by, if it is not ours."""
    found = meta_of(connection).get("analysis")
    return found if found is not None and found != analysis_id() else None


def older(connection: Connection) -> str | None:
    """Return the analysis that the words were made by, if it is older than ours."""
    found = outdated(connection)
    return found if found is not None and made_by_older_analysis(found) else None


def reanalyse(database: Database, which: Callable[[Connection], str | None]) -> bool:
    """Make the terms of every chunk again, if *which* finds that they need it.

    All of it happens in one transaction, so a search never meets terms of two kinds.
    The keyword index cannot see that terms changed, as no document did: a new epoch
    makes every process build its indexes again.
    """
    with database.reading() as connection:
        if which(connection) is None:
            return False
    with database.writing() as connection:
        # Another process may have done it while this one waited.
        if which(connection) is None:
            return False
        analysed_again(connection)
        for (tenant,) in every(connection, "SELECT no FROM tenants"):
            recount_states(connection, tenant)
        mark_analysed(connection)
        begin_epoch(connection)
    return True


def recount_states(connection: Connection, tenant: int) -> None:
    """Write the statistics of a tenant in an embedded store again."""
    totals = recount(connection, tenant)
    connection.execute(
        "UPDATE tenants SET chunks = ?, terms = ?, state = ? WHERE no = ?",
        (*totals, tenant),
    )


def analysed_again(connection: Connection) -> int:
    """Analyse every chunk that a transaction sees again."""
    done, after = 0, -1
    while rows := every(
        connection,
        "SELECT c.no, d.title, c.text, c.language FROM chunks c"
        " JOIN documents d ON d.no = c.document_no"
        " WHERE c.no > ? ORDER BY c.no LIMIT ?",
        (after, BATCH),
    ):
        connection.executemany(
            "UPDATE chunks SET terms = ?, length = ? WHERE no = ?",
            [_analysed(*row) for row in rows],
        )
        after, done = rows[-1][0], done + len(rows)
    return done


def mark_analysed(connection: Connection) -> None:
    """Note that all words are made by our analysis."""
    connection.execute(
        "INSERT INTO meta VALUES ('analysis', ?)"
        " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        (analysis_id(),),
    )


def _analysed(no: int, title: str, text: str, language: str) -> tuple[bytes, int, int]:
    terms = index_terms(titled(title, text), language or None)
    return packed(terms), len(terms), no
