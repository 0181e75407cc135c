"""PostgreSQL against the embedded store: equal quality, and the cost of a query.

    python benchmarks/postgres.py [--limit N] [--set NAME] [--dsn URL]

Reads the evaluation data from KEPT_DATA. Without --dsn, it starts a server. The vectors
are those of the embedded store, so only questions are embedded. Prints JSON: quality of
both stores, how many answers are equal byte by byte, milliseconds from opening a shelf
to candidates with signals, the rate of ingestion without embedding, bytes on the
server, and the same with a graph.
"""

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from kept.evaluation.collection import Collection, load_collection
from kept.evaluation.corpus import SCHEME, TENANT, Corpus, corpus_of, digest
from kept.evaluation.system import Setup, evaluated
from kept.ingest.cutting import titled
from kept.ingest.ingestion import Handed
from kept.ingest.receipts import Source
from kept.kernel.ports import Embedder, Vectors
from kept.knowledge_base.base import KnowledgeBase
from kept.knowledge_base.settings import Settings
from kept.stores.postgres.hnsw import build
from kept.stores.postgres.store import PostgresStore
from kept.stores.sql import every, only
from kept.text.draft import Draft

ROOT = Path(__file__).parents[1]
DEPTH = 50
REPEATS = 3
TIMED = 50
TABLES = ("documents", "chunks", "vectors", "postings", "terms")


