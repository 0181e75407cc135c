"""Likeness: which stored documents a text might repeat, for a window at a time."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kept.duplicates import (
    EDIT_BAND,
    PREFIX_SLACK,
    DuplicateRules,
    Opening,
    Sought,
)
from kept.stores import reading
from kept.stores.books import Books
from kept.stores.index_ports import Indexes
from kept.stores.sql import Connection, each, every, first
from kept.stores.writing import ORD_BITS

HEAD_CHARS = 48
MOST_NEAREST = 4_096
MOST_BY_PREFIX = 200
_LAST = "\U0010ffff"
_PLACE = (1 << ORD_BITS) - 1


@dataclass(frozen=True, slots=True)
class Likeness:
    """What one tenant has that is like something else, in one snapshot."""

    connection: Connection
    tenant: int
    indexes: Indexes
    books: Books
    rules: DuplicateRules

    def of(self, sought: Sequence[Sought]) -> list[list[Opening]]:
        """Return for each text the documents that might be the same, newest first."""
        near = [set[int]() for _ in sought] if self.rules.newest else self._near(sought)
        return [
            self._openings(one, documents)
            for one, documents in zip(sought, near, strict=True)
        ]

    def _near(self, sought: Sequence[Sought]) -> list[set[int]]:
        """Return the documents one of whose first chunks lies near enough."""
        seq = reading.last_change(self.connection, self.tenant)
        if self.indexes.dense.seq != seq:
            self.indexes.catch_up(self.connection, seq, keyword=False)
        vectors = np.stack([one.opening.vector for one in sought])
        lowest = self.rules.cosine - EDIT_BAND
        with self.indexes.lock.reading():
            found = self.indexes.dense.near(vectors, lowest, MOST_NEAREST)
        most = max(self.rules.mean_of, 1)
        return [
            set((keys[keys & _PLACE < most] >> ORD_BITS).tolist()) for keys in found
        ]

    def _openings(self, one: Sought, near: set[int]) -> list[Opening]:
        if self.rules.newest:
            found = self._newest(one.type)
        else:
            found = self._of_type(near, one.type)
            found |= self._by_prefix(one.type, one.opening.text)
        newest_first = sorted(found.items(), key=lambda item: -item[1])
        openings = (self._opening(no, one.without) for no, _ in newest_first)
        return [opening for opening in openings if opening is not None]

    def _newest(self, type_: str) -> dict[int, int]:
        return dict(
            every(
                self.connection,
                "SELECT no, age FROM documents WHERE tenant_no = ? AND type = ?"
                " AND live ORDER BY age DESC LIMIT ?",
                (self.tenant, type_, self.rules.newest),
            )
        )

    def _of_type(self, documents: set[int], type_: str) -> dict[int, int]:
        return dict(
            each(
                self.connection,
                "SELECT no, age FROM documents WHERE no = ? AND type = ? AND live",
                [(no, type_) for no in sorted(documents)],
            )
        )

    def _by_prefix(self, type_: str, text: str) -> dict[int, int]:
        """Return those whose opening may be a prefix of *text*, or the reverse."""
        shared = text[: max(0, len(text) - PREFIX_SLACK + 1)][:HEAD_CHARS]
        return dict(
            every(
                self.connection,
                "SELECT no, age FROM documents WHERE tenant_no = ? AND type = ?"
                " AND substr(opening, 1, 48) >= ? AND substr(opening, 1, 48) < ?"
                " AND abs(length(opening) - ?) < ? AND live ORDER BY age DESC LIMIT ?",
                (
                    *(self.tenant, type_, shared, shared + _LAST),
                    *(len(text), PREFIX_SLACK, MOST_BY_PREFIX),
                ),
            )
        )

    def _opening(self, no: int, without: str | None) -> Opening | None:
        row = first(
            self.connection, "SELECT id, opening FROM documents WHERE no = ?", (no,)
        )
        if row is None or row[0] == without:
            return None
        most = max(self.rules.mean_of, 1)
        vectors = self.books.first_vectors(self.connection, no, most)
        return Opening(
            document_id=row[0],
            text=row[1],
            vector=vectors[0],
            mean=mean_vector(vectors) if self.rules.mean_of else None,
        )


def mean_vector(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the mean direction of the first chunks."""
    mean: NDArray[np.float32] = vectors.mean(axis=0, dtype=np.float64).astype(
        np.float32
    )
    return mean
