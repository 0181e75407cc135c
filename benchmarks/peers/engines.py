"""Engines for hybrid or dense search, as their documentation sets them up.

Each takes what was handed over and returns a search; whatever it keeps on disk lies in
the folder it is given. Runs in an environment of its own (speed/*.txt).
"""

# ruff: noqa: PLC0415 -- only the asked system is loaded

import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from hybrids import AFTERWARDS, Given, Search, haystack, llamaindex, main

REFINED = 50
AT_ONCE = 5_000


def langchain(given: Given, k: int, folder: Path) -> Search:
    """BM25Retriever and FAISS under EnsembleRetriever, half and half."""
    from langchain_classic.retrievers import EnsembleRetriever
    from langchain_community.retrievers import BM25Retriever
    from langchain_community.vectorstores import FAISS
    from langchain_core.documents import Document
    from langchain_core.embeddings import Embeddings

    class Lookup(Embeddings):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return [given.vector_of[text].tolist() for text in texts]

        def embed_query(self, text: str) -> list[float]:
            return list(given.vector_of[text].tolist())

    texts = [chunk["text"] for chunk in given.chunks]
    ids = [{"id": chunk["id"]} for chunk in given.chunks]
    pairs = zip(texts, given.vectors, strict=True)
    store = FAISS.from_embeddings(pairs, Lookup(), ids)
    documents = [
        Document(page_content=text, metadata=about)
        for text, about in zip(texts, ids, strict=True)
    ]
    both = EnsembleRetriever(
        retrievers=[
            BM25Retriever.from_documents(documents, k=k),
            store.as_retriever(search_kwargs={"k": k}),
        ],
        weights=[0.5, 0.5],
        id_key="id",
    )
    return lambda question: [d.metadata["id"] for d in both.invoke(question)]


def lancedb(
    given: Given, k: int, folder: Path, *, indexed: bool = False, refined: int = 0
) -> Search:
    """Make a table with a full-text index, fused by reciprocal rank.

    As it is, its table is scanned and the nearest are exact. An index of vectors is
    quicker and approximates; *refined* has that many times as many of its rows
    compared by their own vectors.
    """
    import lancedb as engine
    import pyarrow as pa

    width = given.vectors.shape[1]
    schema = pa.schema(
        [
            pa.field("id", pa.string()),
            pa.field("text", pa.string()),
            pa.field("vector", pa.list_(pa.float32(), width)),
        ]
    )
    table = engine.connect(folder).create_table("chunks", schema=schema)
    for part, rows in _batches(given):
        flat = pa.FixedSizeListArray.from_arrays(pa.array(rows.reshape(-1)), width)
        columns = [[c["id"] for c in part], [c["text"] for c in part], flat]
        table.add(pa.table(columns, schema=schema))
    table.optimize()
    table.create_fts_index("text")
    if indexed:
        table.create_index(metric="cosine")
    return reopened_lancedb(given, k, folder, refined=refined)


def reopened_lancedb(given: Given, k: int, folder: Path, *, refined: int = 0) -> Search:
    """Open a table that is there."""
    import lancedb as engine
    from lancedb.rerankers import RRFReranker

    table, fused = engine.connect(folder).open_table("chunks"), RRFReranker()

    def search(question: str) -> list[str]:
        query = table.search(query_type="hybrid").vector(given.vector_of[question])
        query = query.text(question).rerank(fused).limit(k)
        found = query.refine_factor(refined) if refined else query
        return [row["id"] for row in found.to_list()]

    return search


def nearest_in_lancedb(
    given: Given, k: int, folder: Path, *, refined: int = 0
) -> Search:
    """Search a table that is there by vector alone."""
    import lancedb as engine

    table = engine.connect(folder).open_table("chunks")

    def search(question: str) -> list[str]:
        query = table.search(given.vector_of[question]).distance_type("cosine")
        found = query.refine_factor(refined) if refined else query
        return [row["id"] for row in found.limit(k).to_list()]

    return search


