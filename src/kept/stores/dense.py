"""The dense index of one tenant: exact-order cosine search without a graph.

Small collections are scanned in float32. Larger ones have quantised codes in memory,
which name the likely best; these are scored in float64 from the mapped rows. How many
are scored depends on the answer: more are fetched until the worst estimate fetched
lies clearly below the last place, by a multiple of the codes' measured error.

The order is cosine rounded to 9 places, then key. It depends on what the index holds,
never on how it came to hold it. The index is derived: it can be deleted and built
again from the truth.
"""

import math
import struct
from dataclasses import replace
from pathlib import Path
from typing import Self

import faiss
import numpy as np
from numpy.typing import NDArray

from kept.errors import StoreReadOnlyError
from kept.stores.codes import Codes
from kept.stores.rows import (
    IndexTorn,
    KeyTable,
    RowFiles,
    Scored,
    Snapshot,
    best,
    checksum,
    read_manifest,
    written,
)

__all__ = ["DenseIndex", "IndexTorn"]

SCANNED_WHOLE = 16_384
"""Up to so many rows no codes are made."""

_PLACES = 9
_UNIT_TOLERANCE = 1e-4
_SCAN_MARGIN = 5e-4
_FIRST_FETCH = 512
_LAST_FETCH = 8192
_CLEARLY = 3.2
_BARELY = 1.6
_GATHERED = 4096
_WORTH_CODES = 1 / 12
_MOST_DEAD = 1024
_DEAD_SHARE = 0.25
_TAIL = (1024, 8192)


