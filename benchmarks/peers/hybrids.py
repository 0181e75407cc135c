"""The hybrid retrievers of other libraries, as their documentation sets them up.

Runs in an environment of its own (requirements.txt beside this file). The folder it
is given holds the same chunks and the same vectors that Kept has; only searching
differs. Writes one JSON line per question: its id, and the chunk ids in order.
"""

# ruff: noqa: PLC0415 -- only the asked system is loaded

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

Search = Callable[[str], list[str]]
SAME = 1e-6

# What has to be closed or removed once all questions were asked.
AFTERWARDS = ExitStack()


class Given:
    """Chunks, questions and the vectors of both, as handed over."""

    def __init__(self, folder: Path, most: int | None) -> None:
        self.chunks = _lines(folder / "chunks.jsonl")
        self.questions = _lines(folder / "questions.jsonl")[:most]
        self.vectors = np.load(folder / "chunks.npy")
        texts = [question["text"] for question in _lines(folder / "questions.jsonl")]
        asked = np.load(folder / "questions.npy")
        self.vector_of = dict(zip(texts, asked, strict=True))
        self.vector_of |= {
            chunk["text"]: vector
            for chunk, vector in zip(self.chunks, self.vectors, strict=True)
        }


def as_near_as_the_nearest(
    products: np.ndarray, rows: Sequence[int] | np.ndarray, k: int
) -> int:
    """Return how many of *rows* are as near as the *k* nearest, ties included."""
    farthest = np.partition(products, len(products) - k)[len(products) - k]
    return int((products[rows] >= farthest - SAME).sum())


def langchain(given: Given, k: int) -> Search:
    """BM25Retriever and InMemoryVectorStore under EnsembleRetriever, half and half."""
    from langchain_classic.retrievers import EnsembleRetriever
    from langchain_community.retrievers import BM25Retriever
    from langchain_core.documents import Document
    from langchain_core.embeddings import Embeddings
    from langchain_core.vectorstores import InMemoryVectorStore

    class Lookup(Embeddings):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return [given.vector_of[text].tolist() for text in texts]

        def embed_query(self, text: str) -> list[float]:
            return list(given.vector_of[text].tolist())

    documents = [
        Document(page_content=chunk["text"], metadata={"id": chunk["id"]})
        for chunk in given.chunks
    ]
    store = InMemoryVectorStore(Lookup())
    store.add_documents(documents)
    keyword = BM25Retriever.from_documents(documents, k=k)
    dense = store.as_retriever(search_kwargs={"k": k})
    both = EnsembleRetriever(
        retrievers=[keyword, dense], weights=[0.5, 0.5], id_key="id"
    )
    return lambda question: [d.metadata["id"] for d in both.invoke(question)]


def llamaindex(given: Given, k: int) -> Search:
    """BM25Retriever and VectorStoreIndex under QueryFusionRetriever, reciprocal."""
    from llama_index.core import VectorStoreIndex
    from llama_index.core.base.embeddings.base import BaseEmbedding
    from llama_index.core.llms import MockLLM
    from llama_index.core.retrievers import QueryFusionRetriever
    from llama_index.core.schema import TextNode
    from llama_index.retrievers.bm25 import BM25Retriever

    class Lookup(BaseEmbedding):
        def _get_query_embedding(self, query: str) -> list[float]:
            return list(given.vector_of[query].tolist())

        def _get_text_embedding(self, text: str) -> list[float]:
            return list(given.vector_of[text].tolist())

        async def _aget_query_embedding(self, query: str) -> list[float]:
            return self._get_query_embedding(query)

    nodes = [
        TextNode(id_=chunk["id"], text=chunk["text"], embedding=vector.tolist())
        for chunk, vector in zip(given.chunks, given.vectors, strict=True)
    ]
    index = VectorStoreIndex(nodes, embed_model=Lookup())
    both = QueryFusionRetriever(
        [
            BM25Retriever.from_defaults(nodes=nodes, similarity_top_k=k),
            index.as_retriever(similarity_top_k=k),
        ],
        llm=MockLLM(),
        mode="reciprocal_rerank",
        similarity_top_k=k,
        num_queries=1,
        use_async=False,
    )
    return lambda question: [found.node.id_ for found in both.retrieve(question)]


def haystack(given: Given, k: int) -> Search:
    """In-memory BM25 and embedding retrievers joined by reciprocal rank fusion."""
    from haystack import Document
    from haystack.components.joiners import DocumentJoiner
    from haystack.components.retrievers.in_memory import (
        InMemoryBM25Retriever,
        InMemoryEmbeddingRetriever,
    )
    from haystack.document_stores.in_memory import InMemoryDocumentStore

    store = InMemoryDocumentStore(embedding_similarity_function="cosine")
    store.write_documents(
        [
            Document(id=chunk["id"], content=chunk["text"], embedding=vector.tolist())
            for chunk, vector in zip(given.chunks, given.vectors, strict=True)
        ]
    )
    keyword = InMemoryBM25Retriever(document_store=store, top_k=k)
    dense = InMemoryEmbeddingRetriever(document_store=store, top_k=k)
    joiner = DocumentJoiner(join_mode="reciprocal_rank_fusion", top_k=k)

    def search(question: str) -> list[str]:
        legs = [
            keyword.run(query=question)["documents"],
            dense.run(query_embedding=given.vector_of[question].tolist())["documents"],
        ]
        return [d.id for d in joiner.run(documents=legs)["documents"]]

    return search


SYSTEMS = {"langchain": langchain, "llamaindex": llamaindex, "haystack": haystack}


def main(
    arguments: Sequence[str], systems: Mapping[str, Callable[[Given, int], Search]]
) -> None:
    """Ask one of *systems* every question."""
    parser = argparse.ArgumentParser()
    parser.add_argument("system", choices=systems)
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--k", type=int, default=100)
    parser.add_argument("--questions", type=int, default=None)
    chosen = parser.parse_args(arguments)
    given = Given(chosen.folder, chosen.questions)
    search = systems[chosen.system](given, chosen.k)
    with AFTERWARDS, chosen.out.open("w", encoding="utf-8") as stream:
        for question in given.questions:
            found = search(question["text"])
            stream.write(json.dumps({"id": question["id"], "chunks": found}) + "\n")


def _lines(path: Path) -> list[dict[str, Any]]:
    with path.open(encoding="utf-8") as stream:
        return [json.loads(line) for line in stream]


if __name__ == "__main__":
    main(sys.argv[1:], SYSTEMS)
