"""Re-analysis: stored terms are recomputed when the text analysis has changed."""

from kept.ingest.cutting import titled
from kept.stores.meta import meta_of
from kept.stores.sql import Connection, Database, every
from kept.text.terms import packed
from kept.text.tokens import analyse, analysis_id

BATCH = 1_000


def outdated(connection: Connection) -> str | None:
    """Return the analysis that the words were made by, if it is not ours."""
    found = meta_of(connection).get("analysis")
    return found if found is not None and found != analysis_id() else None


def reanalyse(database: Database) -> int:
    """Analyse every chunk again, and return how many there were.

    All of it happens, or none: a search never meets words of two kinds.
    """
    with database.writing() as connection:
        done = analysed_again(connection)
        mark_analysed(connection)
    return done


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
    terms = analyse(titled(title, text), language or None)
    return packed(terms), len(terms), no
