"""Reranking texts that are in no knowledge base, as if they were in this one."""

from kept.candidates.measuring import Texts, embedded
from kept.knowledge_base import KnowledgeBase
from kept.model import Candidate, Chunk, Document
from kept.retrieve import Request
from kept.signals import PLACES


def reranked(
    base: KnowledgeBase, question: str, texts: list[str]
) -> list[tuple[int, float]]:
    """Return the place and the score of each text, the best first.

    Texts are measured with the words' weights of the knowledge base; the configured
    reranker scores them, or calibrated relevance where there is none.
    """
    candidates = base.calibration(_candidates(base, question, texts), question)
    reranker = base.parts.reranker
    query = Request(question=question, tenant=base.tenant).query()
    scores = (
        [c.signals["relevance"] for c in candidates]
        if reranker is None
        else reranker.scores(query, candidates)
    )
    rows = [(place, round(float(score), PLACES)) for place, score in enumerate(scores)]
    return sorted(rows, key=lambda row: (-row[1], row[0]))


def _candidates(
    base: KnowledgeBase, question: str, texts: list[str]
) -> tuple[Candidate, ...]:
    with base.store.shelf(base.tenant) as shelf:
        terms = shelf.weigh(question)
    _, cosines = embedded(base.embedder, question, texts)
    columns = Texts(tuple(texts)).measured(terms, cosines)
    return tuple(
        Candidate(
            chunk=Chunk(
                id=f"text:{place:06d}", document_id="text", ord=place, text=text
            ),
            document=Document(id="text"),
            score=float(cosines[place]),
            signals={name: float(values[place]) for name, values in columns.items()},
        )
        for place, text in enumerate(texts)
    )
