"""Everything that a store on this disk holds to be true, row by row."""

import sqlite3
from pathlib import Path

from kept.stores.sqlite.store import FILE

CLOCKS = {"at", "created_at"}
TABLES = (
    *("documents", "chunks", "vectors", "terms", "languages", "chunk_tags"),
    *("changes", "aliases", "sources", "ledger", "tenants", "similarities"),
)


def rows_of(store: Path) -> dict[str, list[tuple[object, ...]]]:
    """Return every row, but for the hour at which it was written."""
    found = {}
    with sqlite3.connect(store / FILE) as connection:
        for table in TABLES:
            cursor = connection.execute(f"SELECT * FROM {table} ORDER BY 1, 2")  # noqa: S608 -- ours
            names = [column[0] for column in cursor.description]
            kept = [place for place, name in enumerate(names) if name not in CLOCKS]
            found[table] = [tuple(row[place] for place in kept) for row in cursor]
    connection.close()
    return found
