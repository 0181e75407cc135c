"""The pool: the candidates of a query in columns; objects are built when read.

A query passes a hundred candidates through a dozen stages and returns a handful. Stages
that treat all of them alike work on columns; candidates and decisions are built only
when they are read.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from functools import cached_property, partial
from typing import Any, NamedTuple, Protocol, overload

import numpy as np
from numpy.typing import NDArray

from kept.errors import MissingSignalError
from kept.kernel.model import (
    NOTHING,
    Candidate,
    Chunk,
    Document,
    Precedence,
    candidate_of,
)

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]


class Column(NamedTuple):
    """A signal by row, and who has it; without *there*, all do."""

    values: Floats
    there: NDArray[np.bool_] | None = None


class PoolEntry(Protocol):
    """A chunk with its document: a candidate, or what is going to be one."""

    @property
    def id(self) -> str:
        """The id of the chunk."""
        ...

    @property
    def chunk(self) -> Chunk:
        """What may be cited."""
        ...

    @property
    def document(self) -> Document:
        """Where it is from."""
        ...


class Roll:
    """The entries of a query, and the columns read so far."""

    def __init__(
        self,
        entries: Sequence[PoolEntry],
        scores: Floats,
        columns: Mapping[str, Floats],
        vectors: Sequence[Any] | NDArray[np.float32],
        documents: NDArray[np.int64] | None = None,
    ) -> None:
        self.entries = entries
        self.rows: Rows = np.arange(len(entries))
        self.scores = scores
        self.vectors = vectors
        self.columns = {name: Column(values) for name, values in columns.items()}
        self.given: tuple[Candidate, ...] | None = None
        self.protected: frozenset[int] = frozenset()
        self.pinned: frozenset[int] = frozenset()
        if documents is not None:
            self.documents = documents

    @classmethod
    def of(cls, candidates: tuple[Candidate, ...]) -> "Roll":
        """Return candidates as a roll; their signals are read one by one."""
        scores = np.array([c.score for c in candidates], np.float64)
        roll = cls(candidates, scores, NOTHING, ())
        roll.given = candidates
        shielded = [row for row, c in enumerate(candidates) if c.protected]
        roll.protected = frozenset(shielded)
        roll.pinned = frozenset([row for row in shielded if candidates[row].pinned])
        return roll

    @cached_property
    def ids(self) -> list[str]:
        """The id of every chunk."""
        return [entry.id for entry in self.entries]

    @cached_property
    def documents(self) -> NDArray[np.int64]:
        """A number for each chunk's document."""
        numbers: dict[str, int] = {}
        ids = [entry.document.id for entry in self.entries]
        return np.array([numbers.setdefault(id_, len(numbers)) for id_ in ids], int)

    @property
    def distinct(self) -> bool:
        """Return whether every chunk is there once; what a shelf recalls always is."""
        return self.given is None or len(set(self.ids)) == len(self.ids)

    def column(self, name: str) -> Column | None:
        """Return a signal, if any candidate has it."""
        found = self.columns.get(name)
        if found is None and self.given is not None:
            there = [name in c.signals for c in self.given]
            if any(there):
                values = [c.signals.get(name, 0.0) for c in self.given]
                who = None if all(there) else np.array(there, bool)
                found = self.columns[name] = Column(np.array(values, float), who)
        return found

    def signals(
        self, rows: Rows, added: Mapping[str, Column]
    ) -> list[dict[str, float]]:
        """Return all signals of some of them, in the order in which they were set."""
        if self.given is None:
            return readings_of({**self.columns, **added}, rows)
        mine = [self.given[row].signals for row in rows.tolist()]
        theirs = readings_of(added, rows)
        return [{**old, **new} for old, new in zip(mine, theirs, strict=True)]

    def vector(self, row: int) -> Any:  # noqa: ANN401 -- as the candidate holds it
        """Return the vector of one of them."""
        return self.vectors[row] if self.given is None else self.given[row].vector


def readings_of(columns: Mapping[str, Column], rows: Rows) -> list[dict[str, float]]:
    """Return what *columns* say of some rows."""
    read = [
        (name, values[rows].tolist(), None if there is None else there[rows].tolist())
        for name, (values, there) in columns.items()
    ]
    return [
        {
            name: values[place]
            for name, values, there in read
            if there is None or there[place]
        }
        for place in range(len(rows))
    ]


