"""A shelf: a snapshot of one tenant, as a query reads it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from kept.errors import NotFoundError
from kept.kernel.cosines import exact_cosines, unit_of
from kept.kernel.filters import Filters
from kept.kernel.model import Chunk, Document
from kept.kernel.pool import Pool, Roll
from kept.kernel.signals import Floats, QueryTerms, bm25, measured
from kept.kernel.word_weights import weighed
from kept.search.ports import Leg
from kept.stores import queries as reading
from kept.stores.filter_sql import allowed_chunks
from kept.stores.index_port import Indexes, Pause, at_once
from kept.stores.row_writer import ORD_BITS
from kept.stores.sql import Connection, Row, each, every, first, marks
from kept.text.tokens import analyse_query, term_key

FIRST_DEPTH = 256
DEEPER = 8
# Well below SQLite's limit of 32,766 values in a statement.
READ_AT_ONCE = 1_000

Keys = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ScoredLeg:
    """What one way of searching brought back, best first."""

    keys: Keys
    scores: Floats


class _Read:
    """A chunk as it was read; it is made when it is looked at, as few are."""

    __slots__ = ("_made", "_row", "document", "id")

    def __init__(self, document: Document, row: Row) -> None:
        self.id = reading.chunk_id(document.id, row[0])
        self.document = document
        self._row = row
        self._made: Chunk | None = None

    @property
    def chunk(self) -> Chunk:
        """The chunk itself."""
        if self._made is None:
            self._made = reading.chunk_of(self.document.id, self._row)
        return self._made

    @property
    def terms(self) -> bytes:
        """Its terms, packed."""
        terms: bytes = self._row[9]
        return terms

    @property
    def length(self) -> int:
        """How many terms it has."""
        length: int = self._row[10]
        return length


@dataclass(frozen=True, slots=True)
class SqlShelf:
    """One tenant's chunks, their statistics and their indexes, all of one state.

    The indexes hold every chunk; *readable* are those that the caller may read, None
    being all. Whatever the connection shows is limited to these, too.
    """

    connection: Connection
    indexes: Indexes
    tenant: int
    state: str
    embedder: tuple[str, int] | None
    chunks: int
    total_length: int
    documents: dict[int, Document]
    readable: Keys | None = None
    read: dict[int, _Read] = field(default_factory=dict)

    def languages(self) -> list[str | None]:
        """Return the languages of the chunks, the most common first.

        None stands for chunks whose language was left open.
        """
        rows = every(
            self.connection,
            "SELECT language FROM languages WHERE tenant_no = ?"
            " GROUP BY language ORDER BY SUM(chunks) DESC, language",
            (self.tenant,),
        )
        return [row[0] or None for row in rows]

    def weigh(self, question: str) -> QueryTerms:
        """Return the words of a question with what they weigh here."""
        spelled = analyse_query(question, self.languages())
        known = self.holding(one for word in spelled for one in word.every)
        return weighed(spelled, known, self.chunks, self.total_length)

    def holding(self, words: Iterable[str]) -> Mapping[str, int]:
        """Return how many chunks hold each of *words*."""
        keys = {term_key(word): word for word in words}
        rows = every(
            self.connection,
            "SELECT key, SUM(df) FROM terms WHERE tenant_no = ?"  # noqa: S608 -- marks only
            f" AND key IN ({marks(len(keys))}) GROUP BY key",
            (self.tenant, *keys),
        )
        return dict.fromkeys(keys.values(), 0) | {keys[key]: df for key, df in rows}

    def allowed(self, filters: Filters) -> Keys | None:
        """Return the chunks that *filters* let through; None means all."""
        if filters.empty:
            return self.readable
        return allowed_chunks(self.connection, self.tenant, filters)

    def dense_leg(
        self,
        vector: NDArray[np.float32],
        depth: int,
        allowed: Keys | None,
        *,
        pause: Pause = at_once,
    ) -> ScoredLeg:
        """Return the nearest chunks by exact cosine."""
        return ScoredLeg(
            *self.indexes.dense.search(vector, depth, allowed, pause=pause)
        )

    def keyword_leg(
        self, terms: QueryTerms, depth: int, allowed: Keys | None
    ) -> ScoredLeg:
        """Return the best chunks by exact BM25.

        They are read at once, while the question is still being embedded.
        """
        leg = self._keyword_leg(terms, depth, allowed)
        self._fetch(leg.keys.tolist())
        return leg

    def _keyword_leg(
        self, terms: QueryTerms, depth: int, allowed: Keys | None
    ) -> ScoredLeg:

        def exact(keys: Keys) -> Floats:
            # The first proposals will most likely be handed over, so their whole rows
            # are read at once instead of twice.
            whole = len(keys) <= min(depth, READ_AT_ONCE)
            lengths, blobs = (self._whole if whole else self._terms_of)(keys)
            return bm25(terms, terms.occurrences(blobs), lengths)

        return ScoredLeg(
            *self.indexes.keyword.search(
                terms.proposals(),
                depth,
                exact,
                average_length=terms.average_length,
                allowed=allowed,
            )
        )

    def ranks(
        self,
        vector: NDArray[np.float32],
        terms: QueryTerms,
        chunk_id: str,
        allowed: Keys | None,
    ) -> dict[str, int | None]:
        """Return a chunk's place in each leg, however deep; None if in no place."""
        [key] = _numbers(self.connection, self.tenant, [chunk_id])
        return {
            "dense": self.indexes.dense.rank(vector, key, allowed),
            "keyword": self._keyword_rank(terms, key, allowed),
        }

    def _keyword_rank(
        self, terms: QueryTerms, key: int, allowed: Keys | None
    ) -> int | None:
        """Search deeper until the chunk turns up, or there is nothing deeper."""
        depth = FIRST_DEPTH
        while True:
            leg = self._keyword_leg(terms, depth, allowed)
            [places] = np.nonzero(leg.keys == key)
            if len(places):
                return int(places[0]) + 1
            if len(leg.keys) < depth:
                return None
            depth *= DEEPER

    def candidates(
        self,
        vector: NDArray[np.float32],
        terms: QueryTerms,
        legs: Mapping[str, Leg],
        pinned: Iterable[str] = (),
    ) -> Pool:
        """Return every chunk of the *legs* with all that was measured of it."""
        forced = _numbers(self.connection, self.tenant, pinned)
        # Sorted, so that rows, columns and therefore every later sum come in one order,
        # whichever leg found them.
        keys = sorted(
            {*forced, *(key for leg in legs.values() for key in leg.keys.tolist())}
        )
        self._fetch(keys)
        rows = [self.read[key] for key in keys]
        found = np.array(keys, dtype=np.int64)
        vectors = self.indexes.dense.vectors(found)
        cosines = exact_cosines(unit_of(vector), vectors)
        occurrences = terms.occurrences([row.terms for row in rows])
        lengths = np.array([row.length for row in rows], dtype=np.float64)
        columns = measured(terms, cosines, occurrences, lengths)
        for name, leg in legs.items():
            held = set(leg.keys.tolist())
            columns[f"in_{name}"] = np.array([float(key in held) for key in keys])
        return Pool.on(Roll(rows, cosines, columns, vectors, found >> ORD_BITS))

    def _fetch(self, keys: Iterable[int]) -> None:
        """Read those of the chunks and their documents that were not read yet."""
        wanted = [key for key in keys if key not in self.read]
        for start in range(0, len(wanted), READ_AT_ONCE):
            part = wanted[start : start + READ_AT_ONCE]
            numbers = dict.fromkeys(key >> ORD_BITS for key in part)
            unknown = [number for number in numbers if number not in self.documents]
            if unknown:
                self.documents.update(reading.documents_by_no(self.connection, unknown))
            for row in reading.chunk_rows(self.connection, part):
                self.read[row[8]] = _Read(self.documents[row[8] >> ORD_BITS], row)

    def _whole(self, keys: Keys) -> tuple[Floats, list[bytes]]:
        """Return lengths and terms of chunks that are wanted with all that they hold.

        As few as are asked for are most likely those that will be handed over.
        """
        self._fetch(keys.tolist())
        rows = [self.read[key] for key in keys.tolist()]
        lengths = np.array([row.length for row in rows], dtype=np.float64)
        return lengths, [row.terms for row in rows]

    def _terms_of(self, keys: Keys) -> tuple[Floats, list[bytes]]:
        rows = each(
            self.connection,
            "SELECT length, terms FROM chunks WHERE no = ?",
            [(key,) for key in keys.tolist()],
        )
        lengths: list[float] = []
        blobs: list[bytes] = []
        for length, blob in rows:
            lengths.append(length)
            blobs.append(blob)
        return np.array(lengths, dtype=np.float64), blobs


def _numbers(
    connection: Connection, tenant: int, chunk_ids: Iterable[str]
) -> list[int]:
    """Return the numbers of chunks that are named by their ids."""
    found: list[int] = []
    for chunk_id in chunk_ids:
        document, _, place = chunk_id.rpartition(":")
        row = first(
            connection,
            "SELECT c.no FROM documents d JOIN chunks c ON c.document_no = d.no"
            " WHERE d.tenant_no = ? AND d.id = ? AND c.ord = ? AND d.live",
            (tenant, document, int(place) if place.isdigit() else -1),
        )
        if row is None:
            raise NotFoundError("chunk", chunk_id, "it cannot be pinned")
        found.append(row[0])
    return found
