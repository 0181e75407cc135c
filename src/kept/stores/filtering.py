"""Filtering: the chunks that a search may look at, by one statement."""

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kept.filters import Filters
from kept.stores.sql import Connection, every
from kept.stores.writing import ORD_BITS


def allowed_chunks(
    connection: Connection, tenant: int, filters: Filters
) -> NDArray[np.int64] | None:
    """Return the sorted keys of the chunks that *filters* let through."""
    if filters.empty:
        return None
    clauses = ["d.tenant_no = ?", "d.live"]
    values: list[Any] = [tenant]
    for clause, given in _conditions(filters):
        clauses.append(clause)
        values += given
    if filters.tags:
        sql = (
            "SELECT DISTINCT t.no FROM chunk_tags t JOIN documents d"  # noqa: S608 -- marks
            f" ON d.no = t.no >> {ORD_BITS}"
            f" WHERE t.tenant_no = ? AND t.tag IN ({_marks(filters.tags)}) AND "
        )
        values = [tenant, *filters.tags, *values]
    else:
        sql = (
            "SELECT c.no FROM documents d JOIN chunks c ON c.document_no = d.no WHERE "
        )
    rows = every(connection, sql + " AND ".join(clauses), tuple(values))
    return np.sort(np.array([row[0] for row in rows], dtype=np.int64))


def _conditions(filters: Filters) -> list[tuple[str, list[Any]]]:
    """Return each condition as SQL with its values."""
    found: list[tuple[str, list[Any]]] = []
    if filters.types:
        found.append((f"d.type IN ({_marks(filters.types)})", list(filters.types)))
    if filters.documents:
        marks = _marks(filters.documents)
        found.append((f"d.id IN ({marks})", list(filters.documents)))
    for key, wanted in sorted(filters.metadata.items()):
        options = list(wanted) if isinstance(wanted, list | tuple) else [wanted]
        clause = (
            "EXISTS (SELECT 1 FROM json_tree(d.metadata, ?) j"  # noqa: S608 -- marks
            f" WHERE j.atom IN ({_marks(options)}))"
        )
        found.append((clause, [_path(key), *options]))
    for operator, bound in ((">=", filters.since), ("<=", filters.until)):
        if bound is not None:
            clause = f"substr(d.metadata ->> ?, 1, {len(bound)}) {operator} ?"
            found.append((clause, [_path(filters.date_field), bound]))
    return found


def _path(key: str) -> str:
    return f"$.{json.dumps(key, ensure_ascii=False)}"


def _marks(values: Any) -> str:  # noqa: ANN401 -- anything with a length
    return ", ".join("?" for _ in values)
