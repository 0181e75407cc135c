"""A shelf on PostgreSQL: one tenant in one snapshot."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kept.kernel.filters import Filters
from kept.kernel.signals import Floats
from kept.stores.index_port import Keys
from kept.stores.postgres.dense import Nearest
from kept.stores.postgres.dialect import PostgresConnection
from kept.stores.postgres.filter_sql import allowed_chunks
from kept.stores.postgres.keyword import PostgresWords
from kept.stores.postgres.values import numbers
from kept.stores.shelf import SqlShelf
from kept.stores.sql import Connection, every
from kept.text.tokens import term_key


class NoLock:
    """A snapshot does not change under its readers."""

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Share nothing."""
        yield


@dataclass(frozen=True, slots=True)
class SnapshotIndexes:
    """What makes a tenant's chunks findable, as one snapshot shows it."""

    dense: Nearest
    keyword: PostgresWords
    lock: NoLock

    @classmethod
    def on(cls, dense: Nearest, acls: Sequence[int]) -> "SnapshotIndexes":
        """Return both indexes of the tenant whose vectors are given."""
        words = PostgresWords(dense.connection, dense.of.tenant, acls)
        return cls(dense, words, NoLock())

    def hold(self, seq: int) -> bool:
        """Return whether a reader of the state *seq* can search here: always."""
        return True

    def catch_up(
        self, connection: Connection, seq: int, *, keyword: bool = True
    ) -> None:
        """Do nothing: rows and indexes change in one transaction."""

    def rebuild(self) -> None:
        """Do nothing: there is nothing beside the truth."""

    def indexed(self, keys: Keys) -> NDArray[np.float32]:
        """Return the vectors themselves."""
        return self.dense.vectors(keys)


@dataclass(frozen=True, slots=True)
class PostgresShelf(SqlShelf):
    """One tenant's chunks, their statistics and their indexes in one snapshot.

    Row-level security leaves of the indexes, too, only what may be read, so that no
    list of readable chunks is needed. *acls* are the readers' lists in question.
    """

    acls: tuple[int, ...] = (0,)

    @property
    def own(self) -> PostgresConnection:
        """The connection, as one to PostgreSQL."""
        if not isinstance(self.connection, PostgresConnection):
            msg = "a shelf on PostgreSQL needs a connection to it"
            raise TypeError(msg)
        return self.connection

    def holding(self, words: Iterable[str]) -> Mapping[str, int]:
        """Return how many chunks hold each of *words*."""
        keys = {term_key(word): word for word in words}
        rows = every(
            self.connection,
            "SELECT key, pg_catalog.sum(df)::bigint FROM kept.terms WHERE tenant_no = ?"
            " AND acl_no = ANY(?) AND key = ANY(?) GROUP BY key",
            (self.tenant, numbers(self.acls), numbers(list(keys))),
        )
        return dict.fromkeys(keys.values(), 0) | {keys[key]: df for key, df in rows}

    def allowed(self, filters: Filters) -> Keys | None:
        """Return the chunks that *filters* let through; None means all."""
        return allowed_chunks(self.own, self.tenant, filters)

    def _terms_of(self, keys: Keys) -> tuple[Floats, list[bytes]]:
        rows = every(
            self.connection,
            "SELECT no, length, terms FROM kept.chunks"
            " WHERE tenant_no = ? AND no = ANY(?)",
            (self.tenant, numbers(keys)),
        )
        found = {row[0]: row for row in rows}
        ordered = [found[key] for key in keys.tolist()]
        lengths = np.array([row[1] for row in ordered], dtype=np.float64)
        return lengths, [row[2] for row in ordered]
