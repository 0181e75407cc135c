"""Tables that every kind of store has, and their rows in one form.

A row is the same tuple whichever database it comes from, so that it can be carried
to another and held against what arrived there.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kept.stores.sql import Connection, Row, every, first, marks, only

BATCH = 500
TRUTHS = frozenset({"live", "accepted", "excerpt", "cancel"})


@dataclass(frozen=True, slots=True)
class Table:
    """A table by its *columns*, in the order of its *key*.

    Rows of a tenant's table have the tenant's number beside their columns. A row
    that hangs on a document begins with the document's id, since its number belongs
    to the database. A *counted* table has a key that each database counts by itself.
    """

    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]
    of_tenant: bool = True
    on_document: bool = False
    counted: bool = False

    def after(
        self, connection: Connection, tenant: int, place: Sequence[object] | None
    ) -> list[tuple[Row, Row]]:
        """Return the next rows behind *place*, each with its place."""
        chosen = [f"t.{name}" for name in (*self.key, *self.columns)]
        chosen[len(self.key) :] = [*self._document(), *chosen[len(self.key) :]]
        clauses = ["t.tenant_no = ?"] if self.of_tenant else []
        values: list[object] = [tenant] if self.of_tenant else []
        order = ", ".join(f"t.{name}" for name in self.key)
        if place is not None:
            clauses.append(f"({order}) > ({marks(len(self.key))})")
            values += place
        rows = every(
            connection,
            f"SELECT {', '.join(chosen)} FROM {self.name} t{self._joined()}"  # noqa: S608 -- ours
            f"{' WHERE ' if clauses else ''}{' AND '.join(clauses)}"
            f" ORDER BY {order} LIMIT {BATCH}",
            values,
        )
        size = len(self.key)
        return [(row[:size], self._plain(row[size:])) for row in rows]

    def rows(self, connection: Connection, tenant: int) -> Iterator[Row]:
        """Yield every row in order."""
        place: Row | None = None
        while found := self.after(connection, tenant, place):
            yield from (row for _, row in found)
            place = found[-1][0]

    def count(self, connection: Connection, tenant: int) -> int:
        """Return how many rows there are."""
        where, values = self._own(tenant)
        sql = f"SELECT COUNT(*) FROM {self.name}{where}"  # noqa: S608 -- ours
        return int(only(connection, sql, values)[0])

    def last(self, connection: Connection, tenant: int) -> Row | None:
        """Return the place of the last row, if there is one."""
        return self._place(connection, tenant, "DESC", 0)

    def place(self, connection: Connection, tenant: int, count: int) -> Row | None:
        """Return the place of the row that *count* rows end with."""
        return self._place(connection, tenant, "ASC", count - 1) if count else None

    def _place(
        self, connection: Connection, tenant: int, way: str, skipped: int
    ) -> Row | None:
        where, values = self._own(tenant)
        order = ", ".join(f"{name} {way}" for name in self.key)
        return first(
            connection,
            f"SELECT {', '.join(self.key)} FROM {self.name}{where}"  # noqa: S608 -- ours
            f" ORDER BY {order} LIMIT 1 OFFSET {skipped}",
            values,
        )

    def insert(self, connection: Connection, tenant: int, rows: Sequence[Row]) -> None:
        """Add rows, leaving those alone that are there."""
        names = [*self.columns]
        given = ["?"] * len(names)
        lead: tuple[object, ...] = ()
        if self.on_document:
            names.insert(0, "document_no")
            found = "(SELECT no FROM documents WHERE tenant_no = ? AND id = ?)"
            given.insert(0, found)
            lead = (tenant,)
        if self.of_tenant:
            names.insert(0, "tenant_no")
            given.insert(0, "?")
            lead = (tenant, *lead)
        connection.executemany(
            f"INSERT INTO {self.name} ({', '.join(names)})"  # noqa: S608 -- ours
            f" VALUES ({', '.join(given)}) ON CONFLICT DO NOTHING",
            [(*lead, *row) for row in rows],
        )

    def _own(self, tenant: int) -> tuple[str, tuple[int, ...]]:
        return (" WHERE tenant_no = ?", (tenant,)) if self.of_tenant else ("", ())

    def _document(self) -> list[str]:
        return ["d.id"] if self.on_document else []

    def _joined(self) -> str:
        if not self.on_document:
            return ""
        return " JOIN documents d ON d.no = t.document_no AND d.tenant_no = t.tenant_no"

    def _plain(self, row: Row) -> Row:
        names = (*self._document(), *self.columns)
        return tuple(
            bool(value) if name in TRUTHS and value is not None else value
            for name, value in zip(names, row, strict=True)
        )


OF_TENANTS = (
    Table(
        "aliases",
        (
            *("id", "type", "title", "source_uri", "sha256", "text", "draft"),
            *("rule", "similarity", "evidence", "live", "created_at"),
        ),
        ("id",),
        on_document=True,
    ),
    Table(
        "sources",
        ("uri", "raw_sha256", "alias_id", "readers"),
        ("uri",),
        on_document=True,
    ),
    Table(
        "ledger",
        (
            *("number", "at", "status", "document_id", "alias_id", "source_uri"),
            *("rule", "similarity", "chunks", "chars", "chars_left_out"),
            *("evidence", "error"),
        ),
        ("number",),
    ),
    Table("similarities", ("rule", "similarity", "accepted"), ("no",), counted=True),
    Table(
        "queries",
        (
            *("number", "id", "at", "preset", "question", "question_sha256"),
            *("request", "knowledge_base", "configuration", "code"),
            *("result_sha256", "result", "path", "asker"),
        ),
        ("number",),
    ),
)
OF_THE_STORE = (
    Table(
        "access_keys",
        (
            *("id", "tenant", "principal", "role", "digest", "rate", "groups"),
            *("created_at", "revoked_at"),
        ),
        ("id",),
        of_tenant=False,
    ),
    Table(
        "browser_sessions",
        ("digest", "key_id", "expires"),
        ("digest",),
        of_tenant=False,
    ),
    Table("tenant_policies", ("tenant", "policy"), ("tenant",), of_tenant=False),
    Table(
        "audit",
        (
            *("tenant", "no", "at", "principal", "key_id", "role", "action"),
            *("outcome", "target", "question", "question_sha256", "facts"),
        ),
        ("tenant", "no"),
        of_tenant=False,
    ),
    Table(
        "idempotency",
        (
            *("tenant", "key_id", "key", "request", "run", "status", "headers"),
            *("body", "at"),
        ),
        ("tenant", "key_id", "key"),
        of_tenant=False,
    ),
)
JOBS = Table(
    "jobs",
    (
        *("id", "tenant", "principal", "key_id", "state", "cancel", "items"),
        *("done", "counts", "error", "created_at", "started_at", "ended_at"),
    ),
    ("no",),
    of_tenant=False,
    counted=True,
)