def txtai(given: Given, k: int, folder: Path) -> Search:
    """Embeddings with hybrid on, vectors handed in, content kept beside them."""
    import numpy as np
    from txtai import Embeddings

    def transform(texts: list[str]) -> object:
        return np.array([given.vector_of[text] for text in texts])

    index = Embeddings(
        method="external", transform=transform, hybrid=True, content=True
    )
    index.index((c["id"], c["text"], None) for c in given.chunks)
    return lambda question: [row["id"] for row in index.search(question, k)]


def chroma(given: Given, k: int, folder: Path) -> Search:
    """Make a persistent collection: dense alone, for it has no keyword leg."""
    collection = _chroma(folder).create_collection(
        "chunks", configuration={"hnsw": {"space": "cosine"}}
    )
    for part, rows in _batches(given):
        collection.add(
            ids=[c["id"] for c in part],
            documents=[c["text"] for c in part],
            embeddings=rows,
        )
    return reopened_chroma(given, k, folder)


def reopened_chroma(given: Given, k: int, folder: Path) -> Search:
    """Open a collection that is there."""
    collection = _chroma(folder).get_collection("chunks")

    def search(question: str) -> list[str]:
        vector = given.vector_of[question]
        return list(collection.query(query_embeddings=[vector], n_results=k)["ids"][0])

    return search


def _chroma(folder: Path) -> Any:  # noqa: ANN401 -- the library's
    import chromadb

    settings = chromadb.Settings(anonymized_telemetry=False)
    return chromadb.PersistentClient(str(folder), settings=settings)


def _batches(given: Given) -> Iterator[tuple[list[dict[str, Any]], Any]]:
    for start in range(0, len(given.chunks), AT_ONCE):
        yield (
            given.chunks[start : start + AT_ONCE],
            given.vectors[start : start + AT_ONCE],
        )


def kept(given: Given, k: int, folder: Path) -> Search:
    """Use the default preset: every stage, the whole record, queries written down."""
    from ours import filled

    seconds = filled(given, folder)
    search = reopened_kept(given, k, folder)
    if seconds is not None:
        TOOK[KEPT] = seconds
    return search


def reopened_kept(given: Given, k: int, folder: Path) -> Search:
    """Open a knowledge base that is there."""
    from ours import opened

    base = opened(given, folder)
    AFTERWARDS.callback(base.close)

    def search(question: str) -> list[str]:
        return [c.id for c in base.search(question, k=k).selection.candidates]

    return search


KEPT = "kept"
# What taking in took, where it was not done here and now.
TOOK: dict[str, float] = {}
ENGINES: dict[str, Callable[[Given, int, Path], Search]] = {
    "kept": kept,
    "langchain": langchain,
    "llamaindex": lambda given, k, folder: llamaindex(given, k),
    "haystack": lambda given, k, folder: haystack(given, k),
    "lancedb": lancedb,
    "lancedb-index": partial(lancedb, indexed=True),
    "lancedb-refined": partial(lancedb, indexed=True, refined=REFINED),
    "txtai": txtai,
    "chroma": chroma,
}
REOPENED: dict[str, Callable[[Given, int, Path], Search]] = {
    "kept": reopened_kept,
    "lancedb": reopened_lancedb,
    "lancedb-index": reopened_lancedb,
    "lancedb-refined": partial(reopened_lancedb, refined=REFINED),
    "chroma": reopened_chroma,
}
# Searching by vector alone, to see how many of the nearest are found.
NEAREST: dict[str, Callable[[Given, int, Path], Search]] = {
    "lancedb": nearest_in_lancedb,
    "lancedb-index": nearest_in_lancedb,
    "lancedb-refined": partial(nearest_in_lancedb, refined=REFINED),
    "chroma": reopened_chroma,
}


def in_scratch(system: str) -> Callable[[Given, int], Search]:
    """Return a builder of a system in a temporary folder."""

    def built(given: Given, k: int) -> Search:
        folder = Path(tempfile.mkdtemp(prefix="kept-engine-"))
        AFTERWARDS.callback(shutil.rmtree, folder, ignore_errors=True)
        return ENGINES[system](given, k, folder)

    return built


if __name__ == "__main__":
    main(sys.argv[1:], {system: in_scratch(system) for system in ENGINES})
