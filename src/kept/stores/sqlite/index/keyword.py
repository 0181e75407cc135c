"""The keyword index of one tenant: tantivy proposes, exact BM25 decides.

The engine scores in float32, rounds field lengths down, counts chunks that were
removed and breaks ties by age. So it is only asked for proposals, best first, and
the caller's exact score of each decides the order. The engine is asked for more
until nothing it has not named can enter the answer:

* a term's proposal is ``w · tf · (k1 + 1) / (tf + k1 · (1 - b + b · l'/a'))``, with
  ``k1`` = 1.2 and ``b`` = 0.75, where ``l'`` is the length rounded down and
  ``a'`` the engine's average length. Its own idf cancels, because each term is
  boosted by *its true weight / the engine's idf*;
* the exact one has the true ``l ≥ l'`` and the true average ``a``, so it is at most
  ``max(1, a/a')`` times the proposal;
* what was not named was proposed no higher than the last that was.

The index is derived: it can be deleted and built again from the truth.
"""

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

import numpy as np
import tantivy
from numpy.typing import NDArray

from kept.errors import StoreReadOnlyError
from kept.kernel.signals import PLACES
from kept.stores.row_writer import ORD_BITS
from kept.stores.sqlite.index.vector_file import IndexTorn, Scored, best, unwritten

_HEAP_BYTES = 32_000_000
# The change number lives in a document of the index itself, so that one commit holds
# both the change and its number, or neither.
_MARKER_DOC = -1
_MARKER_TERM = "\x1f"
# tantivy silently drops very long terms, so longer ones are indexed by their hash.
_LONGEST_TERM = 255
# So few chunks are scored directly, without asking the engine.
_FEW_ALLOWED = 64
# Filters over more documents are not passed to the engine, which is asked deeper
# instead.
_NAMED_DOCUMENTS = 4096
_DEEPEST = 8192
# The engine adds up float32 scores; a bound on the exact score has to allow for their
# rounding.
_FLOAT32_SLACK = 1.0 + 1e-4

Exact = Callable[[NDArray[np.int64]], NDArray[np.float64]]


def _idf(chunks: int, holding: int) -> float:
    """Return what the engine takes for a term's rarity, removed chunks included."""
    return math.log(1.0 + (chunks - holding + 0.5) / (holding + 0.5))


