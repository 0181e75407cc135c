"""Statistics: words, languages and tags of a tenant, counted and checked."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from kept.stores.row_writer import digest
from kept.stores.sql import Connection, Row, every, marks, only
from kept.stores.statistics_delta import as_state
from kept.text.terms import unpacked_keys


@dataclass
class AclCounts:
    """What the live chunks of one list of readers add up to."""

    terms: Counter[int] = field(default_factory=Counter)
    languages: Counter[str] = field(default_factory=Counter)
    chunks: int = 0
    length: int = 0
    state: int = 0


@dataclass(frozen=True, slots=True)
class Counts:
    """What a tenant's live chunks add up to, by the number of their readers' list."""

    acls: dict[int, AclCounts]
    tags: set[tuple[str, int]]

    @property
    def totals(self) -> tuple[int, int, bytes]:
        """The chunks, their length and the state of the tenant as a whole."""
        every_acl = self.acls.values()
        return (
            sum(one.chunks for one in every_acl),
            sum(one.length for one in every_acl),
            as_state(sum(one.state for one in every_acl)),
        )

    def rows_of(self) -> list[tuple[str, str, list[Row]]]:
        """Return the rows of each table that holds them: its name, columns and rows."""
        terms = [
            (key, no, df)
            for no, one in self.acls.items()
            for key, df in one.terms.items()
        ]
        languages = [
            (name, no, chunks)
            for no, one in self.acls.items()
            for name, chunks in one.languages.items()
        ]
        return [
            ("terms", "key, acl_no, df", sorted(terms)),
            ("languages", "language, acl_no, chunks", sorted(languages)),
            ("chunk_tags", "tag, no", sorted(self.tags)),
        ]

    @property
    def states(self) -> list[tuple[int, int, int, bytes]]:
        """The number of each list, its chunks, their length and its state."""
        return [
            (no, one.chunks, one.length, as_state(one.state))
            for no, one in sorted(self.acls.items())
        ]


def counted(connection: Connection, tenant: int) -> Counts:
    """Count a tenant's live chunks again."""
    lists = every(connection, "SELECT no FROM acls WHERE tenant_no = ?", (tenant,))
    counts = Counts({no: AclCounts() for (no,) in lists}, set())
    live = "SELECT no, acl_no FROM documents WHERE tenant_no = ? AND live ORDER BY no"
    for document, acl in every(connection, live, (tenant,)):
        one = counts.acls.setdefault(acl, AclCounts())
        one.state += digest(connection, document)
        for no, blob, size, language, tagged in every(
            connection,
            "SELECT no, terms, length, language, tags FROM chunks"
            " WHERE document_no = ?",
            (document,),
        ):
            one.terms.update(unpacked_keys(blob))
            one.languages[language] += 1
            one.chunks += 1
            one.length += size
            counts.tags.update((tag, no) for tag in json.loads(tagged))
    return counts


_CALLED = {"terms": "word counts"}


def differences(connection: Connection, tenant: int) -> list[str]:
    """Return which statistics of a tenant are not what its chunks add up to."""
    again = counted(connection, tenant)
    chunks, length, state = only(
        connection,
        "SELECT chunks, terms, state FROM states WHERE tenant_no = ?",
        (tenant,),
    )

    def stored(columns: str, table: str) -> list[Row]:
        sql = f"SELECT {columns} FROM {table} WHERE tenant_no = ?"  # noqa: S608 -- ours
        return sorted(tuple(_plain(row)) for row in every(connection, sql, (tenant,)))

    totals = again.totals
    pairs: list[tuple[str, object, object]] = [
        ("chunk counts", chunks, totals[0]),
        ("lengths", length, totals[1]),
        ("fingerprints", bytes(state), totals[2]),
        ("sums by readers", stored("no, chunks, terms, state", "acls"), again.states),
    ]
    for table, columns, rows in again.rows_of():
        name = _CALLED.get(table, table.removeprefix("chunk_"))
        pairs.append((name, stored(columns, table), rows))
    return [name for name, found, expected in pairs if found != expected]


def _plain(row: Row) -> Iterator[object]:
    return (bytes(one) if isinstance(one, memoryview) else one for one in row)


def recount(connection: Connection, tenant: int) -> tuple[int, int, bytes]:
    """Rewrite the statistics of a tenant; return its totals, which are not."""
    again = counted(connection, tenant)
    for table, columns, rows in again.rows_of():
        connection.execute(
            f"DELETE FROM {table} WHERE tenant_no = ?",  # noqa: S608 -- ours
            (tenant,),
        )
        marked = marks(len(columns.split(",")))
        connection.executemany(
            f"INSERT INTO {table} (tenant_no, {columns}) VALUES (?, {marked})",  # noqa: S608 -- ours
            [(tenant, *row) for row in rows],
        )
    connection.executemany(
        "UPDATE acls SET chunks = ?, terms = ?, state = ?"
        " WHERE tenant_no = ? AND no = ?",
        [(*sums, tenant, no) for no, *sums in again.states],
    )
    return again.totals