@dataclass
class Remembered:
    """An embedder with the vectors of texts that were embedded before."""

    inner: Embedder
    known: Mapping[str, Any]

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 -- the inner one's
        return getattr(self.inner, name)

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return vectors, embedding only what is new."""
        fresh = [text for text in texts if text not in self.known]
        made = dict(zip(fresh, self.inner.embed(fresh), strict=True)) if fresh else {}
        found: Vectors = np.array([self.known.get(t, made.get(t)) for t in texts])
        return found

    def embed_query(self, texts: Sequence[str]) -> Vectors:
        """Return the rows that *embed* does."""
        return self.embed(texts)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limit", type=int, default=None)
    parser.add_argument("--set", default="scifact")
    parser.add_argument("--dsn", default=None)
    chosen = parser.parse_args()
    data = Path(os.environ.get("KEPT_DATA", ROOT.parent / "shared" / "data"))
    collection = load_collection(data / chosen.set)
    if chosen.limit:
        collection = replace(collection, questions=collection.questions[: chosen.limit])
    with (
        _address(chosen.dsn) as dsn,
        corpus_of(collection, Settings(), on_step=_silent) as corpus,
    ):
        print(json.dumps(_measured(collection, corpus, dsn), indent=2))


def _measured(collection: Collection, corpus: Corpus, dsn: str) -> dict[str, Any]:
    embedder = Remembered(corpus.base.embedder, _vectors_of(corpus.base))
    settings = corpus.base.settings.changed(store=dsn)
    with KnowledgeBase(settings) as base:
        base.__dict__["embedder"] = embedder
        seconds = _filled(base, collection)
        served = replace(corpus, base=base)
        store = base.store
        assert isinstance(store, PostgresStore)
        figures = {
            "collection": collection.name,
            "questions": len(collection.questions),
            "documents_per_second_beyond_embedding": round(
                len(collection.passages) / seconds, 1
            ),
            "states_equal": _state(corpus.base) == _state(base),
            "bytes_per_chunk": _sizes(store),
            "embedded": _quality(collection, corpus),
            "postgres": _quality(collection, served),
            "embedded_ms": _latency(corpus.base, collection),
            "postgres_ms": _latency(base, collection),
        }
        exact = _legs(base, collection)
        figures["legs_equal_to_embedded"] = _share(
            exact, _legs(corpus.base, collection)
        )
        _with_graph(store)
        return figures | {
            "graph": {
                "quality": _quality(collection, served),
                "ms": _latency(base, collection),
                "recall_at_50": round(_recall(exact, _legs(base, collection)), 5),
            }
        }


def _vectors_of(base: KnowledgeBase) -> dict[str, Any]:
    """Return the vectors of the embedded store by their text."""
    with base.store.database.reading(TENANT) as connection:
        rows = every(
            connection,
            "SELECT d.title, c.text, v.data FROM chunks c"
            " JOIN documents d ON d.no = c.document_no JOIN vectors v ON v.no = c.no",
        )
    return {
        titled(title, text): np.frombuffer(blob, np.float32)
        for title, text, blob in rows
    }


def _filled(base: KnowledgeBase, collection: Collection) -> float:
    """Ingest a collection and return the seconds that it took."""
    start = time.perf_counter()
    for _ in base.ingest(_handed(collection)):
        pass
    return time.perf_counter() - start


def _handed(collection: Collection) -> Iterator[Handed]:
    for passage in collection.passages:
        text = passage.text if passage.text.strip() else passage.title.strip()
        if text:
            draft = Draft(text=text, title=passage.title)
            raw = digest(f"{draft.title}\0{draft.text}")
            source = Source(uri=f"{SCHEME}{passage.id}", raw_sha256=raw)
            yield Handed(source=source, read=lambda draft=draft: draft)


def _state(base: KnowledgeBase) -> str:
    with base.store.shelf(TENANT) as shelf:
        return shelf.state


def _quality(collection: Collection, corpus: Corpus) -> dict[str, float]:
    run = evaluated(collection, corpus, Setup(measures=("nDCG@10",)), on_step=_silent)
    return {
        "ndcg_at_10": round(run.plain.means["nDCG@10"], 4),
        "ndcg_at_10_guarded": round(run.guarded.means["nDCG@10"], 4),
    }


def _latency(base: KnowledgeBase, collection: Collection) -> dict[str, float]:
    """Return milliseconds per question without embedding: the best of repeats."""
    questions = [q.text for q in collection.questions[:TIMED]]
    vectors = base.embedder.embed(questions)
    best = [
        min(_timed(base, question, vector) for _ in range(REPEATS))
        for question, vector in zip(questions, vectors, strict=True)
    ]
    cuts = statistics.quantiles(best, n=100)
    return {name: round(cuts[n - 1], 2) for name, n in (("p50", 50), ("p95", 95))}


def _timed(base: KnowledgeBase, question: str, vector: Any) -> float:  # noqa: ANN401 -- a row
    start = time.perf_counter()
    with base.store.shelf(TENANT) as shelf:
        terms = shelf.weigh(question)
        legs = {
            "keyword": shelf.keyword_leg(terms, DEPTH, None),
            "dense": shelf.dense_leg(vector, DEPTH, None),
        }
        shelf.candidates(vector, terms, legs)
    return (time.perf_counter() - start) * 1000


def _legs(base: KnowledgeBase, collection: Collection) -> list[Any]:
    found = []
    vectors = base.embedder.embed([q.text for q in collection.questions])
    with base.store.shelf(TENANT) as shelf:
        for question, vector in zip(collection.questions, vectors, strict=True):
            dense = shelf.dense_leg(vector, DEPTH, None)
            words = shelf.keyword_leg(shelf.weigh(question.text), DEPTH, None)
            found.append(
                [(leg.keys.tolist(), leg.scores.tolist()) for leg in (dense, words)]
            )
    return found


def _share(one: list[Any], other: list[Any]) -> float:
    return sum(a == b for a, b in zip(one, other, strict=True)) / len(one)


def _recall(exact: list[Any], found: list[Any]) -> float:
    """Return the recall of a graph against the exact nearest."""
    shares = [
        len({*a[0][0]} & {*b[0][0]}) / len(a[0][0])
        for a, b in zip(exact, found, strict=True)
    ]
    return statistics.fmean(shares)


def _sizes(store: PostgresStore) -> dict[str, int]:
    with store.database.reading(TENANT) as connection:
        (chunks,) = only(connection, "SELECT chunks FROM kept.states")
        return {
            table: only(connection, f"SELECT pg_total_relation_size('kept.{table}')")[0]
            // chunks
            for table in TABLES
        }


def _with_graph(store: PostgresStore) -> None:
    with store.database.reading(TENANT) as connection:
        (tenant,) = only(connection, "SELECT kept.current_tenant()")
        (dimension,) = only(
            connection, "SELECT value::int FROM kept.meta WHERE key = 'dimension'"
        )
    build(store.database, "public", 1, tenant, dimension)
    with store.database.connect() as connection:
        connection.execute("ANALYZE kept.vectors")
    store.growth.scanned_whole = 0


@contextmanager
def _address(given: str | None) -> Iterator[str]:
    """Return the address of an empty database, starting a server if none is given."""
    if given:
        yield given
        return
    sys.path.insert(0, str(ROOT / "tests"))
    running: Callable[..., Any] = __import__("postgres_server").running
    with running("bench", f"{os.getpid():x}") as server:
        yield server.database()


def _silent(name: str, done: int, total: int) -> None:
    """Report no progress."""


if __name__ == "__main__":
    main()
