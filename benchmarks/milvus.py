"""Memory and disk of a chunk in Milvus and in the truth, and the speed of filling it.

Copies the documents of an existing knowledge base, fills a milvus-lite with them and
asks both stores the same questions: the answers must be equal. The graph that a Milvus
keeps in memory is measured with faiss, which builds the same kind.

    python benchmarks/milvus.py FOLDER QUESTIONS.jsonl [--questions 40]
"""

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import faiss
import numpy as np

sys.path[:0] = [str(Path(__file__).parents[1] / "tests" / "stores" / "milvus")]

from lite_server import LiteServer, free_port  # noqa: E402 -- found just above

from kept.models.embedders.minilm import MiniLmEmbedder  # noqa: E402
from kept.stores.milvus.address import address_of  # noqa: E402
from kept.stores.milvus.sqlite_store import MilvusStore  # noqa: E402
from kept.stores.sqlite.store import SqliteStore  # noqa: E402

DEPTH = 50
HNSW_M = 32
HNSW_EFFORT = 256
HNSW_LOOK = 512


def main() -> None:
    """Measure, and print JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("questions", type=Path)
    parser.add_argument("--count", type=int, default=40)
    given = parser.parse_args()
    lines = given.questions.read_text().splitlines()[: given.count]
    questions = [json.loads(line)["text"] for line in lines]
    with tempfile.TemporaryDirectory() as scratch:
        print(json.dumps(measured(given.folder, questions, Path(scratch)), indent=2))


def measured(source: Path, questions: list[str], scratch: Path) -> dict[str, Any]:
    """Return all figures."""
    for name in ("there", "here"):
        (scratch / name).mkdir()
        shutil.copy(source / "kept.sqlite", scratch / name)
    server = LiteServer(scratch / "data", free_port())
    server.start()
    there = MilvusStore(address_of(server.url(scratch / "there", timeout_seconds=300)))
    here = SqliteStore(scratch / "here")
    try:
        found = {"load": os.getloadavg()[0], "cores": os.cpu_count()}
        found |= weighed(here)
        found |= filled(there)
        found |= asked(here, there, questions)
        found["server_bytes_on_disk"] = size(scratch / "data")
    finally:
        there.close()
        here.close()
        server.stop()
    return found | graph(here.folder, questions)


def weighed(store: SqliteStore) -> dict[str, Any]:
    """Return the bytes of a chunk in the truth."""
    with store.database.reading() as connection:
        one = "SELECT COUNT(*), AVG(length), AVG(length(terms)), AVG(length(text))"
        [row] = connection.execute(f"{one} FROM chunks")
        [[vector]] = connection.execute("SELECT AVG(length(data)) FROM vectors")
        pages = connection.pragma("page_count") * connection.pragma("page_size")
    chunks, words, packed, chars = row
    return {
        "chunks": chunks,
        "words_per_chunk": words,
        "distinct_words_per_chunk": packed / 10,
        "chars_per_chunk": chars,
        "vector_bytes": vector,
        "truth_bytes_per_chunk": pages / chunks,
    }


def filled(store: MilvusStore) -> dict[str, Any]:
    """Fill the server from the truth."""
    began, cpu = time.perf_counter(), time.process_time()
    with store.shelf(largest(store)) as shelf:
        chunks = shelf.chunks
    took, spent = time.perf_counter() - began, time.process_time() - cpu
    return {"filled_per_second": chunks / took, "our_cpu_us": 1e6 * spent / chunks}


def asked(
    here: SqliteStore, there: MilvusStore, questions: list[str]
) -> dict[str, Any]:
    """Ask both stores the same questions, and compare."""
    vectors = MiniLmEmbedder().embed(questions)
    same = {"dense": 0, "keyword": 0}
    times: dict[str, list[float]] = {"here": [], "there": []}
    for question, vector in zip(questions, vectors, strict=True):
        legs = {}
        for name, store in (("here", here), ("there", there)):
            began = time.perf_counter()
            with store.shelf(largest(store)) as shelf:
                legs[name] = {
                    "dense": shelf.dense_leg(vector, DEPTH, None),
                    "keyword": shelf.keyword_leg(shelf.weigh(question), DEPTH, None),
                }
            times[name].append(1000 * (time.perf_counter() - began))
        for leg in same:
            one, two = legs["here"][leg], legs["there"][leg]
            same[leg] += (
                one.keys.tolist() == two.keys.tolist()
                and one.scores.tolist() == two.scores.tolist()
            )
    return {
        "questions": len(questions),
        "same_answers": same,
        "legs_ms": {name: statistics.median(took) for name, took in times.items()},
    }


def graph(folder: Path, questions: list[str]) -> dict[str, Any]:
    """Build the graph that a Milvus would, and compare it with the exact order."""
    store = SqliteStore(folder)
    with store.database.reading() as connection:
        blobs = [row[0] for row in connection.execute("SELECT data FROM vectors")]
    store.close()
    rows = np.frombuffer(b"".join(blobs), np.float32).reshape(len(blobs), -1)
    index = faiss.IndexHNSWFlat(rows.shape[1], HNSW_M, faiss.METRIC_INNER_PRODUCT)
    index.hnsw.efConstruction = HNSW_EFFORT
    cpu = time.process_time()
    index.add(rows)
    spent = time.process_time() - cpu
    index.hnsw.efSearch = HNSW_LOOK
    asked = MiniLmEmbedder().embed(questions)
    _, near = index.search(asked, DEPTH)
    exact = np.argsort(-(asked @ rows.T), axis=1)[:, :DEPTH]
    hits = [len(set(a) & set(b)) for a, b in zip(near, exact, strict=True)]
    written = len(faiss.serialize_index(index))
    return {
        "graph_bytes_per_vector": written / len(rows),
        "graph_built_per_cpu_second": len(rows) / spent,
        "graph_recall_at_50": sum(hits) / (DEPTH * len(hits)),
    }


def largest(store: SqliteStore) -> str:
    """Return the tenant with the most chunks."""
    with store.database.reading() as connection:
        [[name]] = connection.execute(
            "SELECT name FROM tenants ORDER BY chunks DESC LIMIT 1"
        )
    return str(name)


def size(folder: Path) -> int:
    """Return the bytes of all files in a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


if __name__ == "__main__":
    main()
