"""Time, exactness, memory and opening of the two derived indexes alone.

usage: python benchmarks/indexes.py [--sizes 100000 1000000] [--seconds 120]
                                    [--cache FILE.npz] [--json FILE]

Vectors are MiniLM's, of as many sentences of SciFact and NFCorpus as can be embedded in
*seconds* (or read from the cache); the others are mixtures of two real ones. Questions
in the domain are SciFact's claims; flat ones are from NQ-open, off every topic here.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kept.models.embedders.minilm import MiniLmEmbedder
from kept.stores.sqlite.index.dense import DenseIndex
from kept.stores.sqlite.index.keyword import KeywordIndex

DATA = Path(os.environ.get("KEPT_DATA", "../shared/data"))
DEPTH = 50
BATCH = 2000
NOTHING = np.empty(0, np.int64)


@dataclass(frozen=True)
class Figure:
    """One row of the table."""

    index: str
    rows: int
    questions: str
    p50_ms: float
    p95_ms: float
    recall: float
    exact_order: float
    open_ms: float
    bytes_a_row: float


@dataclass(frozen=True)
class Material:
    """Sentences and questions, with their vectors."""

    texts: list[str]
    vectors: NDArray[np.float32]
    questions: dict[str, tuple[list[str], NDArray[np.float32]]]


def sentences() -> list[str]:
    """Return the distinct sentences of two corpora, in a fixed random order."""
    found: dict[str, None] = {}
    for name in ("scifact", "nfcorpus"):
        for line in (DATA / name / "corpus.jsonl").open():
            text = json.loads(line)["text"]
            found.update(dict.fromkeys(re.split(r"(?<=[.!?])\s+", text)))
    long_enough = [text[:400] for text in found if len(text) > 20]
    order = np.random.default_rng(0).permutation(len(long_enough))
    return [long_enough[at] for at in order.tolist()]


def questions() -> dict[str, list[str]]:
    """Return 200 questions of each kind."""
    claims = (DATA / "scifact" / "queries.jsonl").open()
    asked = (DATA / "nq_open" / "NQ-open.dev.jsonl").open()
    return {
        "in-domain": [json.loads(line)["text"] for line in claims][:200],
        "flat": [json.loads(line)["question"] for line in asked][:200],
    }


def material(seconds: float, cache: Path | None) -> Material:
    """Embed sentences and questions, or read their vectors from the cache."""
    texts, asked = sentences(), questions()
    if cache is not None and cache.exists():
        stored = np.load(cache)
        vectors = stored["texts"]
        ask = {kind: (asked[kind], stored[kind]) for kind in asked}
        return Material(texts[: len(vectors)], vectors, ask)
    embedder = MiniLmEmbedder()
    ask = {kind: (some, embedder.embed(some)) for kind, some in asked.items()}
    parts: list[NDArray[np.float32]] = []
    end = time.monotonic() + seconds
    for start in range(0, len(texts), 256):
        parts.append(embedder.embed(texts[start : start + 256]))
        if time.monotonic() > end:
            break
    vectors = np.concatenate(parts)
    if cache is not None:
        np.savez(cache, texts=vectors, **{kind: both[1] for kind, both in ask.items()})
    return Material(texts[: len(vectors)], vectors, ask)


def rows(real: NDArray[np.float32], size: int) -> Iterator[NDArray[np.float32]]:
    """Yield *size* vectors in batches: real ones, then mixtures of two."""
    rng = np.random.default_rng(1)
    for start in range(0, size, BATCH):
        numbers = np.arange(start, min(start + BATCH, size))
        part = real[numbers % len(real)].copy()
        mixed = numbers >= len(real)
        share = rng.uniform(0.15, 0.6, (len(part), 1)).astype(np.float32)
        other = real[rng.integers(0, len(real), len(part))]
        part[mixed] += (share * other)[mixed]
        yield part / np.linalg.norm(part, axis=1, keepdims=True)


def keys_of(size: int) -> NDArray[np.int64]:
    """Return keys in random order, ten chunks per document."""
    numbers = np.random.default_rng(2).permutation(size).astype(np.int64)
    return (numbers // 10) << 20 | numbers % 10


CHILD = """
import re, sys, time
from pathlib import Path
from kept.stores.sqlite.index.dense import DenseIndex
from kept.stores.sqlite.index.keyword import KeywordIndex
def resident():
    status = Path("/proc/self/status").read_text()
    return 1024 * int(re.findall(r"RssAnon:\\s+(\\d+)", status)[0])
folder, kind, width = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
before, start = resident(), time.perf_counter()
if kind == "dense":
    index = DenseIndex.open(folder, width, writable=False)
else:
    index = KeywordIndex.open(folder, writable=False)
