"""The dense index of one tenant: exact-order cosine search without a graph.

Small collections are scanned in float32. Larger ones have quantised codes in memory,
which name the likely best; these are scored in float64 from the mapped rows. How many
are scored depends on the answer: more are fetched until the worst estimate fetched
lies clearly below the last place, by a multiple of the codes' measured error.

The order is cosine rounded to 9 places, then key. A scan is exact. With codes it is
exact but for errors beyond the margin, and so is its independence of history: at the
bottom of what is fetched, the engine's choice depends on the order of arrival, and the
margin keeps that away from the answer. Three histories of 100,000 rows gave the exact
order for all of 400 questions. The index is derived: it can be deleted and built again
from the truth.
"""

import math
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from kept.errors import StoreReadOnlyError
from kept.kernel.cosines import exact_cosines, products, products_of, unit_of
from kept.stores.index_port import Pause, at_once, near_by_search
from kept.stores.sqlite.index.codes import Codes
from kept.stores.sqlite.index.dense_contents import Contents
from kept.stores.sqlite.index.vector_file import (
    IndexTorn,
    RowFiles,
    Scored,
    best,
    unwritten,
)

__all__ = ["DenseIndex", "IndexTorn"]

_DAMAGE = (OSError, ValueError, EOFError, RuntimeError, struct.error)
_UNIT_TOLERANCE = 1e-4
# float32 products are off by less than this; whatever lies that close to the last place
# is scored again in float64.
_SCAN_MARGIN = 5e-4
# Standard deviations of the codes' error between the worst estimate fetched and the
# last place. With 3.6, three histories of 100,000 rows gave the exact order for all of
# 400 questions; at the deepest fetch 1.8 is enough, because so many more were scored.
_CLEARLY = 3.6
# Score three times the wanted first: most of the others have no hope then, and each of
# them would cost a read of a row.
_LIKELIEST = 3
_BARELY = 1.8
_GATHERED = 4096
# First fetches were measured at this size; larger collections fetch more (size to the
# power of 0.3), smaller ones never less.
_USUAL_SIZE = 100_000
# From a quarter of all rows on, one product over the whole mapped file is quicker than
# gathering rows.
_MOSTLY = 0.25
# Codes cannot be scanned in part, so a filter that lets fewer through is quicker by
# scanning their float32 rows.
_WORTH_CODES = 1 / 12
_SHARE_A_SCAN = 4
_MOST_SHARING = 64


@dataclass(frozen=True)
class ScanEffort:
    """How much is scanned and fetched: a matter of time, not of the answer.

    Measured with MiniLM's vectors: scanning is quicker than codes on 16,000 rows and,
    in the domain, slower on 32,000; on 100,000 rows 512 fetched are enough for nine
    in ten questions in the domain, and seldom for one off every topic.
    """

    scanned_whole: int = 20_000
    first_fetch: int = 512
    last_fetch: int = 8192


_USUAL = ScanEffort()