class Pool(Sequence[Candidate]):
    """Some rows of a roll in an order, with what was added to them since.

    A pool is never changed: a stage makes another one, of the same roll.
    """

    __slots__ = ("added", "protected", "roll", "rows", "scores")

    def __init__(
        self,
        roll: Roll,
        rows: Rows,
        scores: Floats,
        added: Mapping[str, Column],
        protected: frozenset[int],
    ) -> None:
        self.roll = roll
        self.rows = rows
        self.scores = scores
        self.added = added
        self.protected = protected

    @classmethod
    def of(cls, candidates: Iterable[Candidate]) -> "Pool":
        """Return candidates as a pool, in the order they have."""
        if isinstance(candidates, Pool):
            return candidates
        return cls.on(Roll.of(tuple(candidates)))

    @classmethod
    def on(cls, roll: Roll) -> "Pool":
        """Return the pool of all entries of a roll."""
        return cls(roll, roll.rows, roll.scores, NOTHING, roll.protected)

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, place: int) -> Candidate: ...
    @overload
    def __getitem__(self, place: slice) -> "Pool": ...
    def __getitem__(self, place: int | slice) -> "Candidate | Pool":
        """Return the candidate at a place, or the pool of those at several."""
        if isinstance(place, slice):
            return self.keeping(self.rows[place])
        return self.keeping(self.rows[[place]]).candidates[0]

    def __iter__(self) -> Iterator[Candidate]:
        return iter(self.candidates)

    def __eq__(self, other: object) -> bool:
        return self.candidates == (
            other.candidates if isinstance(other, Pool) else other
        )

    def __hash__(self) -> int:
        return hash(self.candidates)

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """All of them, made."""
        roll, rows = self.roll, self.rows.tolist()
        if roll.given is not None and self._as_given:
            whole = self.rows is roll.rows
            return roll.given if whole else tuple([roll.given[row] for row in rows])
        signals = roll.signals(self.rows, self.added)
        scores = self.scores[self.rows].tolist()
        return tuple(
            [
                candidate_of(
                    roll.entries[row].chunk,
                    roll.entries[row].document,
                    score,
                    each,
                    roll.vector(row),
                    protected=row in self.protected,
                    pinned=row in roll.pinned,
                )
                for row, score, each in zip(rows, scores, signals, strict=True)
            ]
        )

    @property
    def _as_given(self) -> bool:
        return (
            not self.added
            and self.scores is self.roll.scores
            and self.protected is self.roll.protected
        )

    def _column(self, name: str) -> Column | None:
        return self.added.get(name) or self.roll.column(name)

    def readings(self, name: str) -> Floats:
        """Return one signal of every candidate, or raise if one lacks it.

        Not to be changed: the column itself is returned where the order is the first.
        """
        column = self._column(name)
        if column is None:
            for candidate in self:
                raise MissingSignalError(candidate.id, name, candidate.signals)
            return np.empty(0)
        values, there = column
        if there is not None and not there[self.rows].all():
            without = next(c for c in self if name not in c.signals)
            raise MissingSignalError(without.id, name, without.signals)
        return values if self.rows is self.roll.rows else values[self.rows]

    def best(self, name: str) -> float | None:
        """Return the highest reading, if there is any."""
        return float(self.readings(name).max()) if len(self) else None

    def reading(self, row: int, name: str, default: float = 0.0) -> float:
        """Return one signal of one candidate, or the *default* if it lacks it."""
        column = self._column(name)
        if column is None or not (column.there is None or column.there[row]):
            return default
        return column.values.item(row)

    def holds(self, name: str) -> bool:
        """Return whether a candidate has the signal *name*."""
        column = self._column(name)
        if column is None or not len(self):
            return False
        return column.there is None or bool(column.there[self.rows].any())

    def demand_new(self, stage: str, name: str) -> None:
        """Raise if the signal that *stage* adds is set already."""
        if self.holds(name):
            msg = f"{stage}: the signal {name!r} is set already; run the stage once"
            raise ValueError(msg)

    def flags(self, name: str) -> NDArray[np.bool_]:
        """Return a mask of the candidates that have a signal, other than 0."""
        column = self._column(name)
        if column is None:
            return np.zeros(len(self.rows), bool)
        values, there = column
        return np.asarray((values != 0.0 if there is None else there)[self.rows])

    def shielded(self) -> NDArray[np.bool_]:
        """Return a mask of the protected candidates."""
        there = np.zeros(len(self.roll.rows), bool)
        there[list(self.protected)] = True
        return there[self.rows]

    def keeping(self, rows: Rows) -> "Pool":
        """Return the pool of some rows, in their order."""
        return Pool(self.roll, rows, self.scores, self.added, self.protected)

    def shielding(self, rows: Iterable[int]) -> "Pool":
        """Return the pool with some rows protected."""
        protected = self.protected.union(rows)
        return Pool(self.roll, self.rows, self.scores, self.added, protected)

    def pinning(self, rows: Sequence[int]) -> "Pool":
        """Return the pool with some rows pinned, which protects them too."""
        if not rows:
            return self
        roll = copy(self.roll)
        roll.pinned = roll.pinned.union(rows)
        protected = self.protected.union(rows)
        return Pool(roll, self.rows, self.scores, self.added, protected)

    def scored(self, scores: Floats) -> "Pool":
        """Return the pool with other scores."""
        column = self._spread(scores).values
        return Pool(self.roll, self.rows, column, self.added, self.protected)

    def measured(self, **signals: Floats) -> "Pool":
        """Return the pool with further signals.

        A signal of fewer than there are is that of the first.
        """
        columns = {name: self._spread(values) for name, values in signals.items()}
        added = {**self.added, **columns}
        return Pool(self.roll, self.rows, self.scores, added, self.protected)

    def measured_at(self, rows: Rows, **signals: Floats) -> "Pool":
        """Return the pool with further signals of some *rows* only."""
        there = np.zeros(len(self.roll.rows), bool)
        there[rows] = True
        added = dict(self.added)
        for name, values in signals.items():
            column = np.zeros(len(there))
            column[rows] = values
            added[name] = Column(column, there)
        return Pool(self.roll, self.rows, self.scores, added, self.protected)

    def _spread(self, values: Floats) -> Column:
        # All rows in their first order: the values are the column already.
        if self.rows is self.roll.rows and len(values) == len(self.rows):
            return Column(values)
        rows, size = self.rows[: len(values)], len(self.roll.rows)
        column = np.zeros(size)
        column[rows] = values
        if len(rows) == size:
            return Column(column)
        there = np.zeros(size, bool)
        there[rows] = True
        return Column(column, there)

    def ranked(self) -> "Pool":
        """Return the pool in the one order there is: best score first, then chunk id.

        The chunk id makes the order total, so ties never depend on the store. Few
        scores are equal, so ids are compared only where they are.
        """
        scores = self.scores[self.rows]
        # Ids are strings, and comparing them is slow; few scores tie.
        places = (-scores).argsort(kind="stable")
        rows, scores = self.rows[places], scores[places]
        [ties] = (scores[1:] == scores[:-1]).nonzero()
        if len(ties):
            rows = np.array(self._untied(rows.tolist(), ties.tolist()))
        return self.keeping(rows)

    def _untied(self, rows: list[int], ties: list[int]) -> list[int]:
        """Order by id those at the places *ties* and after, who score the same."""
        start, ids = ties[0], self.roll.ids
        for place, after in zip(ties, [*ties[1:], -1], strict=True):
            if after != place + 1:
                tied = slice(start, place + 2)
                rows[tied] = sorted(rows[tied], key=ids.__getitem__)
                start = after
        return rows

    def id_of(self, row: int) -> str:
        """Return the id of one chunk."""
        return self.roll.entries[row].id

    def seats(self, by: Precedence = "distance") -> Rows:
        """Return the rows as limits serve them: pinned, protected, then the rest.

        Among the protected the nearest comes first, or *by* score the strongest; the
        rest keep their order.
        """
        if not self.protected:
            return self.rows
        shielded = self.shielded()
        precedence = partial(self._precedence, by)
        first = sorted(self.rows[shielded].tolist(), key=precedence)
        return np.concatenate((np.array(first, np.intp), self.rows[~shielded]))

    def _precedence(self, by: Precedence, row: int) -> tuple[bool, float, str]:
        near = by == "distance"
        return (
            row not in self.roll.pinned,
            self.reading(row, "distance") if near else -self.scores.item(row),
            self.id_of(row),
        )

    def waves(self) -> list[NDArray[np.bool_] | slice]:
        """Return the places of those whom each wave of recall brought, the first first.

        All have the signal or none has: one search goes in one wave or in several.
        """
        if not self.holds("wave"):
            return [slice(None)]
        waves = self.readings("wave")
        return [waves == wave for wave in np.unique(waves)]

    def first_wave(self) -> "Pool":
        """Return those by which a question as a whole is judged, however many."""
        return self.keeping(self.rows[self.waves()[0]]) if self.holds("wave") else self
