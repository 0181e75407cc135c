"""The Milvus store of many nodes: documents in PostgreSQL, indexes in Milvus."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import cast

import numpy as np
from numpy.typing import NDArray

from kept.kernel.signals import QueryTerms
from kept.stores.filter_sql import chunks_shown
from kept.stores.index_port import Indexes, Keys
from kept.stores.meta import epoch_of
from kept.stores.milvus.address import Address
from kept.stores.milvus.changes import Truth
from kept.stores.milvus.tenant_collections import Collections, identity_of
from kept.stores.milvus.view import View
from kept.stores.ports import DoctorFinding
from kept.stores.postgres.connection import Options
from kept.stores.postgres.dense import EVERYTHING, Nearest
from kept.stores.postgres.dialect import PostgresConnection
from kept.stores.postgres.shelf import PostgresShelf
from kept.stores.postgres.store import PostgresStore
from kept.stores.shelf import ScoredLeg
from kept.stores.sql import Connection, only

COMPARED_AT_ONCE = 2_000


@dataclass(frozen=True, slots=True)
class PostgresTruth(Truth):
    """A tenant's truth in PostgreSQL, where vectors are kept in another form."""

    stored: Nearest | None = None

    def on(self, connection: Connection) -> "PostgresTruth":
        """Return the same truth as an unrestricted connection shows it."""
        stored = cast("Nearest", self.stored)
        if not isinstance(connection, PostgresConnection):
            msg = "a truth in PostgreSQL needs a connection to it"
            raise TypeError(msg)
        return PostgresTruth(
            connection,
            self.latest,
            self.tenant,
            stored=Nearest(connection, stored.of),
        )

    def vectors(self, keys: Keys) -> NDArray[np.float32]:
        """Return the vector of each of *keys*, as rows."""
        with self.alone:
            return cast("Nearest", self.stored).vectors(keys)


class MilvusPostgresShelf(PostgresShelf):
    """A shelf whose legs both read the truth, one after the other."""

    def keyword_leg(
        self, terms: QueryTerms, depth: int, allowed: Keys | None
    ) -> ScoredLeg:
        """Return the best chunks by exact BM25, read at once."""
        leg = self._keyword_leg(terms, depth, allowed)
        with cast("View", self.indexes).truth.alone:
            self._fetch(leg.keys.tolist())
        return leg


class MilvusPostgresStore(PostgresStore):
    """Documents and their history in PostgreSQL, a collection per tenant beside it."""

    def __init__(
        self,
        address: Address,
        *,
        writable: bool = True,
        options: Options | None = None,
        replicas: Sequence[str] = (),
    ) -> None:
        super().__init__(
            address.metadata,
            writable=writable,
            options=options,
            replicas=replicas,
            scanned_whole=EVERYTHING,
        )
        identity = identity_of(self.database, self.where)
        held = partial(partial, self.database.held)
        self.collections = Collections(address, identity, held)
        self.server = self.collections.server

    def close(self) -> None:
        """Let go of both servers."""
        self.server.close()
        super().close()

    def shelf_on(self, connection: PostgresConnection, tenant: str) -> PostgresShelf:
        """Return what a snapshot shows, its collection caught up with it."""
        shelf = super().shelf_on(connection, tenant)
        view = self._view(connection, shelf.tenant)
        seq, _ = view.truth.position()
        if not view.hold(seq):
            view.catch_up(connection, seq)
        shown = {field.name: getattr(shelf, field.name) for field in fields(shelf)}
        # The collection holds the chunks of all, so those that may be read are named.
        if not self._sees_all(connection):
            shown["readable"] = chunks_shown(connection, shelf.tenant)
        return MilvusPostgresShelf(**{**shown, "indexes": view})

    def indexes(self, connection: Connection, tenant: int) -> Indexes:  # type: ignore[override]  # found elsewhere
        """Return a tenant's collection as a reader of *connection* sees it."""
        return self._view(connection, tenant)

    def sweep(self) -> None:
        """Remove the vectors of embedders that the store no longer has."""
        super().sweep()
        with self.database.reading() as connection:
            current, _ = epoch_of(connection)
        self.collections.sweep(current)

    def rebuild(self) -> int:
        """Rebuild everything that is derived; return the number of tenants."""
        super().rebuild()
        for name in self.tenants():
            with self.database.reading(name) as connection:
                self._view(
                    connection, super().shelf_on(connection, name).tenant
                ).rebuild()
                self.shelf_on(connection, name)
        return len(self.tenants())

    def renew(self) -> bool:
        """Make the terms of an older analysis again; return whether there were any."""
        done = super().renew()
        if done:
            self.rebuild()
        return done

    def examine(self, *, repair: bool) -> list[DoctorFinding]:
        """Return everything that does not fit, put right if *repair*."""
        findings = super().examine(repair=repair)
        for name in self.tenants():
            with self.database.reading(name) as connection:
                shelf = self.shelf_on(connection, name)
                view = cast("View", shelf.indexes)
                problem = _difference(view) if shelf.embedder else None
                if problem and repair:
                    view.rebuild()
                    self.shelf_on(connection, name)
            if problem:
                findings.append(
                    DoctorFinding(
                        what="collection", where=name, detail=problem, repaired=repair
                    )
                )
        return findings

    def _view(self, connection: Connection, tenant: int) -> View:
        epoch, dimension = epoch_of(connection)
        name = ""
        if tenant:
            sql = "SELECT name FROM tenants WHERE no = ?"
            (name,) = only(connection, sql, (tenant,))
        truth = PostgresTruth(
            connection,
            partial(self._all_of_it.reading, name),
            tenant,
            restricted=self.database.asker is not None,
            stored=super().indexes(connection, tenant).dense,
        )
        return View(self.collections.of(tenant, epoch, dimension), truth)


def _difference(view: View) -> str | None:
    """Say how a collection differs from the truth, if it does."""
    if view.truth.position()[0] == 0:
        return None
    empty = np.empty(0, np.int64)
    truth = np.sort(np.concatenate([empty, *view.truth.all_keys()]))
    keys = view.dense.keys()
    if not np.array_equal(truth, keys):
        lacking, extra = np.setdiff1d(truth, keys), np.setdiff1d(keys, truth)
        return f"{len(lacking)} chunks missing, {len(extra)} too many"
    for start in range(0, len(truth), COMPARED_AT_ONCE):
        part = truth[start : start + COMPARED_AT_ONCE]
        if not np.array_equal(view.truth.vectors(part), view.indexed(part)):
            return "vectors differ from the truth"
    return None
