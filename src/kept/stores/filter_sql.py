"""Filters as SQL: the chunks that a search may read, by one statement."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kept.errors import InputError
from kept.kernel.filters import Condition, Filters, options_of
from kept.stores.row_writer import ORD_BITS
from kept.stores.sql import Connection, every, marks

MOST_VALUES = 30_000

Clause = tuple[str, list[Any]]
Leaves = Callable[[Filters], list[Clause]]

_EVERY_CHUNK = (
    "SELECT c.no FROM documents d JOIN chunks c ON c.document_no = d.no WHERE "
)
_VALUE = "EXISTS (SELECT 1 FROM json_tree(d.metadata, ?) j WHERE "
_SIGNS = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}
# Bytes, because a text may hold NUL, at which functions of characters stop.
_WORDED = {
    "contains": "instr(CAST(j.atom AS BLOB), CAST(? AS BLOB)) > 0",
    "starts_with": "substr(CAST(j.atom AS BLOB), 1, ?) = CAST(? AS BLOB)",
    "ends_with": "substr(CAST(j.atom AS BLOB), -?) = CAST(? AS BLOB)",
}


def allowed_chunks(
    connection: Connection, tenant: int, filters: Filters
) -> NDArray[np.int64] | None:
    """Return the sorted keys of the chunks that *filters* let through."""
    if filters.empty:
        return None
    chunks, given = _chunks(tenant, filters)
    untagged = replace(filters, tags=())
    clauses = composed(untagged, lambda part: _leaves(tenant, part))
    sql, values = joined("AND", [("d.tenant_no = ? AND d.live", [tenant]), *clauses])
    rows = every(connection, chunks + sql, _bounded([*given, *values]))
    return np.sort(np.array([row[0] for row in rows], dtype=np.int64))


def chunks_shown(connection: Connection, tenant: int) -> NDArray[np.int64]:
    """Return the sorted keys of all chunks that a connection shows of a tenant.

    They are made from the documents' sizes: there are fewer documents than chunks.
    """
    rows = every(
        connection,
        "SELECT no, chunk_count FROM documents WHERE tenant_no = ? AND live"
        " ORDER BY no",
        (tenant,),
    )
    numbers, sizes = np.array(rows, dtype=np.int64).reshape(-1, 2).T
    first = np.cumsum(sizes) - sizes
    places = np.arange(sizes.sum()) - np.repeat(first, sizes)
    shown: NDArray[np.int64] = np.repeat(numbers << ORD_BITS, sizes) + places
    return shown


def _chunks(tenant: int, filters: Filters) -> Clause:
    """Return where to look: at all chunks, or at those that have one of the tags."""
    if not filters.tags:
        return _EVERY_CHUNK, []
    sql = (
        "SELECT DISTINCT c.no FROM chunk_tags c JOIN documents d"  # noqa: S608 -- marks
        f" ON d.no = c.no >> {ORD_BITS}"
        f" WHERE c.tenant_no = ? AND c.tag IN ({marks(len(filters.tags))}) AND "
    )
    return sql, [tenant, *filters.tags]


def composed(filters: Filters, leaves: Leaves) -> list[Clause]:
    """Return conditions that all have to hold; *leaves* gives those of one level.

    A comparison with something that is not there may be NULL: under and and or that
    is as good as false, and none of *none_of* may be true.
    """
    found = leaves(filters)
    found += [clause for part in filters.all_of for clause in composed(part, leaves)]
    if filters.any_of:
        parts = [_whole(part, leaves) for part in filters.any_of]
        found.append(joined("OR", parts))
    for part in filters.none_of:
        clause, values = _whole(part, leaves)
        found.append((f"{clause} IS NOT TRUE", values))
    return found


def joined(by: str, clauses: Sequence[Clause]) -> Clause:
    """Return conditions as one, in brackets where they need them."""
    condition = f" {by} ".join(clause for clause, _ in clauses)
    several = by == "OR" and len(clauses) > 1
    sql = f"({condition})" if several else condition
    return sql, [v for _, given in clauses for v in given]


def _whole(filters: Filters, leaves: Leaves) -> Clause:
    clauses = composed(filters, leaves)
    if not clauses:
        return "TRUE", []
    clause, values = joined("AND", clauses)
    return f"({clause})", values


def _leaves(tenant: int, filters: Filters) -> list[Clause]:
    """Return each condition as SQL with its values."""
    found: list[Clause] = []
    if filters.types:
        found.append((f"d.type IN ({marks(len(filters.types))})", [*filters.types]))
    if filters.documents:
        named = filters.documents
        found.append((f"d.id IN ({marks(len(named))})", [*named]))
    if filters.tags:
        clause = (
            "EXISTS (SELECT 1 FROM chunk_tags t WHERE t.tenant_no = ?"  # noqa: S608 -- marks
            f" AND t.tag IN ({marks(len(filters.tags))}) AND t.no = c.no)"
        )
        found.append((clause, [tenant, *filters.tags]))
    for key, wanted in sorted(filters.metadata.items()):
        options = options_of(wanted)
        clause = f"{_VALUE}j.atom IN ({marks(len(options))}))"
        found.append((clause, [_path(key), *options]))
    for operator, bound in ((">=", filters.since), ("<=", filters.until)):
        if bound is not None:
            clause = f"substr(d.metadata ->> ?, 1, {len(bound)}) {operator} ?"
            found.append((clause, [_path(filters.date_field), bound]))
    return found + [_compared(condition) for condition in filters.where]


def _compared(condition: Condition) -> Clause:
    path, value = _path(condition.key), condition.value
    if condition.operator == "present":
        return f"{_VALUE}j.atom <> '')", [path]
    if condition.operator in _SIGNS:
        compared = f"j.atom {_SIGNS[condition.operator]} ?"
        return f"{_VALUE}j.type IN ('integer', 'real') AND {compared})", [path, value]
    clause = f"{_VALUE}j.type = 'text' AND {_WORDED[condition.operator]})"
    if condition.operator == "contains":
        return clause, [path, value]
    return clause, [path, len(str(value).encode()), value]


def _path(key: str) -> str:
    return f"$.{json.dumps(key, ensure_ascii=False)}"


def _bounded(values: list[Any]) -> tuple[Any, ...]:
    if len(values) > MOST_VALUES:
        msg = (
            f"the filters name {len(values)} values, at most {MOST_VALUES} are taken; "
            "narrow by a type, a tag or a field instead"
        )
        raise InputError(msg)
    return tuple(values)
