"""Pagination: a few rows at a time, from where the last page ended."""

from collections.abc import Iterable
from dataclasses import dataclass

from kept.ingest.receipts import Alias, LedgerRow, StoredDocument
from kept.kernel.model import Chunk
from kept.search.recorded import Recorded
from kept.stores import queries as reading
from kept.stores.query_records import earlier_queries
from kept.stores.row_writer import find
from kept.stores.sql import Connection, Database, every, marks, only
from kept.text.access import acl_readers

FEW = 500


@dataclass(frozen=True, slots=True)
class Pages:
    """One tenant's lists, read from one store."""

    database: Database
    tenant: str

    def documents(
        self, after: tuple[int, str] | None, limit: int, *, all_versions: bool = False
    ) -> list[tuple[tuple[int, str], StoredDocument]]:
        """Return documents, oldest first, each with its place in the order."""
        age, name = after or (-1, "")
        with self.database.reading(self.tenant) as connection:
            rows = every(
                connection,
                "SELECT no, age FROM documents WHERE tenant_no = ?1"
                " AND (live OR ?2) AND (age, id) > (?3, ?4)"
                " ORDER BY age, id LIMIT ?5",
                (self._no(connection), all_versions, age, name, limit),
            )
            found = [(age, _stored(connection, no)) for no, age in rows]
        return [((age, one.document.id), one) for age, one in found]

    def place(self, document_id: str) -> tuple[int, str]:
        """Return a document's place in the order, for the page after it."""
        with self.database.reading(self.tenant) as connection:
            no = find(connection, self._no(connection), document_id)
            row = only(connection, "SELECT age FROM documents WHERE no = ?", (no,))
            return row[0], document_id

    def summary(self) -> tuple[int, str]:
        """Return how many documents there are, and when the oldest was stored."""
        with self.database.reading(self.tenant) as connection:
            row = only(
                connection,
                "SELECT COUNT(*), COALESCE(MIN(created_at), '') FROM documents"
                " WHERE tenant_no = ?1 AND live",
                (self._no(connection),),
            )
            return row[0], row[1]

    def document(self, document_id: str) -> StoredDocument:
        """Return one document with what is known of its life."""
        with self.database.reading(self.tenant) as connection:
            no = find(connection, self._no(connection), document_id)
            return _stored(connection, no)

    def chunks(self, document_id: str, after: int | None, limit: int) -> list[Chunk]:
        """Return chunks of a document in order."""
        with self.database.reading(self.tenant) as connection:
            no = find(connection, self._no(connection), document_id)
            document = reading.document_by_no(connection, no)
            place = -1 if after is None else after
            return reading.chunks_of(connection, document, no, place, limit)

    def aliases(self, after: tuple[str, str] | None, limit: int) -> list[Alias]:
        """Return the texts that were reused, the oldest first."""
        with self.database.reading(self.tenant) as connection:
            no = self._no(connection)
            return reading.aliases(connection, no, after or ("", ""), limit)

    def titles(self, document_ids: Iterable[str]) -> dict[str, str]:
        """Return what documents are called, those that are still here."""
        wanted = sorted(set(document_ids))
        with self.database.reading(self.tenant) as connection:
            no = self._no(connection)
            rows = [
                row
                for start in range(0, len(wanted), FEW)
                for row in every(
                    connection,
                    "SELECT id, title, source_uri FROM documents"  # noqa: S608 -- marks
                    " WHERE tenant_no = ?"
                    f" AND id IN ({marks(len(wanted[start : start + FEW]))})",
                    (no, *wanted[start : start + FEW]),
                )
            ]
        return {row[0]: row[1] or row[2] for row in rows}

    def ledger(self, before: int | None, limit: int) -> list[LedgerRow]:
        """Return lines of the ledger, the newest first."""
        with self.database.reading(self.tenant) as connection:
            ledger, no = reading.ledger_of(self.database), self._no(connection)
            rows = reading.ledger_rows(connection, no, limit, before, ledger=ledger)
        return rows[::-1]

    def traces(self, before: int | None, limit: int) -> list[Recorded]:
        """Return recorded queries, the newest first."""
        return earlier_queries(self.database, self.tenant, before, limit)

    def _no(self, connection: Connection) -> int:
        return reading.tenant_no(connection, self.tenant)


def _stored(connection: Connection, no: int) -> StoredDocument:
    row = only(
        connection,
        "SELECT d.live, d.language, length(d.text), d.chars_left_out,"
        " d.superseded_by, d.created_at,"
        " (SELECT COUNT(*) FROM aliases a WHERE a.document_no = d.no AND a.live),"
        " d.readers FROM documents d WHERE d.no = ?",
        (no,),
    )
    return StoredDocument(
        document=reading.document_by_no(connection, no),
        live=bool(row[0]),
        language=row[1],
        chars=row[2],
        chars_left_out=row[3],
        superseded_by=row[4],
        created_at=row[5],
        aliases=row[6],
        readers=acl_readers(row[7]),
    )
