"""The port of a tenant's indexes, wherever these are stored."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from kept.stores.sql import Connection
from kept.stores.sqlite.index.vector_file import Scored

Keys = NDArray[np.int64]
FIRST_NEAR = 64
Pause = Callable[[], object]


def at_once() -> None:
    """Do not pause."""


class Dense(Protocol):
    """Unit vectors by key, and the nearest of them to a query by exact cosine."""

    @property
    def seq(self) -> int:
        """The last change held."""
        ...

    def search(
        self,
        query: NDArray[np.float32],
        limit: int,
        allowed: Keys | None = None,
        *,
        pause: Pause = at_once,
    ) -> Scored:
        """Return keys and cosines of the *limit* nearest, of *allowed* if given.

        *pause* is called, maybe more than once, before the interpreter is needed for
        longer than it takes to begin.
        """
        ...

    def near(
        self, queries: NDArray[np.float32], at_least: float, most: int
    ) -> list[Keys]:
        """Return the keys whose cosine to each query is *at_least* so much.

        Of more than *most* only the nearest are returned.
        """
        ...

    def rank(
        self, query: NDArray[np.float32], key: int, allowed: Keys | None = None
    ) -> int:
        """Return the place of *key* among all, or among *allowed*; 1 is the nearest."""
        ...

    def cosines(self, query: NDArray[np.float32], keys: Keys) -> NDArray[np.float64]:
        """Return the cosine of each of *keys*, which must all be held."""
        ...

    def vectors(self, keys: Keys) -> NDArray[np.float32]:
        """Return the vector of each of *keys*, which must all be held, as rows."""
        ...

    def keys(self) -> Keys:
        """Return every key that is held, in order."""
        ...


class Words(Protocol):
    """Which chunks hold a term, and the best of them by exact BM25."""

    @property
    def seq(self) -> int:
        """The last change held."""
        ...

    def search(
        self,
        terms: Mapping[str, float],
        limit: int,
        exact: Callable[[Keys], NDArray[np.float64]],
        *,
        average_length: float,
        allowed: Keys | None = None,
    ) -> Scored:
        """Return the *limit* best chunks by exact score, ties by key."""
        ...

    def keys(self) -> Keys:
        """Return every key that is held, in order."""
        ...


class ReadLock(Protocol):
    """Keeps an index from changing under its readers."""

    def reading(self) -> AbstractContextManager[None]:
        """Share the lock with other readers."""
        ...


class Indexes(Protocol):
    """Both indexes of a tenant, brought up to the state of the database."""

    @property
    def dense(self) -> Dense:
        """The index of vectors."""
        ...

    @property
    def keyword(self) -> Words:
        """The index of words."""
        ...

    @property
    def lock(self) -> ReadLock:
        """What a reader holds while it searches."""
        ...

    def hold(self, seq: int) -> bool:
        """Return whether a reader of the state *seq* can search here."""
        ...

    def catch_up(
        self, connection: Connection, seq: int, *, keyword: bool = True
    ) -> None:
        """Apply what the truth has and the indexes lack, up to *seq*."""
        ...

    def rebuild(self) -> None:
        """Delete both indexes; the next search rebuilds them."""
        ...

    def indexed(self, keys: Keys) -> NDArray[np.float32]:
        """Return the vectors as the index itself holds them, for comparison."""
        ...


def near_by_search(
    search: Callable[[NDArray[np.float32], int], Scored],
    queries: NDArray[np.float32],
    at_least: float,
    most: int,
) -> list[Keys]:
    """Return what lies near each query, searching deeper while all of it does."""
    return [_near_one(search, query, at_least, most) for query in queries]


def _near_one(
    search: Callable[[NDArray[np.float32], int], Scored],
    query: NDArray[np.float32],
    at_least: float,
    most: int,
) -> Keys:
    limit = min(FIRST_NEAR, most)
    while True:
        keys, cosines = search(query, limit)
        near = keys[cosines >= at_least]
        if len(near) < limit or limit == most:
            return near
        limit = min(4 * limit, most)
