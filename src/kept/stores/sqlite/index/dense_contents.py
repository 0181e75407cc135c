"""What a dense index holds in memory, and how it comes from the files and back."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from kept.stores.sqlite.index.codes import Codes
from kept.stores.sqlite.index.vector_file import (
    IndexTorn,
    RowFiles,
    Snapshot,
    checksum,
    read_manifest,
    written,
)

_UNSORTED = 4096
_AT_ONCE = 4096
# Compaction rewrites every row, so it waits until a quarter is dead, and for small
# indexes until a thousand are.
_MOST_DEAD = 1024
_DEAD_SHARE = 0.25
# A snapshot is written when the log has grown by a sixteenth of the rows, within these
# bounds: replaying more would slow the next start, writing more often every flush.
_TAIL = (1024, 8192)
_TRIES = 3


class KeyTable:
    """Keys in order of arrival, which of them live, and the way back from a key.

    ``keys[p]`` lives in the file at row ``rows[p]`` if ``alive[p]``.
    """

    def __init__(self) -> None:
        self.keys: NDArray[np.int64] = np.empty(0, np.int64)
        self.rows: NDArray[np.uint32] = np.empty(0, np.uint32)
        self.alive: NDArray[np.bool_] = np.empty(0, np.bool_)
        self.dead = 0
        self._sort()

    @classmethod
    def of(cls, keys: NDArray[np.int64], rows: NDArray[np.integer]) -> Self:
        """Return a table of *keys*, all alive, at *rows*."""
        table = cls()
        table.keys = np.asarray(keys, np.int64)
        table.rows = rows.astype(np.uint32)
        table.alive = np.ones(len(keys), np.bool_)
        table._sort()
        return table

    def __len__(self) -> int:
        return len(self.keys) - self.dead

    def append(self, keys: NDArray[np.int64], first_row: int) -> None:
        """Add *keys*, none of which lives here, at rows *first_row* onwards."""
        before = len(self.keys)
        fresh = np.arange(first_row, first_row + len(keys), dtype=np.uint32)
        self.keys = np.concatenate([self.keys, keys])
        self.rows = np.concatenate([self.rows, fresh])
        self.alive = np.concatenate([self.alive, np.ones(len(keys), np.bool_)])
        self._tail.update(
            zip(keys.tolist(), range(before, len(self.keys)), strict=True)
        )
        if len(self._tail) > _UNSORTED:
            self._sort()

    def positions(self, keys: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return each key's position, or -1 where it does not live here."""
        found = np.full(len(keys), -1, np.int64)
        if len(self._sorted):
            place = np.searchsorted(self._sorted, keys)
            place[place == len(self._sorted)] = 0
            hit = self._sorted[place] == keys
            found[hit] = self._places[place[hit]]
        if self._tail:
            tail = (self._tail.get(key, -1) for key in keys.tolist())
            found = np.maximum(found, np.fromiter(tail, np.int64, len(keys)))
        held = found >= 0
        found[held] = np.where(self.alive[found[held]], found[held], -1)
        return found

    def at(self, rows: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
        """Return the positions that live at *rows*, which come in parts."""
        if not rows:
            return np.empty(0, np.int64)
        wanted = np.concatenate(rows)
        # Rows only ever grow with positions.
        found = np.searchsorted(self.rows, wanted).astype(np.int64)
        # Keep the index valid; the comparison below rejects a row that is not there.
        found[found == len(self.rows)] = 0
        held: NDArray[np.bool_] = (self.rows[found] == wanted) & self.alive[found]
        return found[held]

    def remove(self, keys: NDArray[np.int64]) -> None:
        """Mark those of *keys* that live here as dead."""
        positions = np.unique(self.positions(keys))
        positions = positions[positions >= 0]
        self.alive[positions] = False
        self.dead += len(positions)

    def purge(self) -> None:
        """Forget the dead; the living close up in order."""
        if self.dead:
            self.keys = self.keys[self.alive]
            self.rows = self.rows[self.alive]
            self.alive = np.ones(len(self.keys), np.bool_)
            self.dead = 0
            self._sort()

    def _sort(self) -> None:
        """Sort the living keys; later ones wait in a small table of their own."""
        living = np.flatnonzero(self.alive).astype(np.uint32)
        order = np.argsort(self.keys[living], kind="stable")
        self._places = living[order]
        self._sorted = self.keys[self._places]
        self._tail: dict[int, int] = {}


class Contents:
    """The rows, keys and codes of an index at change *seq*.

    Codes are made once there are more than *scanned_whole* rows.
    """

    def __init__(self, files: RowFiles, scanned_whole: int) -> None:
        self.files = files
        self.table = KeyTable()
        self.codes: Codes | None = None
        self.seq = 0
        self.rows = 0
        self._scanned_whole = scanned_whole
        self._log = 0
        self._tail = 0
        self._load()

    @classmethod
    def read(cls, folder: Path, dimension: int, scanned_whole: int) -> Self:
        """Read what *folder* holds, again if a writer moved on meanwhile."""
        for _ in range(_TRIES):
            try:
                return cls(RowFiles.open(folder, dimension), scanned_whole)
            # A writer that compacts deletes the old generation after naming the new
            # one: read the manifest again.
            except FileNotFoundError:
                continue
        raise IndexTorn(folder, "files that its manifest names are missing")

    @property
    def dimension(self) -> int:
        """How long a vector is."""
        return self.files.manifest.dimension

    def __len__(self) -> int:
        return len(self.table)

    def mapped(self) -> NDArray[np.float32]:
        """Return all rows of the file, dead ones too, mapped and not read."""
        return self.files.rows(self.rows)[: self.rows]

    def gather(self, positions: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the vectors at *positions*, as rows."""
        return self.files.gathered(self.table.rows[positions], self.rows)

    def write(
        self,
        seq: int,
        added: NDArray[np.int64],
        vectors: NDArray[np.float32],
        removed: NDArray[np.int64],
    ) -> None:
        """Log a change and take it: *removed* out first, then *added* in."""
        place = (self.rows, self._log)
        self._log = self.files.append(place, seq, vectors, added, removed)
        self._take(seq, added, vectors, removed)
        self._encode()

    def flush(self) -> None:
        """Make everything durable; compact and snapshot where it pays."""
        self.files.sync()
        dead = self.rows - len(self)
        if dead > max(_MOST_DEAD, _DEAD_SHARE * self.rows):
            self._compact()
        elif self._tail > min(max(_TAIL[0], len(self) // 16), _TAIL[1]):
            self._publish()

    def reload(self) -> None:
        """Take over what another process wrote."""
        manifest = read_manifest(self.files.folder)
        # Another process compacted or rebuilt the index: none of the positions in
        # memory is valid.
        if manifest.generation != self.files.manifest.generation:
            self.files = RowFiles.open(self.files.folder, self.dimension)
            self._load()
        else:
            self.files.manifest = manifest
            self.files.demand(self.rows)
            self._replay()

    def _take(
        self,
        seq: int,
        added: NDArray[np.int64],
        vectors: NDArray[np.float32],
        removed: NDArray[np.int64],
    ) -> None:
        """Change what is in memory."""
        self.table.remove(removed)
        # A key that is added again replaces its row.
        self.table.remove(added)
        self.table.append(added, self.rows)
        self.rows += len(added)
        self._tail += len(added) + len(removed)
        self.seq = seq
        if self.codes is not None:
            self.codes.add(vectors)
        if self.table.dead > _MOST_DEAD:
            self._purge()

    def _purge(self) -> None:
        """Forget the dead: their codes go, the others close up."""
        if self.codes is not None:
            self.codes.keep(self.table.alive)
        self.table.purge()

    def _encode(self) -> None:
        """Make codes once there is too much to be scanned."""
        if self.codes is not None or len(self) <= self._scanned_whole:
            return
        codes = Codes.empty(self.dimension)
        held = np.arange(len(self.table.keys))
        for start in range(0, len(held), _AT_ONCE):
            codes.add(self.gather(held[start : start + _AT_ONCE]))
        self.codes = codes

    def _load(self) -> None:
        """Read everything again."""
        self.table = KeyTable()
        self.codes = None
        self.seq = self.rows = self._log = self._tail = 0
        if snapshot := self.files.manifest.snapshot:
            self._restore(snapshot)
        self._replay()

    def _replay(self) -> None:
        """Take the changes that the log holds beyond what is in memory."""
        for change in self.files.changes(self._log):
            if change.first != self.rows:
                raise IndexTorn(self.files.folder, "its log does not fit its rows")
            upto = change.first + len(change.added)
            vectors = self.files.rows(upto)[change.first : upto]
            self._take(change.seq, change.added, vectors, change.removed)
            self._log = change.end
        self._encode()

    def _restore(self, snapshot: Snapshot) -> None:
        """Begin with a state that was written down whole."""
        state = self.files.state_path(snapshot, "state")
        if checksum(state) != snapshot.state:
            raise IndexTorn(self.files.folder, f"{state.name} is damaged")
        with state.open("rb") as file:
            keys, rows, counts = (np.load(file) for _ in range(3))
        self.table = KeyTable.of(keys, rows)
        self.rows = int(counts[0])
        self.seq, self._log = snapshot.seq, snapshot.log
        if snapshot.codes is not None:
            path = self.files.state_path(snapshot, "codes")
            if checksum(path) != snapshot.codes:
                raise IndexTorn(self.files.folder, f"{path.name} is damaged")
            self.codes = Codes.load(path)

    def _publish(self) -> None:
        """Write all of it down, then let the manifest name it."""
        self._purge()
        snapshot = Snapshot(self.seq, self._log, 0, None)
        state = self.files.state_path(snapshot, "state")
        with state.open("wb") as file:
            for array in (self.table.keys, self.table.rows, np.array([self.rows])):
                np.save(file, array)
        snapshot = replace(snapshot, state=written(state))
        if self.codes is not None:
            path = self.files.state_path(snapshot, "codes")
            self.codes.save(path)
            snapshot = replace(snapshot, codes=written(path))
        self.files.manifest = replace(self.files.manifest, snapshot=snapshot)
        self.files.publish()
        self.files.sweep()
        self._tail = 0

    def _compact(self) -> None:
        """Copy the living rows into the next generation of files."""
        self._purge()
        manifest = self.files.manifest
        fresh = RowFiles(
            self.files.folder,
            replace(manifest, generation=manifest.generation + 1, snapshot=None),
        )
        fresh.start()
        held = np.arange(len(self))
        with fresh.vectors_path.open("wb") as file:
            for start in range(0, len(held), _AT_ONCE):
                file.write(self.gather(held[start : start + _AT_ONCE]).tobytes())
        self.table = KeyTable.of(self.table.keys, held)
        self.files, self.rows, self._log = fresh, len(held), 0
        fresh.sync()
        self._publish()