class KeywordIndex:
    """Which chunks hold a term, kept in a tantivy folder.

    Several processes may have it open. One changes it at a time: the caller holds a
    lock from `reload` through `apply` to `flush`. The engine's own lock is held only
    between the first `apply` and `flush`.
    """

    def __init__(self, folder: Path, *, writable: bool) -> None:
        self._folder = folder
        self._writable = writable
        self._writer: tantivy.IndexWriter | None = None
        self._index = tantivy.Index.open(str(folder))
        # By default tantivy reloads by itself after a commit, and a search would see a
        # change that its snapshot does not have.
        self._index.config_reader(reload_policy="manual")
        self._refresh()

    @classmethod
    def open(cls, folder: Path, *, writable: bool) -> Self:
        """Open the index in *folder*; a writer creates a missing one, empty."""
        with _told_torn(folder):
            if not folder.exists() or not tantivy.Index.exists(str(folder)):
                if not writable:
                    raise IndexTorn(folder, "there is no keyword index")
                _create(folder)
            return cls(folder, writable=writable)

    @property
    def seq(self) -> int:
        """The last change this object holds, flushed or not."""
        return self._seq

    def __len__(self) -> int:
        self.flush()
        return int(self._searcher.num_docs) - 1

    def apply(
        self,
        seq: int,
        added: Iterable[tuple[int, Sequence[str]]],
        removed_docs: Iterable[int],
    ) -> None:
        """Take the change numbered *seq*: documents out first, then chunks in.

        *added* gives each chunk's key and its terms, as often as they occur.
        """
        documents = [_document(key, terms) for key, terms in added]
        writer = self._writing()
        for doc in removed_docs:
            writer.delete_documents_by_term("doc", doc)
        for document in documents:
            writer.add_document(document)
        self._seq = seq

    def flush(self) -> None:
        """Commit what was applied, and the number of its last change, at once."""
        if self._writer is None:
            return
        writer, self._writer = self._writer, None
        try:
            _mark(writer, self._seq)
            writer.commit()
            writer.wait_merging_threads()
        except (ValueError, OSError) as error:
            raise unwritten(self._folder, error) from error
        finally:
            self._index.reload()
            self._refresh()

    def reload(self) -> bool:
        """See what another process flushed; return whether anything changed."""
        before = self._seq
        with _told_torn(self._folder):
            self._index.reload()
            self._refresh()
        return self._seq != before

    def close(self) -> None:
        """Flush; the object is not used afterwards."""
        self.flush()

    def keys(self) -> NDArray[np.int64]:
        """Return every key that is held, in order."""
        chunks = len(self)
        with _told_torn(self._folder):
            found = self._searcher.search(tantivy.Query.all_query(), chunks + 1).hits
            addresses = [address for _, address in found]
            keys, docs = (
                np.array(self._searcher.fast_field_values(name, addresses), np.int64)
                for name in ("key", "doc")
            )
        return np.sort(keys[docs != _MARKER_DOC])

    def search(
        self,
        terms: Mapping[str, float],
        limit: int,
        exact: Exact,
        *,
        average_length: float,
        allowed: NDArray[np.int64] | None = None,
    ) -> Scored:
        """Return the *limit* best chunks by exact score, ties by key.

        *terms* gives each query term's weight (its idf times its count in the query);
        *exact* the BM25 of each key asked, by the formula above with those weights.
        Chunks without any of the terms are never returned.
        """
        self.flush()
        weights = {term: weight for term, weight in terms.items() if weight > 0.0}
        if not weights or limit < 1:
            return best(np.empty(0, np.int64), np.empty(0), limit)
        among = None if allowed is None else np.unique(allowed)
        if among is not None and len(among) <= _FEW_ALLOWED:
            return _matching(among, np.round(exact(among), PLACES), limit)

        def judge(keys: NDArray[np.int64]) -> Scored:
            judged = keys if among is None else keys[_members(keys, among)]
            return judged, np.round(exact(judged), PLACES)

        query, depth = self._query(weights), 2 * limit
        if among is not None:
            query, depth = self._narrowed(query, depth, among)
        slack = _FLOAT32_SLACK * max(1.0, average_length / self._average)
        return self._deepen(query, limit, depth, slack, judge)

    def _narrowed(
        self, query: tantivy.Query, depth: int, allowed: NDArray[np.int64]
    ) -> tuple[tantivy.Query, int]:
        """Ask only in the allowed documents, or deeper where these are many."""
        documents = np.unique(allowed >> ORD_BITS)
        if len(documents) > _NAMED_DOCUMENTS:
            return query, math.ceil(depth * max(1.0, len(self) / len(allowed)))
        named = tantivy.Query.term_set_query(_SCHEMA, "doc", documents.tolist())
        within = tantivy.Query.const_score_query(named, 0.0)
        must = tantivy.Occur.Must
        return tantivy.Query.boolean_query([(must, query), (must, within)]), depth

    def _deepen(
        self,
        query: tantivy.Query,
        limit: int,
        depth: int,
        slack: float,
        judge: Callable[[NDArray[np.int64]], Scored],
    ) -> Scored:
        """Ask for more proposals until no unseen chunk can be among the best.

        As many as are wanted are judged first: of the others, most have no hope then.
        """
        keys = np.empty(0, np.int64)
        scores = np.empty(0, np.float64)
        seen = 0
        while True:
            depth = depth if depth <= _DEEPEST else len(self) + 1
            proposed, ceilings, everything = self._propose(query, depth)
            ceilings *= slack
            for start, end in pairwise((seen, max(seen, limit), max(depth, limit))):
                hopeful = ceilings[start:end] >= _nth_best(scores, limit)
                if hopeful.any():
                    fresh_keys, fresh_scores = judge(proposed[start:end][hopeful])
                    keys = np.concatenate([keys, fresh_keys])
                    scores = np.concatenate([scores, fresh_scores])
            # After rounding, an unseen chunk could still tie with the last place, hence
            # the step of rounding in the comparison below.
            floor = _nth_best(scores, limit)
            if everything or ceilings[-1] < floor - 10.0**-PLACES:
                return _matching(keys, scores, limit)
            seen = len(proposed)
            depth *= 2

    def _propose(
        self,
        query: tantivy.Query,
        depth: int,
    ) -> tuple[NDArray[np.int64], NDArray[np.float64], bool]:
        """Return the engine's first *depth* keys and scores, and whether that is all.

        Counting makes the engine score every match. Its pruning would compare with
        block maxima chosen under another average length, which may miss one.
        """
        with _told_torn(self._folder):
            hits = self._searcher.search(query, depth, count=True).hits
            addresses = [address for _, address in hits]
            keys = self._searcher.fast_field_values("key", addresses)
        scores = np.array([score for score, _ in hits], np.float64)
        return np.array(keys, np.int64), scores, len(hits) < depth

    def _query(self, weights: Mapping[str, float]) -> tantivy.Query:
        parts = []
        for term, weight in weights.items():
            spelled = _spelled(term)
            with _told_torn(self._folder):
                holding = self._searcher.doc_freq("terms", spelled)
            # The engine multiplies by its own idf, which counts deleted chunks;
            # dividing by it leaves our weight.
            boost = weight / _idf(self._chunks, holding)
            one = tantivy.Query.term_query(_SCHEMA, "terms", spelled, "freq")
            parts.append((tantivy.Occur.Should, tantivy.Query.boost_query(one, boost)))
        return tantivy.Query.boolean_query(parts)

    def _writing(self) -> tantivy.IndexWriter:
        if not self._writable:
            msg = "this keyword index was opened to be read; open it writable"
            raise StoreReadOnlyError(msg)
        if self._writer is None:
            self._writer = _writer(self._index)
            # What a writer that was killed left behind may have the name of a file
            # that the next commit makes.
            self._writer.garbage_collect_files()
        return self._writer

    def _refresh(self) -> None:
        """Take a new view of the index, with its number and its statistics."""
        self._searcher = self._index.searcher()
        marker = tantivy.Query.term_query(_SCHEMA, "terms", _MARKER_TERM, "freq")
        hits = self._searcher.search(marker, 2).hits
        if len(hits) != 1:
            msg = f"it holds {len(hits)} change numbers instead of one"
            raise ValueError(msg)
        address = hits[0][1]
        [seq] = self._searcher.fast_field_values("key", [address])
        self._seq = int(seq or 0)
        explained = json.loads(marker.explain(self._searcher, address).to_json())
        self._chunks = int(_statistic(explained, "N, total number of docs"))
        self._average = _statistic(explained, "avgdl")


