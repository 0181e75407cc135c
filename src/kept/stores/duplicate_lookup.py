"""Duplicate lookup: stored documents that a window of texts might repeat."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from kept.ingest.duplicates import (
    EDIT_BAND,
    PREFIX_SLACK,
    DuplicateRules,
    Opening,
    SoughtText,
)
from kept.stores import queries as reading
from kept.stores.documents_port import Books
from kept.stores.index_port import Indexes
from kept.stores.row_writer import ORD_BITS
from kept.stores.sql import Connection, each, every, only

HEAD_CHARS = 48
MOST_NEAREST = 4_096
MOST_BY_PREFIX = 200
# Texts of one template share the numbers of their sketches by the thousand.
MOST_BY_SKETCH = 16
LATEST = 2_000
_LAST = "\U0010ffff"
_LIKEWISE = "substr(opening, 1, 48) >= ? AND substr(opening, 1, 48) < ?"
_ALL = "documents WHERE tenant_no = ? AND type = ? AND"
_LATEST = (
    "(SELECT no, age, opening, live, readers FROM documents"
    " WHERE tenant_no = ? AND type = ? ORDER BY age DESC LIMIT ?) AS latest WHERE"
)
_LIKE_THIS = (
    f"SELECT no, age FROM {{}} {_LIKEWISE}"  # noqa: S608 -- ours
    " AND abs(length(opening) - ?) < ? AND live AND readers = ?"
    " ORDER BY age DESC LIMIT ?"
)
_PLACE = (1 << ORD_BITS) - 1


@dataclass(frozen=True, slots=True)
class Likeness:
    """What one tenant has that is like something else, in one snapshot."""

    connection: Connection
    tenant: int
    indexes: Indexes
    books: Books
    rules: DuplicateRules
    live: dict[int, tuple[tuple[str, str], int] | None] = field(default_factory=dict)
    read: dict[int, Opening] = field(default_factory=dict)
    sketched: dict[int, set[int]] = field(default_factory=dict)

    def of(self, sought: Sequence[SoughtText]) -> list[list[Opening]]:
        """Return for each text the documents that might be the same, newest first.

        Texts that come in together are like the same documents: each is read once.
        """
        near = [set[int]() for _ in sought]
        if not self.rules.newest:
            near = list(map(set.union, self._near(sought), self._sketched(sought)))
        return [
            self._openings(one, documents)
            for one, documents in zip(sought, near, strict=True)
        ]

    def _near(self, sought: Sequence[SoughtText]) -> list[set[int]]:
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

    def _sketched(self, sought: Sequence[SoughtText]) -> list[set[int]]:
        """Return the documents that share a number of each sketch, some of each."""
        keys = sorted({key for one in sought for key in one.opening.sketch})
        found: dict[int, set[int]] = {}
        for key, document in each(
            self.connection,
            "SELECT key, document_no FROM sketches WHERE tenant_no = ? AND key = ?"
            " ORDER BY document_no LIMIT ?",
            [(self.tenant, key, MOST_BY_SKETCH) for key in keys],
        ):
            found.setdefault(key, set()).add(document)
            self.sketched.setdefault(document, set()).add(key)
        return [
            set().union(*(found.get(key, ()) for key in one.opening.sketch))
            for one in sought
        ]

    def _openings(self, one: SoughtText, near: set[int]) -> list[Opening]:
        if self.rules.newest:
            found = self._newest(one)
        else:
            found = self._of_kind(near, one.kind)
            found |= self._by_prefix(one)
        newest_first = sorted(found, key=lambda no: -found[no])
        openings = map(self._opening, newest_first)
        return [opening for opening in openings if opening.document_id != one.without]

    def _newest(self, one: SoughtText) -> dict[int, int]:
        return dict(
            every(
                self.connection,
                "SELECT no, age FROM documents WHERE tenant_no = ? AND type = ?"
                " AND readers = ? AND live ORDER BY age DESC LIMIT ?",
                (self.tenant, *one.kind, self.rules.newest),
            )
        )

    def _of_kind(self, documents: set[int], kind: tuple[str, str]) -> dict[int, int]:
        """Return the live ones of a type and for the same readers, with their ages."""
        unread = sorted(documents.difference(self.live))
        rows = each(
            self.connection,
            "SELECT no, type, readers, age FROM documents WHERE no = ? AND live",
            [(no,) for no in unread],
        )
        self.live.update(dict.fromkeys(unread))
        self.live.update((no, ((own, acl), age)) for no, own, acl, age in rows)
        found = ((no, self.live[no]) for no in sorted(documents))
        return {no: one[1] for no, one in found if one and one[0] == kind}

    def _by_prefix(self, one: SoughtText) -> dict[int, int]:
        """Return those whose opening may be a prefix of a text's, or the reverse.

        Where very many begin likewise, as short lines do, the latest documents most
        likely hold all that are wanted.
        """
        text = one.opening.text
        shared = text[: max(0, len(text) - PREFIX_SLACK + 1)][:HEAD_CHARS]
        own = (self.tenant, one.type)
        span = (shared, shared + _LAST)
        rest = (len(text), PREFIX_SLACK, one.acl, MOST_BY_PREFIX)
        if self._many(own, span):
            latest = every(
                self.connection,
                _LIKE_THIS.format(_LATEST),
                (*own, LATEST, *span, *rest),
            )
            if len(latest) == MOST_BY_PREFIX:
                return dict(latest)
        return dict(
            every(self.connection, _LIKE_THIS.format(_ALL), (*own, *span, *rest))
        )

    def _many(self, own: tuple[int, str], span: tuple[str, str]) -> bool:
        """Return whether more documents begin alike than are looked at first."""
        [(count,)] = every(
            self.connection,
            "SELECT COUNT(*) FROM (SELECT 1 FROM documents WHERE tenant_no = ?"  # noqa: S608 -- ours
            f" AND type = ? AND {_LIKEWISE} LIMIT ?) AS found",
            (*own, *span, LATEST),
        )
        return bool(count == LATEST)

    def _opening(self, no: int) -> Opening:
        if no not in self.read:
            document_id, text = only(
                self.connection, "SELECT id, opening FROM documents WHERE no = ?", (no,)
            )
            most = max(self.rules.mean_of, 1)
            vectors = self.books.first_vectors(self.connection, no, most)
            self.read[no] = Opening(
                document_id=document_id,
                text=text,
                sketch=frozenset(self.sketched.get(no, ())),
                vector=vectors[0],
                mean=mean_vector(vectors) if self.rules.mean_of else None,
            )
        return self.read[no]


def mean_vector(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the mean direction of the first chunks."""
    mean: NDArray[np.float32] = vectors.mean(axis=0, dtype=np.float64).astype(
        np.float32
    )
    return mean
