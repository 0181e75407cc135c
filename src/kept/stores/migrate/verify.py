"""Comparing two stores: counts and digests of all rows, and questions to both."""

import hashlib
import json
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from kept.kernel.ports import Vectors
from kept.stores import queries as reading
from kept.stores.migrate.copy import documents_of, numbers_by
from kept.stores.migrate.tables import JOBS, OF_TENANTS, OF_THE_STORE, Table
from kept.stores.ports import ManagedStore
from kept.stores.sql import Row, each, every

DOCUMENTS = 50
QUESTIONS = 5
DEPTH = 20
EXACT_CHUNKS = 10_000
LONGEST_QUESTION = 200


@dataclass(frozen=True, slots=True)
class Compared:
    """One part of two stores: how many rows each has, and whether they are equal."""

    tenant: str | None
    what: str
    rows: int
    arrived: int
    same: bool


def compared(source: ManagedStore, target: ManagedStore) -> Iterator[Compared]:
    """Yield every part of two stores; a part that differs is not the same."""
    yield _pair(None, "embedder", [(source.embedder(),)], [(target.embedder(),)])
    yield _pair(
        None,
        "tenants",
        [(name,) for name in source.tenants()],
        [(name,) for name in target.tenants()],
    )
    for tenant in source.tenants():
        yield from _of_tenant(source, target, tenant)
    for table in (*OF_THE_STORE, JOBS):
        yield _pair(
            None,
            table.name.replace("_", " "),
            _rows(source, table, None),
            _rows(target, table, None),
        )
    yield _pair(None, "job receipts", _receipts(source), _receipts(target))


def _of_tenant(
    source: ManagedStore, target: ManagedStore, tenant: str
) -> Iterator[Compared]:
    both = (source, target)
    yield _pair(tenant, "documents", *(_documents(store, tenant) for store in both))
    yield _pair(tenant, "order of arrival", *(_order(store, tenant) for store in both))
    for table in OF_TENANTS:
        yield _pair(
            tenant, table.name, *(_rows(store, table, tenant) for store in both)
        )
    overrides = [[(json.dumps(s.overrides(tenant), sort_keys=True),)] for s in both]
    yield _pair(tenant, "settings", *overrides)
    asked = _questions(source, tenant)
    yield _pair(
        tenant,
        "sample questions",
        *(_answers(source, store, tenant, asked) for store in both),
    )


def _pair(
    tenant: str | None, what: str, one: Iterable[Row], other: Iterable[Row]
) -> Compared:
    rows, mine = _digest(one)
    arrived, theirs = _digest(other)
    return Compared(tenant, what, rows, arrived, mine == theirs)


def _digest(rows: Iterable[Row]) -> tuple[int, str]:
    count, found = 0, hashlib.sha256()
    for row in rows:
        count += 1
        found.update(json.dumps(row, default=_plain).encode())
        found.update(b"\n")
    return count, found.hexdigest()


def _plain(value: object) -> str:
    """Return bytes and their like as JSON holds them."""
    return value.hex() if isinstance(value, bytes) else str(value)


def _rows(store: ManagedStore, table: Table, tenant: str | None) -> Iterator[Row]:
    with store.database.reading(tenant) as connection:
        no = 0 if tenant is None else reading.tenant_no(connection, tenant)
        yield from table.rows(connection, no)


def _receipts(store: ManagedStore) -> Iterator[Row]:
    with store.database.reading() as connection:
        yield from every(
            connection,
            "SELECT j.id, r.place, r.receipt FROM jobs j"
            " JOIN job_receipts r ON r.job_no = j.no ORDER BY j.no, r.place",
        )


def _documents(store: ManagedStore, tenant: str) -> Iterator[Row]:
    """Yield every document with its chunks and the bytes of its vectors."""
    with store.database.reading(tenant) as connection:
        no = reading.tenant_no(connection, tenant)
        for some in _in_parts(numbers_by(connection, no, "id, type")):
            for one in documents_of(store, connection, no, some):
                rows = (one.filed.document, one.filed.chunks)
                yield *rows, one.vectors.tobytes(), one.live, one.superseded_by


def _order(store: ManagedStore, tenant: str) -> Iterator[Row]:
    with store.database.reading(tenant) as connection:
        no = reading.tenant_no(connection, tenant)
        for some in _in_parts(numbers_by(connection, no, "age, id")):
            yield from each(
                connection,
                "SELECT id FROM documents WHERE tenant_no = ? AND no = ?",
                [(no, number) for number in some],
            )


def _in_parts(numbers: "array[int]") -> Iterator["array[int]"]:
    for start in range(0, len(numbers), DOCUMENTS):
        yield numbers[start : start + DOCUMENTS]


def _questions(store: ManagedStore, tenant: str) -> list[tuple[str, Vectors]]:
    """Return some documents' own words and first vectors, as questions to ask.

    The vectors are stored ones, so that nothing has to be embedded.
    """
    with store.database.reading(tenant) as connection:
        no = reading.tenant_no(connection, tenant)
        rows = every(
            connection,
            "SELECT no, title, opening FROM documents WHERE tenant_no = ? AND live"
            " ORDER BY no LIMIT ?",
            (no, QUESTIONS),
        )
        return [
            (
                f"{title} {opening}"[:LONGEST_QUESTION],
                store.books.first_vectors(connection, number, 1)[0],
            )
            for number, title, opening in rows
        ]


def _answers(
    source: ManagedStore,
    store: ManagedStore,
    tenant: str,
    asked: Iterable[tuple[str, Vectors]],
) -> Iterator[Row]:
    """Yield what a store answers; a large one among what the source finds.

    Servers search large stores through graphs, which may pass a neighbour over; what
    they say of the same chunks must be the same to the last digit.
    """
    for question, vector in asked:
        allowed = None
        with source.shelf(tenant) as shelf:
            if shelf.chunks > EXACT_CHUNKS:
                allowed = np.sort(shelf.dense_leg(vector, DEPTH, None).keys)
        with store.shelf(tenant) as shelf:
            terms = shelf.weigh(question)
            legs = {
                "dense": shelf.dense_leg(vector, DEPTH, allowed),
                "keyword": shelf.keyword_leg(terms, DEPTH, allowed),
            }
            found = shelf.candidates(vector, terms, legs)
            scores = {name: leg.scores.tolist() for name, leg in legs.items()}
            yield (
                shelf.state,
                scores,
                sorted((c.id, c.chunk.text, sorted(c.signals.items())) for c in found),
            )
