"""Listings for the service: newest first, filtered, a page at a time."""

from collections.abc import Iterable
from dataclasses import dataclass

from kept.ingest.receipts import Alias, LedgerRow, StoredDocument
from kept.stores import queries as reading
from kept.stores.pagination import Pages
from kept.stores.sql import Connection, Database, every, marks

LAST = 2**62
Place = tuple[int, str]


@dataclass(frozen=True, slots=True)
class Lists:
    """One tenant's lists as people read them, from one store."""

    database: Database
    tenant: str

    def documents(
        self, before: Place | None, limit: int, *, containing: str = ""
    ) -> list[tuple[Place, StoredDocument]]:
        """Return documents, the newest first, each with its place in the order.

        With *containing*, only those count whose title or source holds that text.
        """
        age, name = before or (LAST, "")
        with self.database.reading(self.tenant) as connection:
            rows = every(
                connection,
                "SELECT age, id FROM documents WHERE tenant_no = ?1"
                " AND live AND (lower(title) LIKE lower(?2) ESCAPE '~'"
                " OR lower(source_uri) LIKE lower(?2) ESCAPE '~')"
                " AND (age, id) < (?3, ?4) ORDER BY age DESC, id DESC LIMIT ?5",
                (self._no(connection), _anywhere(containing), age, name, limit),
            )
        pages = Pages(self.database, self.tenant)
        return [((age, name), pages.document(name)) for age, name in rows]

    def ledger(
        self, before: int | None, limit: int, *, status: str = ""
    ) -> list[LedgerRow]:
        """Return lines of the ledger, the newest first; with *status*, only those."""
        if not status:
            return Pages(self.database, self.tenant).ledger(before, limit)
        ledger = reading.ledger_of(self.database)
        with self.database.reading(self.tenant) as connection:
            no = self._no(connection)
            rows = every(
                connection,
                f"SELECT number FROM {ledger} WHERE tenant_no = ? AND status = ?"  # noqa: S608 -- ours
                " AND number < ? ORDER BY number DESC LIMIT ?",
                (no, status, LAST if before is None else before, limit),
            )
            return [
                line
                for row in rows
                for line in reading.ledger_rows(
                    connection, no, 1, row[0] + 1, ledger=ledger
                )
            ]

    def aliases_of(self, document_id: str, limit: int) -> list[Alias]:
        """Return texts that a document stands for, the oldest first."""
        with self.database.reading(self.tenant) as connection:
            no = self._no(connection)
            rows = every(
                connection,
                "SELECT a.id FROM aliases a JOIN documents d ON d.no = a.document_no"
                " WHERE a.tenant_no = ? AND d.id = ? AND a.live"
                " ORDER BY a.created_at, a.id LIMIT ?",
                (no, document_id, limit),
            )
            return [reading.alias_by_id(connection, no, row[0]) for row in rows]

    def live_aliases(self, alias_ids: Iterable[str]) -> frozenset[str]:
        """Return which of some aliases have not been undone."""
        wanted = sorted(set(alias_ids))
        if not wanted:
            return frozenset()
        with self.database.reading(self.tenant) as connection:
            rows = every(
                connection,
                "SELECT id FROM aliases WHERE tenant_no = ? AND live"  # noqa: S608 -- marks
                f" AND id IN ({marks(len(wanted))})",
                (self._no(connection), *wanted),
            )
        return frozenset(row[0] for row in rows)

    def _no(self, connection: Connection) -> int:
        return reading.tenant_no(connection, self.tenant)


def _anywhere(text: str) -> str:
    """Return the pattern of texts that hold *text*."""
    return f"%{escaped(text)}%"


def escaped(text: str) -> str:
    """Return *text* for a pattern with the escape ``~``; its signs mean themselves."""
    for sign in "~%_":
        text = text.replace(sign, f"~{sign}")
    return text
