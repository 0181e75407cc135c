"""Statistics: words, languages and tags of a tenant, counted and checked."""

import json
from collections import Counter
from dataclasses import dataclass

from kept.stores.row_writer import digest
from kept.stores.sql import Connection, Row, every, only
from kept.stores.statistics_delta import as_state
from kept.text.terms import unpacked_keys


@dataclass(frozen=True, slots=True)
class Counts:
    """What a tenant's live chunks add up to."""

    terms: Counter[int]
    languages: Counter[str]
    tags: set[tuple[str, int]]
    chunks: int
    length: int
    state: bytes


def counted(connection: Connection, tenant: int) -> Counts:
    """Count a tenant's live chunks again."""
    terms: Counter[int] = Counter()
    languages: Counter[str] = Counter()
    tags: set[tuple[str, int]] = set()
    chunks = length = state = 0
    live = "SELECT no FROM documents WHERE tenant_no = ? AND live ORDER BY no"
    for (document,) in every(connection, live, (tenant,)):
        state += digest(connection, document)
        for no, blob, size, language, tagged in every(
            connection,
            "SELECT no, terms, length, language, tags FROM chunks"
            " WHERE document_no = ?",
            (document,),
        ):
            terms.update(unpacked_keys(blob))
            languages[language] += 1
            tags.update((tag, no) for tag in json.loads(tagged))
            chunks += 1
            length += size
    return Counts(terms, languages, tags, chunks, length, as_state(state))


def differences(connection: Connection, tenant: int) -> list[str]:
    """Return which statistics of a tenant are not what its chunks add up to."""
    again = counted(connection, tenant)
    chunks, length, state = only(
        connection,
        "SELECT chunks, terms, state FROM states WHERE tenant_no = ?",
        (tenant,),
    )

    def stored(columns: str) -> list[Row]:
        sql = f"SELECT {columns} WHERE tenant_no = ?"
        return sorted(every(connection, sql, (tenant,)))

    pairs = (
        ("chunk counts", chunks, again.chunks),
        ("lengths", length, again.length),
        ("fingerprints", bytes(state), again.state),
        (
            "word counts",
            stored("key, df FROM terms"),
            sorted(again.terms.items()),
        ),
        (
            "languages",
            stored("language, chunks FROM languages"),
            sorted(again.languages.items()),
        ),
        ("tags", stored("tag, no FROM chunk_tags"), sorted(again.tags)),
    )
    return [name for name, found, expected in pairs if found != expected]


def recount(connection: Connection, tenant: int) -> Counts:
    """Rewrite the statistics of a tenant, all but its state, which is returned."""
    again = counted(connection, tenant)
    for table, columns, rows in (
        ("terms", "key, df", sorted(again.terms.items())),
        ("languages", "language, chunks", sorted(again.languages.items())),
        ("chunk_tags", "tag, no", sorted(again.tags)),
    ):
        connection.execute(
            f"DELETE FROM {table} WHERE tenant_no = ?",  # noqa: S608 -- ours
            (tenant,),
        )
        connection.executemany(
            f"INSERT INTO {table} (tenant_no, {columns}) VALUES (?, ?, ?)",  # noqa: S608 -- ours
            [(tenant, *row) for row in rows],
        )
    return again
