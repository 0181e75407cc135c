"""Extracts: the sentences of the selected passages that answer, word for word."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kept.kernel.model import Candidate
from kept.kernel.ports import Embedder
from kept.kernel.signals import PLACES
from kept.text.sentences import sentences
from kept.text.tokens import (
    Spellings,
    analyse,
    analyse_query,
    detect_language,
    index_terms,
)

AT_MOST = 3
SHARE_OF_BEST = 0.6
SAME = 0.8
FEWEST_TERMS = 3
SHARE_OF_COSINE = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Extract:
    """A sentence of a source, verbatim, and how well it meets the question."""

    source: int
    chunk_id: str
    text: str
    start: int
    end: int
    score: float
    terms: frozenset[str]


def extracts(
    question: str, candidates: Sequence[Candidate], embedder: Embedder | None = None
) -> list[Extract]:
    """Return every sentence of *candidates* with its score, in reading order.

    The score is the share of the question's weight that a sentence covers, rare
    words weighing more; with an *embedder*, half of it is the cosine.
    """
    cut = [
        (source, candidate, sentence, detect_language(candidate.chunk.text))
        for source, candidate in enumerate(candidates, 1)
        for sentence in sentences(candidate.chunk.text)
    ]
    terms = [frozenset(analyse(one.text, language)) for _, _, one, language in cut]
    languages = tuple(dict.fromkeys(language for *_, language in cut))
    held = [frozenset(index_terms(one.text, language)) for _, _, one, language in cut]
    scores = _coverages(analyse_query(question, languages), held)
    if embedder and cut:
        near = _cosines(question, [one.text for _, _, one, _ in cut], embedder)
        share = SHARE_OF_COSINE
        scores = [
            (1 - share) * score + share * cosine
            for score, cosine in zip(scores, near, strict=True)
        ]
    return [
        Extract(
            source=source,
            chunk_id=candidate.id,
            text=one.text,
            start=one.start,
            end=one.end,
            score=round(score * _weight(one.text, words), PLACES),
            terms=words,
        )
        for (source, candidate, one, _), words, score in zip(
            cut, terms, scores, strict=True
        )
    ]


def chosen(found: Sequence[Extract], at_most: int = AT_MOST) -> list[Extract]:
    """Return the few that answer best, in reading order, none said twice.

    The best is always there; the others reach a good share of its score.
    """
    best_first = sorted(found, key=lambda e: (-e.score, e.source, e.start))
    kept: list[Extract] = []
    for one in best_first:
        good = not kept or one.score >= SHARE_OF_BEST * kept[0].score > 0
        if good and not any(_alike(one, other) for other in kept):
            kept.append(one)
        if len(kept) == at_most:
            break
    return sorted(kept, key=lambda e: (e.source, e.start))


def snippet_of(source: int, found: Sequence[Extract], text: str) -> str:
    """Return the sentence of *source* that meets the question best."""
    own = [one for one in found if one.source == source]
    best = min(own, key=lambda e: (-e.score, e.start), default=None)
    return best.text if best else text.strip()


def _coverages(
    spelled: Sequence[Spellings], terms: Sequence[frozenset[str]]
) -> list[float]:
    """Return the share of the question's weight that each sentence covers."""
    held = [[not own.isdisjoint(word.every) for own in terms] for word in spelled]
    weights = [_rarity(len(terms), sum(row)) for row in held]
    total = math.fsum(weights) or 1.0
    return [
        math.fsum(w for w, row in zip(weights, held, strict=True) if row[n]) / total
        for n in range(len(terms))
    ]


def _rarity(all_of_them: int, holding: int) -> float:
    return math.log1p((all_of_them - holding + 0.5) / (holding + 0.5))


def _weight(text: str, terms: frozenset[str]) -> float:
    """Return less than 1 for what rarely answers: headings and questions."""
    short = 0.5 if len(terms) < FEWEST_TERMS else 1.0
    asks = 0.5 if text.endswith(("?", "\uff1f", "\u061f")) else 1.0
    return short * asks


def _cosines(question: str, texts: Sequence[str], embedder: Embedder) -> list[float]:
    vectors = embedder.embed([question, *texts]).astype(np.float64)
    row = np.round(vectors[1:] @ vectors[0], PLACES)
    return [max(0.0, float(cosine)) for cosine in row]


def _alike(one: Extract, other: Extract) -> bool:
    union = len(one.terms | other.terms)
    return one.text == other.text or (
        union > 0 and len(one.terms & other.terms) / union >= SAME
    )