class DenseIndex:
    """Unit vectors by key, and the nearest of them to a query.

    One process writes at a time; the caller holds the lock and calls `reload` first
    when another may have written. Within a process, a change excludes searches.
    """

    def __init__(self, files: RowFiles, *, writable: bool) -> None:
        self._files = files
        self._writable = writable
        self._table = KeyTable()
        self._codes: Codes | None = None
        self._seq = 0
        self._rows = 0
        self._log = 0
        self._tail = 0
        self._load()

    @classmethod
    def open(cls, folder: Path, dimension: int, *, writable: bool) -> Self:
        """Open the index in *folder*; a writer creates a missing one, empty."""
        try:
            if writable and not (folder / "manifest.json").exists():
                return cls(RowFiles.create(folder, dimension), writable=True)
            return cls(RowFiles.open(folder, dimension), writable=writable)
        except (OSError, ValueError, RuntimeError, struct.error) as error:
            raise IndexTorn(folder, str(error)) from error

    @property
    def seq(self) -> int:
        """The last change held."""
        return self._seq

    @property
    def dimension(self) -> int:
        """How long a vector is."""
        return self._files.manifest.dimension

    def __len__(self) -> int:
        return len(self._table)

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
        place = (self._rows, self._log)
        self._log = self._files.append(place, seq, rows, added, gone)
        self._take(seq, added, rows, gone)
        self._encode()

    def flush(self) -> None:
        """Make what was applied durable; compact and snapshot where it pays."""
        if not self._writable:
            return
        self._files.sync()
        dead = self._rows - len(self)
        if dead > max(_MOST_DEAD, _DEAD_SHARE * self._rows):
            self._compact()
        elif self._tail > min(max(_TAIL[0], len(self) // 16), _TAIL[1]):
            self._publish_snapshot()
            self._files.sweep()

    def reload(self) -> bool:
        """Take over what another process wrote; tell whether anything changed."""
        before = self._seq
        manifest = read_manifest(self._files.folder)
        if manifest.generation != self._files.manifest.generation:
            self._files = RowFiles.open(self._files.folder, self.dimension)
            self._load()
        else:
            self._files.manifest = manifest
            self._replay()
        return self._seq != before

    def close(self) -> None:
        """Make everything durable; the object is not used afterwards."""
        self.flush()

    def search(
        self,
        query: NDArray[np.float32],
        limit: int,
        allowed: NDArray[np.int64] | None = None,
    ) -> Scored:
        """Return keys and cosines of the *limit* nearest, of *allowed* if given."""
        unit = _unit(query)
        if limit < 1 or not len(self):
            return best(np.empty(0, np.int64), np.empty(0), 0)
        if allowed is None:
            return self._nearest(unit, limit, None)
        positions = np.unique(self._table.positions(allowed))
        positions = positions[positions >= 0]
        few = len(positions) <= max(_GATHERED, _WORTH_CODES * len(self))
        if few or self._codes is None:
            return self._scan(unit, limit, positions)
        chosen = np.zeros(len(self._table.keys), np.bool_)
        chosen[positions] = True
        return self._nearest(unit, limit, chosen)

    def cosines(
        self, query: NDArray[np.float32], keys: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Return the cosine of each of *keys*, which must all be held."""
        return self._cosines(_unit(query), self._held(keys))

    def vectors(self, keys: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the vector of each of *keys*, which must all be held, as rows."""
        return self._gather(self._held(keys))

    # -- searching ---------------------------------------------------------------

    def _nearest(
        self, unit: NDArray[np.float64], limit: int, chosen: NDArray[np.bool_] | None
    ) -> Scored:
        """Fetch by code until nothing unfetched can be among the best."""
        codes = self._codes
        share = 1.0 if chosen is None else float(chosen.mean())
        wanted = math.ceil(max(_FIRST_FETCH, 4 * limit) / share)
        while codes is not None and wanted < len(self):
            wanted = min(wanted, max(_LAST_FETCH, 2 * limit))
            positions, worst = self._likely(codes, unit, wanted)
            if chosen is not None:
                positions = positions[chosen[positions]]
            keys = self._table.keys[positions]
            found = best(keys, self._cosines(unit, positions), limit)
            last = wanted >= _LAST_FETCH
            margin = codes.spread * (_BARELY if last else _CLEARLY)
            if len(found[0]) == limit and found[1][-1] > worst + margin:
                return found
            if last:
                break
            wanted *= 2
        alive = self._table.alive if chosen is None else chosen
        return self._scan(unit, limit, np.flatnonzero(alive))

    def _likely(
        self, codes: Codes, unit: NDArray[np.float64], wanted: int
    ) -> tuple[NDArray[np.int64], float]:
        """Return the likely best positions and a bound on every other's estimate.

        Those that tie with the worst estimate are left out, since which of them was
        fetched depends on their age.
        """
        dead = self._table.dead
        positions, estimates = codes.nearest(unit.astype(np.float32), wanted + dead)
        alive = self._table.alive[positions]
        positions, estimates = positions[alive][:wanted], estimates[alive][:wanted]
        worst = float(estimates[-1])
        return positions[estimates > worst], worst

    def _scan(
        self, unit: NDArray[np.float64], limit: int, positions: NDArray[np.int64]
    ) -> Scored:
        """Score *positions* in float32, and in float64 what may be among the best."""
        query = unit.astype(np.float32)
        rough = np.empty(len(positions), np.float32)
        rows = self._files.rows(self._rows)
        if len(positions) == self._rows:
            np.matmul(rows[: self._rows], query, out=rough)
        else:
            for start in range(0, len(positions), _GATHERED):
                part = positions[start : start + _GATHERED]
                rough[start : start + len(part)] = self._gather(part) @ query
        if len(rough) > limit:
            floor = np.partition(rough, len(rough) - limit)[len(rough) - limit]
            positions = positions[rough >= floor - _SCAN_MARGIN]
        keys = self._table.keys[positions]
        return best(keys, self._cosines(unit, positions), limit)

    def _cosines(
        self, unit: NDArray[np.float64], positions: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Return cosines in float64, each row's bits the same beside any others."""
        rows = self._gather(positions).astype(np.float64)
        products = np.einsum("ij,j->i", rows, unit)
        lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
        cosines: NDArray[np.float64] = np.round(products / lengths, _PLACES) + 0.0
        return cosines

    def _gather(self, positions: NDArray[np.int64]) -> NDArray[np.float32]:
        rows = self._files.rows(self._rows)
        return rows[self._table.rows[positions]]

    def _held(self, keys: NDArray[np.int64]) -> NDArray[np.int64]:
        positions = self._table.positions(np.asarray(keys, np.int64))
        if (positions < 0).any():
            missing = int(np.asarray(keys)[positions < 0][0])
            msg = f"the index at change {self._seq} does not hold the key {missing}"
            raise KeyError(msg)
        return positions

    # -- changing ----------------------------------------------------------------

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

    def _take(
        self,
        seq: int,
        added: NDArray[np.int64],
        vectors: NDArray[np.float32],
        removed: NDArray[np.int64],
    ) -> None:
        """Change what is in memory."""
        self._table.remove(removed)
        self._table.remove(added)
        self._table.append(added, self._rows)
        self._rows += len(added)
        self._tail += len(added) + len(removed)
        self._seq = seq
        if self._codes is not None:
            self._codes.add(vectors)
        if self._table.dead > _MOST_DEAD:
            self._purge()

    def _purge(self) -> None:
        """Forget the dead: their codes go, the others close up."""
        if self._codes is not None:
            self._codes.keep(self._table.alive)
        self._table.purge()

    def _encode(self) -> None:
        """Make codes once a collection is too large to be scanned."""
        if self._codes is not None or len(self) <= SCANNED_WHOLE:
            return
        codes = Codes.empty(self.dimension)
        for start in range(0, len(self._table.keys), _GATHERED):
            stop = min(start + _GATHERED, len(self._table.keys))
            codes.add(self._gather(np.arange(start, stop)))
        self._codes = codes

    # -- files -------------------------------------------------------------------

    def _load(self) -> None:
        """Read everything anew."""
        self._table = KeyTable()
        self._codes = None
        self._seq = self._rows = self._log = self._tail = 0
        if snapshot := self._files.manifest.snapshot:
            self._restore(snapshot)
        self._replay()

    def _replay(self) -> None:
        """Take the changes that the log holds beyond what is in memory."""
        for change in self._files.changes(self._log):
            if change.first != self._rows:
                raise IndexTorn(self._files.folder, "its log does not fit its rows")
            upto = change.first + len(change.added)
            vectors = self._files.rows(upto)[change.first : upto]
            self._take(change.seq, change.added, vectors, change.removed)
            self._log = change.end
        self._encode()

    def _restore(self, snapshot: Snapshot) -> None:
        state = self._files.state_path(snapshot, "state")
        if checksum(state) != snapshot.state:
            raise IndexTorn(self._files.folder, f"{state.name} is damaged")
        with state.open("rb") as file:
            keys, rows, counts = (np.load(file) for _ in range(3))
        self._table = KeyTable.of(keys, rows)
        self._rows = int(counts[0])
        self._seq, self._log = snapshot.seq, snapshot.log
        if snapshot.codes is not None:
            path = self._files.state_path(snapshot, "codes")
            if checksum(path) != snapshot.codes:
                raise IndexTorn(self._files.folder, f"{path.name} is damaged")
            self._codes = Codes.load(path)

    def _publish_snapshot(self) -> None:
        """Write all of it down, then let the manifest name it."""
        self._purge()
        snapshot = Snapshot(self._seq, self._log, 0, None)
        state = self._files.state_path(snapshot, "state")
        with state.open("wb") as file:
            for array in (self._table.keys, self._table.rows, np.array([self._rows])):
                np.save(file, array)
        snapshot = replace(snapshot, state=written(state))
        if self._codes is not None:
            path = self._files.state_path(snapshot, "codes")
            self._codes.save(path)
            snapshot = replace(snapshot, codes=written(path))
        self._files.manifest = replace(self._files.manifest, snapshot=snapshot)
        self._files.publish()
        self._tail = 0

    def _compact(self) -> None:
        """Copy the living rows into the next generation of files."""
        self._purge()
        old = self._files
        generation = old.manifest.generation + 1
        fresh = RowFiles(
            old.folder, replace(old.manifest, generation=generation, snapshot=None)
        )
        fresh.start()
        with fresh.vectors_path.open("wb") as file:
            for start in range(0, len(self), _GATHERED):
                stop = min(start + _GATHERED, len(self))
                file.write(self._gather(np.arange(start, stop)).tobytes())
        self._table = KeyTable.of(self._table.keys, np.arange(len(self)))
        self._files, self._rows, self._log = fresh, len(self), 0
        fresh.sync()
        self._publish_snapshot()
        fresh.sweep()


def _unit(query: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return *query* at length 1, in float64."""
    wide = np.asarray(query, np.float64).reshape(-1)
    length = math.sqrt(float(np.einsum("i,i->", wide, wide)))
    if not (math.isfinite(length) and length > 0.0):
        msg = f"a query vector of length {length} has no direction; embed it again"
        raise ValueError(msg)
    return wide / length


faiss.omp_set_num_threads(1)
