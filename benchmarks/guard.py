"""What Kept selects from another retriever's results, and what it refuses.

Run ``python benchmarks/guard.py``; the evaluation data are taken from ``KEPT_DATA``.
Haystack's BM25 finds ten passages for each of fifty judged questions, and for fifty
trivia questions that the collection does not answer. The table is that of
``docs/how-to/bring-your-own-candidates.md``.
"""

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"

from haystack import Document
from haystack.components.retrievers.in_memory import InMemoryBM25Retriever
from haystack.document_stores.in_memory import InMemoryDocumentStore

from kept import Found, Passage, Selecting
from kept.evaluation.collection import Collection, load_collection, load_questions
from kept.evaluation.measures import Measures, means

DATA = Path(os.environ.get("KEPT_DATA", Path(__file__).parents[2] / "shared" / "data"))
SETS = ("scifact", "nfcorpus", "cranfield")
TRIVIA = "nq_open/NQ-open.dev.jsonl"
K = 10


def main() -> None:
    """Print a row for each set."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, default=50)
    parser.add_argument("--embedder", default="minilm")
    given = parser.parse_args()
    trivia = [q.text for q in load_questions(DATA / TRIVIA)][: given.questions]
    print("| set | nDCG@10, theirs | guarded | questions refused | trivia refused |")
    print("|---|---|---|---|---|")
    with Selecting(embedder=given.embedder) as guard:
        for name in SETS:
            collection = load_collection(DATA / name)
            print(row(collection, guard, trivia, given.questions), flush=True)


def row(
    collection: Collection, guard: Selecting, trivia: Sequence[str], count: int
) -> str:
    """Return the figures of one set, without and with guardrails."""
    store = InMemoryDocumentStore()
    store.write_documents(
        [
            Document(id=p.id, content=f"{p.title}\n{p.text}".strip())
            for p in collection.passages
        ]
    )
    theirs = InMemoryBM25Retriever(store, top_k=K)
    texts = {q.id: q.text for q in collection.questions}
    asked = [id_ for id_ in sorted(collection.qrels) if id_ in texts][:count]

    def selected(question: str, documents: Sequence[Document]) -> Found:
        handed = [
            Passage(id=d.id, text=d.content or "", score=d.score) for d in documents
        ]
        return guard.select(question, handed, scores="bm25", k=K)

    found = {id_: theirs.run(texts[id_])["documents"] for id_ in asked}
    kept = {id_: selected(texts[id_], found[id_]) for id_ in asked}
    refused = sum(
        selected(text, theirs.run(text)["documents"]).refused is not None
        for text in trivia
    )
    lost = sum(one.refused is not None for one in kept.values())
    plain = {id_: [d.id for d in documents] for id_, documents in found.items()}
    guarded = {
        id_: [c.id for c in one.selection.candidates] for id_, one in kept.items()
    }
    return (
        f"| {collection.name} | {ndcg(collection, plain):.3f} "
        f"| {ndcg(collection, guarded):.3f} | {lost} of {len(asked)} "
        f"| {refused} of {len(trivia)} |"
    )


def ndcg(collection: Collection, rankings: dict[str, list[str]]) -> float:
    """Return the mean nDCG@10 of rankings, best first."""
    run = {
        id_: tuple((chunk, float(-place)) for place, chunk in enumerate(ranking))
        for id_, ranking in rankings.items()
    }
    judged = {id_: collection.qrels[id_] for id_ in rankings}
    values = Measures.named("nDCG@10").of_run(judged, run)
    return means(values.values())["nDCG@10"]


if __name__ == "__main__":
    main()