print(1000 * (time.perf_counter() - start), resident() - before)
"""


def opened(folder: Path, kind: str, width: int) -> tuple[float, float]:
    """Return the time and memory that opening takes in a new process."""
    command = [sys.executable, "-c", CHILD, str(folder), kind, str(width)]
    runs = [subprocess.check_output(command).split() for _ in range(3)]
    return min(float(run[0]) for run in runs), min(float(run[1]) for run in runs)


def scan(given: Material, size: int, folder: Path) -> Iterator[Figure]:
    """Time the baseline: the product of the query with all vectors in memory."""
    everything = np.concatenate(list(rows(given.vectors, size)))
    for kind, (_, asked) in given.questions.items():
        times = []
        for query in asked[:50]:
            start = time.perf_counter()
            products = everything @ query
            np.argpartition(products, -DEPTH)[-DEPTH:]
            times.append(1000 * (time.perf_counter() - start))
        p50, p95 = np.percentile(times, [50, 95])
        none = float("nan")
        width = float(4 * everything.shape[1])
        yield Figure("scan", size, kind, p50, p95, none, none, none, width)


def exact_dense(
    real: NDArray[np.float32], size: int, asked: NDArray[np.float32]
) -> list[NDArray[np.int64]]:
    """Return the exact top results of each question, by brute force in float64."""
    keys = keys_of(size)
    wide = asked.astype(np.float64)
    wide /= np.linalg.norm(wide, axis=1, keepdims=True)
    best = np.full((4 * DEPTH, len(asked)), -np.inf)
    held = np.zeros(best.shape, np.int64)
    for at, part in enumerate(rows(real, size)):
        block = part.astype(np.float64)
        block /= np.linalg.norm(block, axis=1, keepdims=True)
        some = keys[at * BATCH : at * BATCH + len(part), np.newaxis]
        best = np.concatenate([best, np.round(block @ wide.T, 9)])
        held = np.concatenate([held, np.broadcast_to(some, (len(part), len(asked)))])
        first = np.argpartition(-best, 4 * DEPTH, axis=0)[: 4 * DEPTH]
        best = np.take_along_axis(best, first, axis=0)
        held = np.take_along_axis(held, first, axis=0)
    order = np.lexsort((held, -best), axis=0)[:DEPTH]
    return list(np.take_along_axis(held, order, axis=0).T)


def dense(given: Material, size: int, folder: Path) -> Iterator[Figure]:
    """Measure the dense index."""
    built = DenseIndex.open(folder, given.vectors.shape[1], writable=True)
    keys = keys_of(size)
    for seq, part in enumerate(rows(given.vectors, size)):
        some = keys[seq * BATCH : seq * BATCH + len(part)]
        built.apply(seq + 1, some, part, NOTHING)
    built.close()
    opening, memory = opened(folder, "dense", given.vectors.shape[1])
    index = DenseIndex.open(folder, given.vectors.shape[1], writable=False)
    for kind, (_, asked) in given.questions.items():
        expected = exact_dense(given.vectors, size, asked)
        for query in asked[:20]:
            index.search(query, DEPTH)
        times, found = [], []
        for query in asked:
            start = time.perf_counter()
            found.append(index.search(query, DEPTH)[0])
            times.append(1000 * (time.perf_counter() - start))
        pairs = list(zip(found, expected, strict=True))
        recall = np.mean([len(np.intersect1d(a, b)) / DEPTH for a, b in pairs])
        same = np.mean([np.array_equal(a, b) for a, b in pairs])
        p50, p95 = np.percentile(times, [50, 95])
        yield Figure(
            "dense",
            size,
            kind,
            p50,
            p95,
            float(recall),
            float(same),
            opening,
            memory / size,
        )


class Corpus:
    """Chunks of three sentences as numbered words, with exact BM25."""

    def __init__(self, texts: list[str], size: int) -> None:
        words = [re.findall(r"\w+", text.lower()) for text in texts]
        self.numbers = {
            word: at
            for at, word in enumerate(sorted({w for some in words for w in some}))
        }
        parts = [np.array([self.numbers[w] for w in some], np.int32) for some in words]
        picks = np.random.default_rng(3).integers(0, len(texts), (size, 3))
        picks[: len(texts), 0] = np.arange(min(size, len(texts)))
        chunks = [np.concatenate([parts[a] for a in row]) for row in picks.tolist()]
        self.lengths = np.array([len(chunk) for chunk in chunks])
        self.starts = np.concatenate([[0], np.cumsum(self.lengths)])
        self.words = np.concatenate(chunks)
        self.keys = keys_of(size)
        self.row_of = np.argsort(self.keys)
        self.sorted = self.keys[self.row_of]
        self.average = float(self.lengths.mean())
        pairs = np.unique(
            np.repeat(np.arange(size), self.lengths) * len(self.numbers) + self.words
        )
        self.holding = np.bincount(
            pairs % len(self.numbers), minlength=len(self.numbers)
        )

    def chunk(self, row: int) -> list[str]:
        """Return the terms of one chunk."""
        span = self.words[self.starts[row] : self.starts[row + 1]]
        return [f"{word:x}" for word in span.tolist()]

    def weights(self, question: str) -> dict[int, float]:
        """Return the idf of each known word of a question, without stop words."""
        size = len(self.keys)
        found = {
            self.numbers[word]
            for word in re.findall(r"\w+", question.lower())
            if word in self.numbers
        }
        rare = {number for number in found if self.holding[number] < 0.3 * size}
        return {
            number: float(np.log1p((size - n + 0.5) / (n + 0.5)))
            for number in sorted(rare)
            if (n := self.holding[number])
        }

    def exact(
        self, weights: dict[int, float]
    ) -> Callable[[NDArray[np.int64]], NDArray[np.float64]]:
        """Return the exact score of any chunks for *weights*."""

        def scores(keys: NDArray[np.int64]) -> NDArray[np.float64]:
            held = self.row_of[np.searchsorted(self.sorted, keys)]
            totals = np.zeros(len(keys))
            norm = 1.2 * (0.25 + 0.75 * self.lengths[held] / self.average)
            spans = [self.words[self.starts[r] : self.starts[r + 1]] for r in held]
            words = np.concatenate(spans) if spans else np.empty(0, np.int32)
            owner = np.repeat(np.arange(len(held)), self.lengths[held])
            for number, weight in weights.items():
                count = np.bincount(owner[words == number], minlength=len(held))
                totals += weight * count * 2.2 / (count + norm)
            return totals

        return scores

    def best(self, weights: dict[int, float]) -> NDArray[np.int64]:
        """Return the exact top results, by brute force."""
        scores = np.round(self.exact(weights)(self.keys), 9)
        order = np.lexsort((self.keys, -scores))[:DEPTH]
        return self.keys[order[scores[order] > 0]]


def keyword(given: Material, size: int, folder: Path) -> Iterator[Figure]:
    """Measure the keyword index without the exact scoring by its caller."""
    corpus = Corpus(given.texts, size)
    built = KeywordIndex.open(folder, writable=True)
    for seq, start in enumerate(range(0, size, BATCH)):
        some = range(start, min(start + BATCH, size))
        added = ((int(corpus.keys[row]), corpus.chunk(row)) for row in some)
        built.apply(seq + 1, added, [])
        if seq % 10 == 0:
            built.flush()
    built.close()
    opening, memory = opened(folder, "keyword", 0)
    index = KeywordIndex.open(folder, writable=False)
    for kind, (asked, _) in given.questions.items():
        weighed = [weights for text in asked if (weights := corpus.weights(text))]
        times, found = zip(*(ask(index, corpus, some) for some in weighed), strict=True)
        expected = [corpus.best(weights) for weights in weighed[:20]]
        pairs = list(zip(found[:20], expected, strict=True))
        recall = np.mean([np.isin(b, a).mean() for a, b in pairs])
        same = np.mean([np.array_equal(a, b) for a, b in pairs])
        p50, p95 = np.percentile(times, [50, 95])
        yield Figure(
            "keyword",
            size,
            kind,
            p50,
            p95,
            float(recall),
            float(same),
            opening,
            memory / size,
        )


def ask(
    index: KeywordIndex, corpus: Corpus, weights: dict[int, float]
) -> tuple[float, NDArray[np.int64]]:
    """Return the milliseconds inside the index, and its results."""
    score = corpus.exact(weights)
    outside = 0.0

    def exact(keys: NDArray[np.int64]) -> NDArray[np.float64]:
        nonlocal outside
        start = time.perf_counter()
        scores = score(keys)
        outside += time.perf_counter() - start
        return scores

    terms = {f"{number:x}": weight for number, weight in weights.items()}
    start = time.perf_counter()
    found, _ = index.search(terms, DEPTH, exact, average_length=corpus.average)
    return 1000 * (time.perf_counter() - start - outside), found


def main() -> None:
    """Measure and print the table."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--sizes", type=int, nargs="+", default=[100_000])
    options.add_argument("--seconds", type=float, default=120)
    options.add_argument("--cache", type=Path)
    options.add_argument("--json", type=Path)
    options.add_argument("--only", choices=["scan", "dense", "keyword"])
    chosen = options.parse_args()
    if not (DATA / "scifact").exists():
        sys.exit(f"no evaluation data in {DATA}; set KEPT_DATA to its folder")
    given = material(chosen.seconds, chosen.cache)
    print(f"{len(given.texts)} sentences embedded")
    head = ("index", "rows", "questions", "p50 ms", "p95 ms", "recall@50", "same order")
    print(*(f"{name:>10}" for name in (*head, "open ms", "B/row")))
    figures = []
    for size in chosen.sizes:
        for measure in (scan, dense, keyword):
            if chosen.only not in (None, measure.__name__):
                continue
            with tempfile.TemporaryDirectory() as folder:
                for figure in measure(given, size, Path(folder) / "index"):
                    figures.append(figure)
                    shown = (
                        f"{v:>10.4g}" if isinstance(v, float) else f"{v:>10}"
                        for v in asdict(figure).values()
                    )
                    print(*shown, flush=True)
    if chosen.json:
        chosen.json.write_text(json.dumps([asdict(f) for f in figures], indent=2))


if __name__ == "__main__":
    main()
