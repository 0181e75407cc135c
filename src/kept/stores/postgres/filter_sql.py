"""Filters as SQL: the chunks that a search may read, by one statement."""

import json
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from kept.kernel.filters import Condition, Filters, options_of, within
from kept.stores.filter_sql import Clause, composed, joined
from kept.stores.postgres.dialect import PostgresConnection
from kept.stores.postgres.metadata_rows import atom_of, key_of
from kept.stores.postgres.values import numbers

_ALLOWED = (
    "SELECT c.no FROM kept.documents d JOIN kept.chunks c"
    " ON c.tenant_no = d.tenant_no AND c.document_no = d.no WHERE "
)
_TAGGED = (
    "EXISTS (SELECT 1 FROM kept.chunk_tags g WHERE g.tenant_no = d.tenant_no"
    " AND g.no = c.no AND g.tag = ANY(%s))"
)
_LIVE = "d.tenant_no = %s AND d.live"
_FACT = (
    "EXISTS (SELECT 1 FROM kept.facts f WHERE f.tenant_no = d.tenant_no"
    " AND f.document_no = d.no AND "
)
_HAVING = (
    f"SELECT d.no, d.metadata FROM kept.documents d WHERE {_LIVE}"  # noqa: S608 -- ours
    f" AND {_FACT}f.key = ANY(%s))"
)
PRESENT = "present"

Found = Mapping[Condition, list[int]]


def allowed_chunks(
    connection: PostgresConnection, tenant: int, filters: Filters
) -> NDArray[np.int64] | None:
    """Return the sorted keys of the chunks that *filters* let through."""
    if filters.empty:
        return None
    found = _documents(connection, tenant, filters)
    clauses = composed(filters, lambda part: _leaves(part, found))
    sql, values = joined("AND", [(_LIVE, [tenant]), *clauses])
    asked = (_ALLOWED + sql).encode()
    rows = connection.raw.execute(asked, values, binary=True).fetchall()
    return np.sort(np.array([row[0] for row in rows], dtype=np.int64))


def _documents(connection: PostgresConnection, tenant: int, filters: Filters) -> Found:
    """Return the documents for which each comparison within *filters* holds.

    The server's own JSON refuses texts that metadata may hold, so it is read here,
    that of the documents which have one of the keys. Whether there is a value at all
    the server knows itself.
    """
    wanted = dict.fromkeys(
        condition
        for part in within(filters)
        for condition in part.where
        if condition.operator != PRESENT
    )
    if not wanted:
        return {}
    found: dict[Condition, list[int]] = {condition: [] for condition in wanted}
    keys = numbers(sorted({key_of(condition.key) for condition in wanted}))
    rows = connection.raw.execute(_HAVING.encode(), [tenant, keys], binary=True)
    for no, metadata in rows:
        known = json.loads(metadata)
        for condition, documents in found.items():
            if condition.holds(known.get(condition.key)):
                documents.append(no)
    return found


def _leaves(filters: Filters, found: Found) -> list[Clause]:
    """Return each condition as SQL with its values."""
    made: list[Clause] = []
    if filters.types:
        made.append(("d.type = ANY(%s)", [list(filters.types)]))
    if filters.documents:
        made.append(("d.id = ANY(%s)", [list(filters.documents)]))
    if filters.tags:
        made.append((_TAGGED, [list(filters.tags)]))
    for key, wanted in sorted(filters.metadata.items()):
        atoms = [
            atom
            for option in options_of(wanted)
            if (atom := atom_of(key, option)) is not None
        ]
        made.append((f"{_FACT}f.atom = ANY(%s))", [numbers(atoms)]))
    for operator, bound in ((">=", filters.since), ("<=", filters.until)):
        if bound is not None:
            clause = f"f.key = %s AND pg_catalog.substr(f.shown, 1, %s) {operator} %s)"
            named = key_of(filters.date_field)
            made.append((_FACT + clause, [named, len(bound), bound]))
    return made + [_compared(condition, found) for condition in filters.where]


def _compared(condition: Condition, found: Found) -> Clause:
    """Return a comparison: there is a value that is not empty, or it was looked up."""
    if condition.operator == PRESENT:
        key = condition.key
        return f"{_FACT}f.key = %s AND f.atom <> %s)", [key_of(key), atom_of(key, "")]
    return "d.no = ANY(%s)", [numbers(found[condition])]
