"""A view of a tenant's collection: the server proposes, exact scores decide.

The server scores in float32, its graph may miss one, and its statistics of words
count what was removed. So it is only asked for proposals, more than are wanted, and
every one is scored in float64 from the truth. More is asked for until, by the
server's own scores, nothing that was not proposed can enter the answer.

The collection may be ahead of the snapshot that a query reads. What the snapshot does
not show is left out; what has left the collection since is put beside the proposals.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kept.kernel.cosines import exact_cosines, unit_of
from kept.kernel.signals import K1
from kept.stores.index_port import Keys, Pause, at_once, near_by_search
from kept.stores.milvus.changes import Truth
from kept.stores.milvus.collection import MilvusCollection
from kept.stores.milvus.server import MOST_FOUND
from kept.stores.milvus.server_errors import CollectionAwayError
from kept.stores.milvus.term_names import name_of, question_of
from kept.stores.row_writer import ORD_BITS
from kept.stores.sql import Connection
from kept.stores.sqlite.index.vector_file import Scored, best

FIRST_DEPTH = 256
DEEPER = 4
FEW_ALLOWED = 512
NAMED_DOCUMENTS = 20_000
_SLACK = 1e-6
# Our score over the server's is about the same for all chunks; as long as the ratios
# differ by less than this, the last proposal bounds the unseen.
_AGREE = 1.1

Floats = NDArray[np.float64]
Exact = Callable[[Keys], Floats]
Propose = Callable[[int, float], Scored]
Enough = Callable[[Floats, Floats, float], bool]


@dataclass(frozen=True, slots=True)
class JudgedProposals:
    """A leg's proposals, judged: those of the snapshot that may be answered with."""

    truth: Truth
    exact: Exact
    limit: int
    allowed: Keys | None

    def judged(self, keys: Keys) -> Scored:
        """Return those of *keys* that count, with their exact scores."""
        shown = self.truth.live(np.unique(keys[keys >= 0]))
        if self.allowed is not None:
            shown = shown[np.isin(shown, self.allowed)]
        return shown, self.exact(shown)

    def deepened(self, propose: Propose, enough: Enough) -> Scored:
        """Ask for more until no unseen chunk can be among the best."""
        depth = min(max(FIRST_DEPTH, 2 * self.limit), MOST_FOUND)
        floor = -np.inf
        while True:
            named, proposed = propose(depth, floor)
            keys, scores = self.judged(named)
            if len(scores) >= self.limit:
                place = len(scores) - self.limit
                floor = float(np.partition(scores, place)[place])
            if len(named) < depth or depth == MOST_FOUND:
                return keys, scores
            order = np.argsort(named)
            known = order[np.searchsorted(named, keys, sorter=order)]
            if enough(proposed[known] if len(keys) else proposed[:0], scores, floor):
                return keys, scores
            depth = min(DEEPER * depth, MOST_FOUND)


@dataclass(frozen=True, slots=True)
class _View:
    """What both legs look at: the server's collection, and the truth behind it."""

    collection: MilvusCollection
    truth: Truth
    asked: Callable[[Callable[[], Scored]], Scored]

    @property
    def seq(self) -> int:
        """The last change held."""
        return self.collection.seq


@dataclass(frozen=True, slots=True)
class DenseView(_View):
    """The nearest chunks by exact cosine."""

    def search(
        self,
        query: NDArray[np.float32],
        limit: int,
        allowed: Keys | None = None,
        *,
        pause: Pause = at_once,
    ) -> Scored:
        """Return keys and cosines of the *limit* nearest, of *allowed* if given."""
        pause()
        unit = unit_of(query)
        vector = unit.astype(np.float32)
        recall = JudgedProposals(
            self.truth,
            lambda keys: exact_cosines(unit, self.truth.vectors(keys)),
            limit,
            allowed,
        )

        def ask(depth: int, where: str) -> Scored:
            server, name = self.collection.server, self.collection.name
            return self.asked(lambda: server.nearest(name, vector, depth, where))

        def leg(where: str) -> Scored:
            last = 0.0

            def propose(depth: int, floor: float) -> Scored:
                nonlocal last
                keys, cosines = ask(depth, where)
                last = float(cosines[-1]) if len(cosines) else -1.0
                return keys, cosines

            def enough(proposed: Floats, scores: Floats, floor: float) -> bool:
                error = float(np.abs(proposed - scores).max(initial=0.0))
                return last + 2.0 * error + _SLACK < floor

            return recall.deepened(propose, enough)

        return _searched(recall, leg)

    def near(
        self, queries: NDArray[np.float32], at_least: float, most: int
    ) -> list[Keys]:
        """Return the keys whose cosine to each query is *at_least* so much."""
        return near_by_search(self.search, queries, at_least, most)

    def rank(
        self, query: NDArray[np.float32], key: int, allowed: Keys | None = None
    ) -> int:
        """Return the place of *key* among all, or among *allowed*; 1 is the nearest."""
        unit = unit_of(query)
        [own] = self.cosines(query, np.array([key], np.int64))
        ahead = 0
        for part in self.truth.all_keys():
            keys = part if allowed is None else part[np.isin(part, allowed)]
            scores = exact_cosines(unit, self.truth.vectors(keys))
            ahead += int(((scores > own) | ((scores == own) & (keys < key))).sum())
        return ahead + 1

    def cosines(self, query: NDArray[np.float32], keys: Keys) -> Floats:
        """Return the cosine of each of *keys*, which must all be held."""
        return exact_cosines(unit_of(query), self.vectors(keys))

    def vectors(self, keys: Keys) -> NDArray[np.float32]:
        """Return the vector of each of *keys*, which must all be held, as rows."""
        found = self.truth.vectors(keys)
        return found if len(keys) else np.empty((0, self.collection.dimension), "f4")

    def keys(self) -> Keys:
        """Return every key that is held, in order."""
        return self.collection.server.keys(self.collection.name)