@contextmanager
def _told_torn(folder: Path) -> Iterator[None]:
    """Say that an index is torn where the engine cannot read it, or gives up.

    What it gives up with is no `Exception`, and has no name to import.
    """
    try:
        yield
    except (ValueError, OSError) as error:
        raise IndexTorn(folder, str(error)) from error
    except BaseException as error:
        # pyo3 raises its own class for a panic of the Rust code, and exports no name
        # for it.
        if type(error).__name__ != "PanicException":
            raise
        raise IndexTorn(folder, str(error)) from error


def _schema() -> tantivy.Schema:
    builder = tantivy.SchemaBuilder()
    builder.add_integer_field("key", fast=True)
    builder.add_integer_field("doc", indexed=True, fast=True)
    builder.add_text_field("terms", tokenizer_name="whitespace", index_option="freq")
    return builder.build()


_SCHEMA = _schema()


def _create(folder: Path) -> None:
    """Make an index that holds nothing, at change 0."""
    folder.mkdir(parents=True, exist_ok=True)
    writer = _writer(tantivy.Index(_SCHEMA, str(folder)))
    _mark(writer, 0)
    writer.commit()
    writer.wait_merging_threads()


def _writer(index: tantivy.Index) -> tantivy.IndexWriter:
    return index.writer(heap_size=_HEAP_BYTES, num_threads=1)


def _mark(writer: tantivy.IndexWriter, seq: int) -> None:
    """Replace the document that carries the change number, in the same commit."""
    writer.delete_documents_by_term("doc", _MARKER_DOC)
    marker = tantivy.Document()
    marker.add_integer("key", seq)
    marker.add_integer("doc", _MARKER_DOC)
    marker.add_text("terms", _MARKER_TERM)
    writer.add_document(marker)


def _document(key: int, terms: Sequence[str]) -> tantivy.Document:
    spelled = list(map(_spelled, terms))
    text = " ".join(spelled)
    if text.split() != spelled:
        msg = f"chunk {key} has an empty term or one with a space in it; split it first"
        raise ValueError(msg)
    document = tantivy.Document()
    document.add_integer("key", key)
    document.add_integer("doc", key >> ORD_BITS)
    document.add_text("terms", text)
    return document


def _spelled(term: str) -> str:
    """Return *term* as indexed: the engine drops very long ones, so they are hashed."""
    if len(term) <= _LONGEST_TERM:
        return term
    return "sha256:" + hashlib.sha256(term.encode()).hexdigest()


def _statistic(explained: Mapping[str, Any], named: str) -> float:
    """Find the value whose description starts with *named* in an explanation."""
    if str(explained["description"]).startswith(named):
        return float(explained["value"])
    for detail in explained.get("details", ()):
        value = _statistic(detail, named)
        if not math.isnan(value):
            return value
    return math.nan


def _members(keys: NDArray[np.int64], among: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which of *keys* are in *among*, which is sorted and not empty."""
    place = np.minimum(np.searchsorted(among, keys), len(among) - 1)
    return np.equal(among[place], keys)


def _nth_best(scores: NDArray[np.float64], nth: int) -> float:
    """Return the score of place *nth*, or minus infinity where there is none."""
    if len(scores) < nth:
        return -math.inf
    return float(np.partition(scores, len(scores) - nth)[len(scores) - nth])


def _matching(
    keys: NDArray[np.int64], scores: NDArray[np.float64], limit: int
) -> Scored:
    matching = scores > 0.0
    return best(keys[matching], scores[matching], limit)