class DenseIndex:
    """Unit vectors by key, and the nearest of them to a query.

    One process writes at a time; the caller holds the lock and calls `reload` first
    when another may have written. Within a process, a change excludes searches.
    """

    def __init__(
        self, contents: Contents, effort: ScanEffort, *, writable: bool
    ) -> None:
        self._contents = contents
        self._effort = effort
        self._writable = writable

    @classmethod
    def open(
        cls,
        folder: Path,
        dimension: int,
        *,
        writable: bool,
        effort: ScanEffort = _USUAL,
    ) -> Self:
        """Open the index in *folder*; a writer creates a missing one, empty."""
        try:
            if writable and not (folder / "manifest.json").exists():
                RowFiles.create(folder, dimension)
            contents = Contents.read(folder, dimension, effort.scanned_whole)
        except _DAMAGE as error:
            raise IndexTorn(folder, str(error)) from error
        return cls(contents, effort, writable=writable)

    @property
    def seq(self) -> int:
        """The last change held."""
        return self._contents.seq

    @property
    def dimension(self) -> int:
        """How long a vector is."""
        return self._contents.dimension

    def __len__(self) -> int:
        return len(self._contents)

    def apply(
        self,
        seq: int,
        keys: NDArray[np.int64],
        vectors: NDArray[np.float32],
        removed: NDArray[np.int64],
    ) -> None:
        """Take the change numbered *seq*: *removed* out first, then *keys* in."""
        if not self._writable:
            msg = (
                "this dense index was opened to be read; open it writable to change it"
            )
            raise StoreReadOnlyError(msg)
        added = np.ascontiguousarray(keys, np.int64)
        rows = np.ascontiguousarray(vectors, np.float32)
        self._check(added, rows)
        gone = np.ascontiguousarray(removed, np.int64)
        try:
            self._contents.write(seq, added, rows, gone)
        except OSError as error:
            raise unwritten(self._contents.files.folder, error) from error

    def flush(self) -> None:
        """Make what was applied durable; compact and snapshot where it pays."""
        if not self._writable:
            return
        try:
            self._contents.flush()
        except OSError as error:
            raise unwritten(self._contents.files.folder, error) from error

    def reload(self) -> bool:
        """Take over what another process wrote; return whether anything changed."""
        before = self.seq
        try:
            self._contents.reload()
        except _DAMAGE as error:
            raise IndexTorn(self._contents.files.folder, str(error)) from error
        return self.seq != before

    def close(self) -> None:
        """Make everything durable; the object is not used afterwards."""
        self.flush()

    def search(
        self,
        query: NDArray[np.float32],
        limit: int,
        allowed: NDArray[np.int64] | None = None,
        *,
        pause: Pause = at_once,
    ) -> Scored:
        """Return keys and cosines of the *limit* nearest, of *allowed* if given.

        *pause* is called between the pass over the codes, which other threads run
        beside, and the scoring, which they would interrupt.
        """
        unit = unit_of(query)
        if limit < 1 or not len(self):
            return best(np.empty(0, np.int64), np.empty(0), 0)
        if allowed is None:
            return self._nearest(unit, limit, None, pause)
        positions = np.unique(self._contents.table.positions(allowed))
        positions = positions[positions >= 0]
        few = len(positions) <= max(_GATHERED, _WORTH_CODES * len(self))
        if few or self._contents.codes is None:
            pause()
            return self._scan(unit, limit, positions)
        chosen = np.zeros(len(self._contents.table.keys), np.bool_)
        chosen[positions] = True
        return self._nearest(unit, limit, chosen, pause)

    def near(
        self, queries: NDArray[np.float32], at_least: float, most: int
    ) -> list[NDArray[np.int64]]:
        """Return the keys whose cosine to each query is *at_least* so much.

        Of more than *most* only the nearest are returned. Many queries share a scan.
        """
        sharing = min(len(queries), _MOST_SHARING) // _SHARE_A_SCAN
        worth = self._effort.scanned_whole * max(1, sharing)
        if self._contents.rows > worth:
            return near_by_search(self.search, queries, at_least, most)
        units = [unit_of(query) for query in queries]
        matrix = np.array(units, np.float32).reshape(len(units), self.dimension)
        found: list[list[NDArray[np.int64]]] = [[] for _ in units]
        for first in range(0, self._contents.rows, _GATHERED):
            some = self._contents.mapped()[first : first + _GATHERED]
            near = products(some, matrix) >= at_least - _SCAN_MARGIN
            rows, places = np.divmod(np.flatnonzero(near), len(units))
            for place in np.unique(places):
                found[place].append(first + rows[places == place])
        return [
            self._at_least(unit, self._contents.table.at(rows), at_least, most)
            for unit, rows in zip(units, found, strict=True)
        ]

    def _at_least(
        self,
        unit: NDArray[np.float64],
        positions: NDArray[np.int64],
        at_least: float,
        most: int,
    ) -> NDArray[np.int64]:
        if not len(positions):
            return positions
        keys, cosines = self._scored(unit, positions, most)
        return keys[cosines >= at_least]

    def keys(self) -> NDArray[np.int64]:
        """Return every key that is held, in order."""
        table = self._contents.table
        return np.sort(table.keys[table.alive])

    def rank(
        self,
        query: NDArray[np.float32],
        key: int,
        allowed: NDArray[np.int64] | None = None,
    ) -> int:
        """Return the place of *key* among all, or among *allowed*; 1 is the nearest."""
        unit = unit_of(query)
        table = self._contents.table
        positions = np.flatnonzero(table.alive)
        if allowed is not None:
            positions = np.unique(table.positions(allowed))
            positions = positions[positions >= 0]
        [own] = self._cosines(unit, self._held(np.array([key], np.int64)))
        rough = self._products(unit.astype(np.float32), positions)
        close = np.abs(rough - own) <= _SCAN_MARGIN
        exact = self._cosines(unit, positions[close])
        ahead = (exact > own) | ((exact == own) & (table.keys[positions[close]] < key))
        return int((rough > own + _SCAN_MARGIN).sum() + ahead.sum()) + 1

    def cosines(
        self, query: NDArray[np.float32], keys: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Return the cosine of each of *keys*, which must all be held."""
        return self._cosines(unit_of(query), self._held(keys))

    def vectors(self, keys: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the vector of each of *keys*, which must all be held, as rows."""
        return self._contents.gather(self._held(keys))

    def _nearest(
        self,
        unit: NDArray[np.float64],
        limit: int,
        chosen: NDArray[np.bool_] | None,
        pause: Pause,
    ) -> Scored:
        """Fetch by code until nothing unfetched can be among the best.

        Those that tie with the worst estimate are left out, since which of them was
        fetched depends on their age.
        """
        codes = self._contents.codes
        share = 1.0 if chosen is None else float(chosen.mean())
        first = self._effort.first_fetch * max(1.0, len(self) / _USUAL_SIZE) ** 0.3
        wanted = math.ceil(max(first, 4 * limit) / share)
        most = max(self._effort.last_fetch, 2 * limit)
        while codes is not None and min(wanted, most) < len(self):
            wanted = min(wanted, most)
            positions, estimates = self._likely(codes, unit, wanted)
            pause()
            # Ties with the worst estimate are left out: which of them was fetched
            # depends on the order of arrival.
            above = estimates > estimates[-1]
            if chosen is not None:
                above &= chosen[positions]
            margin = codes.spread * (_CLEARLY if wanted < most else _BARELY)
            found, goal = self._best_of(
                unit, limit, positions[above], estimates[above], margin
            )
            if estimates[-1] < goal:
                return found
            if wanted == most:
                break
            wanted = _deeper(estimates, goal)
        pause()
        alive = self._contents.table.alive if chosen is None else chosen
        return self._scan(unit, limit, np.flatnonzero(alive))

    def _best_of(
        self,
        unit: NDArray[np.float64],
        limit: int,
        positions: NDArray[np.int64],
        estimates: NDArray[np.float32],
        margin: float,
    ) -> tuple[Scored, float]:
        """Return the best of *positions*, and the estimate that has no hope to be.

        The likeliest are scored first. Of the others, only those are that may still
        be among the best then: they are fewer than half, and each costs a read.
        """
        likeliest = _LIKELIEST * limit
        found = self._scan(unit, limit, positions[:likeliest])
        goal = _goal(found, limit, margin)
        hopeful = positions[likeliest:][estimates[likeliest:] >= goal]
        if len(hopeful):
            others = self._scan(unit, limit, hopeful)
            keys = np.concatenate([found[0], others[0]])
            found = best(keys, np.concatenate([found[1], others[1]]), limit)
        return found, _goal(found, limit, margin)

    def _likely(
        self, codes: Codes, unit: NDArray[np.float64], wanted: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return living positions and their estimates, the *wanted* best."""
        # Dead rows keep their codes until the next purge, so fetch as many more.
        fetched = wanted + self._contents.table.dead
        positions, estimates = codes.nearest(unit.astype(np.float32), fetched)
        alive = self._contents.table.alive[positions]
        return positions[alive][:wanted], estimates[alive][:wanted]

    def _scan(
        self, unit: NDArray[np.float64], limit: int, positions: NDArray[np.int64]
    ) -> Scored:
        """Score *positions* in float32, and in float64 what may be among the best."""
        rough = self._products(unit.astype(np.float32), positions)
        if len(rough) > limit:
            floor = np.partition(rough, len(rough) - limit)[len(rough) - limit]
            positions = positions[rough >= floor - _SCAN_MARGIN]
        return self._scored(unit, positions, limit)

    def _products(
        self, query: NDArray[np.float32], positions: NDArray[np.int64]
    ) -> NDArray[np.float32]:
        """Return products in float32, good to `_SCAN_MARGIN`."""
        if _MOSTLY * self._contents.rows <= len(positions):
            products = products_of(self._contents.mapped(), query)
            return products[self._contents.table.rows[positions]]
        products = np.empty(len(positions), np.float32)
        for start in range(0, len(positions), _GATHERED):
            part = positions[start : start + _GATHERED]
            rows = self._contents.gather(part)
            products[start : start + len(part)] = products_of(rows, query)
        return products

    def _scored(
        self, unit: NDArray[np.float64], positions: NDArray[np.int64], limit: int
    ) -> Scored:
        return best(
            self._contents.table.keys[positions], self._cosines(unit, positions), limit
        )

    def _cosines(
        self, unit: NDArray[np.float64], positions: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        return exact_cosines(unit, self._contents.gather(positions))

    def _held(self, keys: NDArray[np.int64]) -> NDArray[np.int64]:
        positions = self._contents.table.positions(np.asarray(keys, np.int64))
        if (positions < 0).any():
            missing = int(np.asarray(keys)[positions < 0][0])
            msg = f"the index at change {self.seq} does not hold the key {missing}"
            raise KeyError(msg)
        return positions

    def _check(self, keys: NDArray[np.int64], vectors: NDArray[np.float32]) -> None:
        if vectors.shape != (len(keys), self.dimension):
            msg = (
                f"{len(keys)} keys came with vectors of shape {vectors.shape}; "
                f"expected ({len(keys)}, {self.dimension})"
            )
            raise ValueError(msg)
        lengths = np.linalg.norm(vectors, axis=1)
        if not (np.abs(lengths - 1.0) <= _UNIT_TOLERANCE).all():
            msg = "a vector is not of length 1; the embedder must return unit vectors"
            raise ValueError(msg)


def _goal(found: Scored, limit: int, margin: float) -> float:
    """Return the estimate below which nothing can be among the *limit* best."""
    return float(found[1][-1]) - margin if len(found[1]) == limit else -math.inf


def _deeper(estimates: NDArray[np.float32], goal: float) -> int:
    """Guess how many to fetch for the worst estimate to fall below *goal*.

    Each doubling has lowered it by about as much as the last one did.
    """
    count = len(estimates)
    step = float(estimates[count // 2] - estimates[-1])
    missing = float(estimates[-1]) - goal
    doublings = missing / step if 0.0 < missing < 3.0 * step else 1.0
    return math.ceil(count * max(2.0, 1.2 * math.exp2(doublings)))
