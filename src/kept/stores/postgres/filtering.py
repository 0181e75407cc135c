"""Filtering: the chunks that a search may look at, by one statement."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kept.filters import Filters
from kept.stores.postgres.facts import atom_of, key_of
from kept.stores.postgres.portable import Connection
from kept.stores.postgres.values import numbers

_ALLOWED = (
    "SELECT c.no FROM kept.documents d JOIN kept.chunks c"
    " ON c.tenant_no = d.tenant_no AND c.document_no = d.no"
    " WHERE d.tenant_no = %s AND d.live"
)
_TAGGED = (
    " AND EXISTS (SELECT 1 FROM kept.chunk_tags g WHERE g.tenant_no = d.tenant_no"
    " AND g.no = c.no AND g.tag = ANY(%s))"
)
_FACT = (
    " AND EXISTS (SELECT 1 FROM kept.facts f WHERE f.tenant_no = d.tenant_no"
    " AND f.document_no = d.no AND "
)


def allowed_chunks(
    connection: Connection, tenant: int, filters: Filters
) -> NDArray[np.int64] | None:
    """Return the sorted keys of the chunks that *filters* let through."""
    if filters.empty:
        return None
    sql, values = _ALLOWED, [tenant]
    for clause, given in _conditions(filters):
        sql += clause
        values += given
    rows = connection.raw.execute(sql.encode(), values, binary=True).fetchall()
    return np.sort(np.array([row[0] for row in rows], dtype=np.int64))


def _conditions(filters: Filters) -> list[tuple[str, list[Any]]]:
    """Return each condition as SQL with its values."""
    found: list[tuple[str, list[Any]]] = []
    if filters.types:
        found.append((" AND d.type = ANY(%s)", [list(filters.types)]))
    if filters.documents:
        found.append((" AND d.id = ANY(%s)", [list(filters.documents)]))
    if filters.tags:
        found.append((_TAGGED, [list(filters.tags)]))
    for key, wanted in sorted(filters.metadata.items()):
        options = wanted if isinstance(wanted, list | tuple) else [wanted]
        atoms = [a for option in options if (a := atom_of(key, option)) is not None]
        found.append((_FACT + "f.atom = ANY(%s))", [numbers(atoms)]))
    for operator, bound in ((">=", filters.since), ("<=", filters.until)):
        if bound is not None:
            clause = f"f.key = %s AND pg_catalog.substr(f.shown, 1, %s) {operator} %s)"
            named = key_of(filters.date_field)
            found.append((_FACT + clause, [named, len(bound), bound]))
    return found