@dataclass(frozen=True, slots=True)
class WordsView(_View):
    """The best chunks by exact BM25."""

    def search(
        self,
        terms: Mapping[str, float],
        limit: int,
        exact: Exact,
        *,
        average_length: float,
        allowed: Keys | None = None,
    ) -> Scored:
        """Return the *limit* best chunks by exact score, ties by key."""
        weights = {term: weight for term, weight in terms.items() if weight > 0.0}
        if not weights:
            return best(np.empty(0, np.int64), np.empty(0), limit)

        def alone(keys: Keys) -> Floats:
            with self.truth.alone:
                return exact(keys)

        recall = JudgedProposals(self.truth, alone, limit, allowed)
        server, name = self.collection.server, self.collection.name

        def leg(where: str) -> Scored:
            last = 0.0

            def propose(depth: int, floor: float) -> Scored:
                nonlocal last
                text = question_of(map(name_of, _telling(weights, floor)))
                found = self.asked(lambda: server.wordiest(name, text, depth, where))
                last = float(found[1][-1]) if len(found[1]) else 0.0
                return found

            def enough(proposed: Floats, scores: Floats, floor: float) -> bool:
                ratios = scores[proposed > 0.0] / proposed[proposed > 0.0]
                if not len(ratios) or ratios.max() > _AGREE * ratios.min():
                    return False
                return bool(last * ratios.max() * _AGREE < floor)

            return recall.deepened(propose, enough)

        keys, scores = _searched(recall, leg)
        return keys[scores > 0.0], scores[scores > 0.0]

    def keys(self) -> Keys:
        """Return every key that is held, in order."""
        return self.collection.server.keys(self.collection.name)


@dataclass(frozen=True, slots=True)
class View:
    """Both indexes of a tenant, as a reader of one snapshot sees them."""

    collection: MilvusCollection
    truth: Truth

    @property
    def dense(self) -> DenseView:
        """The index of vectors."""
        return DenseView(self.collection, self.truth, self._asked)

    @property
    def keyword(self) -> WordsView:
        """The index of words."""
        return WordsView(self.collection, self.truth, self._asked)

    @property
    def lock(self) -> "Unlocked":
        """Nothing: the snapshot keeps what is read from changing."""
        return Unlocked()

    def hold(self, seq: int) -> bool:
        """Return whether a reader of the state *seq* can search here."""
        return self.collection.seq >= seq

    def catch_up(
        self, connection: Connection, seq: int, *, keyword: bool = True
    ) -> None:
        """Apply what the truth has and the collection lacks, up to *seq*."""
        with self.truth.everything() as truth:
            self.collection.catch_up(truth, seq)

    def rebuild(self) -> None:
        """Drop the collection; the next search rebuilds it."""
        self.collection.drop()

    def indexed(self, keys: Keys) -> NDArray[np.float32]:
        """Return the vectors as the server holds them, for comparison."""
        found = self.collection.server.vectors(self.collection.name, keys.tolist())
        rows = [found[key] for key in keys.tolist() if key in found]
        return np.array(rows, np.float32).reshape(-1, self.collection.dimension)

    def _asked(self, ask: Callable[[], Scored]) -> Scored:
        """Ask the server; a collection that is away is brought back first."""
        seq, _ = self.truth.position()
        if seq == 0:
            return np.empty(0, np.int64), np.empty(0)
        try:
            return ask()
        except CollectionAwayError:
            self.collection.away()
            self.catch_up(self.truth.connection, seq)
            return ask()


class Unlocked:
    """A lock that never blocks."""

    def reading(self) -> AbstractContextManager[Any]:
        """Let everybody in."""
        return nullcontext()


def _searched(recall: JudgedProposals, leg: Callable[[str], Scored]) -> Scored:
    """Run a leg, filtered where something is allowed, and add what left meanwhile."""
    if recall.limit < 1:
        return best(np.empty(0, np.int64), np.empty(0), 0)
    allowed = recall.allowed
    if allowed is not None and len(allowed) <= FEW_ALLOWED:
        return best(*recall.judged(allowed), recall.limit)
    parts = [leg(where) for where in _filters(allowed)]
    seq, _ = recall.truth.position()
    parts.append(recall.judged(recall.truth.changed_since(seq)))
    scores = {
        key: score
        for keys, found in parts
        for key, score in zip(keys.tolist(), found.tolist(), strict=True)
    }
    # A chunk may come from several parts; its exact score is the same in each.
    keys = np.array(list(scores), np.int64)
    return best(keys, np.array(list(scores.values())), recall.limit)


def _filters(allowed: Keys | None) -> Iterator[str]:
    """Yield conditions that name the documents allowed, as many as one can take."""
    if allowed is None:
        yield ""
        return
    documents = np.unique(allowed >> ORD_BITS).tolist()
    for start in range(0, len(documents), NAMED_DOCUMENTS):
        yield f"doc in {documents[start : start + NAMED_DOCUMENTS]}"


def _telling(weights: Mapping[str, float], floor: float) -> list[str]:
    """Return the words without which no chunk can reach *floor*.

    A chunk that holds only the lightest words scores less than they can at most, so
    these need not be asked for.
    """
    light = 0.0
    order = sorted(weights, key=lambda term: (weights[term], term))
    for place, term in enumerate(order):
        light += weights[term] * (K1 + 1)
        if light >= floor:
            return order[place:]
    return order[-1:]
