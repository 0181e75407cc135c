"""Pairs: questions and the chunks that recall brings for them, measured and judged."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kept.calibration.judgements import Judgement, by_question
from kept.embedders import checked
from kept.model import Candidate
from kept.ports import Embedder, Shelf
from kept.signals import Floats

DEPTH = 50
SIGNALS = ("cosine", "coverage", "bm25_share", "focus", "strength")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairs:
    """Measured pairs, column by column.

    *question* numbers the question of each pair. *unfound* counts the relevant
    passages that recall did not bring, so that nothing can be learnt of them.
    """

    signals: Mapping[str, Floats]
    truths: Floats
    question: NDArray[np.int64]
    questions: tuple[str, ...]
    unfound: int = 0

    def __len__(self) -> int:
        return len(self.truths)

    def where(self, chosen: NDArray[np.bool_]) -> "Pairs":
        """Return the chosen pairs only."""
        return Pairs(
            signals={name: values[chosen] for name, values in self.signals.items()},
            truths=self.truths[chosen],
            question=self.question[chosen],
            questions=self.questions,
            unfound=self.unfound,
        )

    def folds(self, count: int) -> NDArray[np.int64]:
        """Return the fold of each pair: a question is in one fold as a whole."""
        fold = [
            int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") % count
            for text in self.questions
        ]
        return np.array(fold, dtype=np.int64)[self.question]


def recalled(
    questions: Sequence[str], shelf: Shelf, embedder: Embedder, *, depth: int = DEPTH
) -> Iterator[tuple[str, Sequence[Candidate]]]:
    """Yield each question with the measured candidates that both legs bring."""
    vectors = checked(embedder.embed(questions), questions, embedder.id)
    for text, vector in zip(questions, vectors, strict=True):
        terms = shelf.weigh(text)
        legs = {
            "dense": shelf.dense_leg(vector, depth, None),
            "keyword": shelf.keyword_leg(terms, depth, None),
        }
        yield text, shelf.candidates(vector, terms, legs)


def judged_pairs(
    judgements: Iterable[Judgement],
    shelf: Shelf,
    embedder: Embedder,
    *,
    depth: int = DEPTH,
) -> Pairs:
    """Ask each judged question as a search would, and label what recall brings.

    A passage nobody judged counts as not relevant if its question has only
    relevant judgements, and is left out if it has both kinds. Of a document that
    is relevant as a whole, its best chunk counts and the others are left out.
    """
    grouped = by_question(judgements)
    rows: list[tuple[float, ...]] = []
    unfound = 0
    found = recalled(tuple(grouped), shelf, embedder, depth=depth)
    for number, (text, candidates) in enumerate(found):
        labelled, missing = _labelled(grouped[text], candidates)
        unfound += missing
        rows += [
            (number, truth, *(candidate.signal(name) for name in SIGNALS))
            for candidate, truth in labelled
        ]
    table = np.array(rows, dtype=np.float64).reshape(-1, 2 + len(SIGNALS))
    return Pairs(
        signals={name: table[:, 2 + i] for i, name in enumerate(SIGNALS)},
        truths=table[:, 1],
        question=table[:, 0].astype(np.int64),
        questions=tuple(grouped),
        unfound=unfound,
    )


def _labelled(
    judgements: Sequence[Judgement], candidates: Sequence[Candidate]
) -> tuple[list[tuple[Candidate, float]], int]:
    """Return the candidates that say something, and how many relevant are missing."""
    labels: dict[str, float] = {}
    missing = 0
    for judgement in judgements:
        meant = [c for c in candidates if _means(judgement, c)]
        if judgement.relevant and not meant:
            missing += 1
        if judgement.relevant and judgement.kind == "document_id" and meant:
            best = max(meant, key=lambda c: (_evidence(c), c.id))
            labels.update({c.id: np.nan for c in meant if c.id not in labels})
            labels[best.id] = 1.0
        else:
            labels.update({c.id: float(judgement.relevant) for c in meant})
    otherwise = 0.0 if all(j.relevant for j in judgements) else np.nan
    pairs = [(c, labels.get(c.id, otherwise)) for c in candidates]
    return [(c, truth) for c, truth in pairs if not np.isnan(truth)], missing


def _means(judgement: Judgement, candidate: Candidate) -> bool:
    if judgement.kind == "chunk_id":
        return candidate.id == judgement.passage
    if judgement.kind == "document_id":
        return candidate.document.id == judgement.passage
    return judgement.passage.strip() in candidate.chunk.text


def _evidence(candidate: Candidate) -> float:
    return candidate.signal("cosine") + candidate.signal("coverage")
