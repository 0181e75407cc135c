"""Order texts that are in no knowledge base by the relevance they would have in one."""

from kept.kernel.model import Candidate, Chunk, Document
from kept.kernel.signals import PLACES
from kept.knowledge_base.base import KnowledgeBase
from kept.search.retrieve import Request
from kept.search.select.measure import Texts, embedded


def reranked(
    base: KnowledgeBase, question: str, texts: list[str]
) -> list[tuple[int, float]]:
    """Return the place and the score of each text, the best first.

    Words weigh what they weigh in the knowledge base; the configured reranker scores
    the texts, or calibrated relevance where there is none.
    """
    with base.store.shelf(base.tenant) as shelf:
        terms = shelf.weigh(question)
    _, cosines = embedded(base.embedder, question, texts)
    columns = Texts(tuple(texts)).measured(terms, cosines)
    measured = tuple(
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
    candidates = base.calibration(measured, question)
    reranker = base.parts.reranker
    query = Request(question=question, tenant=base.tenant).query()
    scores = (
        [c.signals["relevance"] for c in candidates]
        if reranker is None
        else reranker.scores(query, candidates)
    )
    rows = [(place, round(float(score), PLACES)) for place, score in enumerate(scores)]
    return sorted(rows, key=lambda row: (-row[1], row[0]))
