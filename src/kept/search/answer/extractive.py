"""Extracts: the sentences of the cited passages that answer, word for word."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any

import numpy as np

from kept.kernel.model import Candidate
from kept.kernel.ports import Embedder
from kept.kernel.record import Reason, Selection
from kept.kernel.signals import PLACES
from kept.models.embedders import beside
from kept.search.answer.expected import fits, subject_of
from kept.text.sentences import sentences
from kept.text.statements import Statement, statement_at, statements, without_markup
from kept.text.tokens import (
    SPACELESS,
    analyse_query,
    content_words,
    detect_language,
    index_terms,
    spellings,
)

AT_MOST = 3
SHARE_OF_BEST = 0.6
SHARE_OF_RELEVANCE = 0.5
SAME = 0.8
SHARE_OF_COSINE = 0.5
COST_OF_SILENCE = 0.5
# Of 220 judged questions over the passages that the floor lets through: with these two,
# 26 in 100 answerable questions got a sentence and 8 in 100 others; 88 in 100 sentences
# came from a passage worth citing. At .55 and .55 it was 46, 37 and 70 in 100.
ENOUGH = 0.65
ENOUGH_WITH_A_WORD_MISSING = 0.75
# Pairs of characters: the words that ask are among them and nothing leaves them out.
ENOUGH_WITHOUT_SPACES = 0.25

_HEADING = re.compile(r"^[ \t]{0,3}#{1,6}[ \t]+(.+)$", re.MULTILINE)
_SPACELESS = re.compile(f"[{SPACELESS}]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Extract:
    """A statement of a source without its markup, and how well it meets the question.

    *coverage* is the share of the question's weight that it has, together with the
    headings above it and the name of its document. *span* is where a reader saw the
    answer in *text*; *answers* says whether it may stand for an answer.
    """

    source: int
    chunk_id: str
    text: str
    start: int
    end: int
    score: float
    coverage: float
    answers: bool
    terms: frozenset[str]
    span: tuple[int, int] | None = None

    def as_data(self) -> dict[str, Any]:
        """Return the quotation as JSON holds it."""
        return {
            "marker": self.source,
            "chunk_id": self.chunk_id,
            "text": self.text,
            "start": self.start,
            "end": self.end,
            "answer": list(self.span) if self.span else None,
        }


@dataclass(frozen=True, slots=True)
class PassageRead:
    """What a reader saw in a passage: its span, or that there is no answer."""

    found: bool
    start: int = 0
    end: int = 0


def readings_of(selection: Selection) -> dict[str, PassageRead]:
    """Return what a reader saw in each passage that it read."""
    return {
        decision.chunk_id: PassageRead(
            decision.reason == Reason.ANSWER_IN_PASSAGE,
            int(decision.evidence.get("start") or 0),
            int(decision.evidence.get("end") or 0),
        )
        for step in selection.trace
        if step.stage == "read"
        for decision in step.decisions
    }


@dataclass(frozen=True, slots=True)
class _Said:
    """A statement with its words, and those of what it stands under."""

    source: int
    candidate: Candidate
    statement: Statement
    own: frozenset[str]
    under: frozenset[str]


def extracts(
    question: str,
    candidates: Sequence[Candidate],
    embedder: Embedder | None = None,
    read: Mapping[str, PassageRead] | None = None,
) -> list[Extract]:
    """Return every statement of *candidates* with its score, in reading order.

    The score is its coverage, rare words weighing more; with an *embedder*, half of it
    is the cosine. Where a reader has *read* a passage, its sentence is the answer.
    """
    languages = [detect_language(one.chunk.text) for one in candidates]
    said = [
        one
        for place, candidate in enumerate(candidates)
        for one in _said(place + 1, candidate, languages[place])
    ]
    spelled = analyse_query(subject_of(question), tuple(dict.fromkeys(languages)))
    groups = [word.every for word in spelled]
    own, coverages = _coverages(groups, said)
    # A sentence that says it itself goes before one that only stands under it.
    scores = [(one + whole) / 2 for one, whole in zip(own, coverages, strict=True)]
    if embedder and said:
        near = _cosines(question, [one.statement.text for one in said], embedder)
        scores = [
            (1 - SHARE_OF_COSINE) * score + SHARE_OF_COSINE * cosine
            for score, cosine in zip(scores, near, strict=True)
        ]
    enough = _enough(question, candidates)
    trust = _trust(candidates)
    found = [
        Extract(
            source=one.source,
            chunk_id=one.candidate.id,
            text=one.statement.text,
            start=one.statement.start,
            end=one.statement.end,
            score=round(
                score * _weight(one.statement.text) * trust[one.source - 1], PLACES
            ),
            coverage=round(coverage, PLACES),
            answers=coverage >= enough
            and itself > 0
            and not _says_nothing(one.statement.text)
            and fits(question, one.statement.text),
            terms=one.own,
        )
        for one, itself, coverage, score in zip(
            said, own, coverages, scores, strict=True
        )
    ]
    sources = strong(candidates)
    return [
        replace(one, answers=one.answers and one.source in sources)
        for one in _as_read(found, candidates, read or {})
    ]


def chosen(found: Sequence[Extract], at_most: int = AT_MOST) -> list[Extract]:
    """Return the few that answer best, in reading order, none said twice.

    The others reach a good share of the best one's score.
    """
    kept: list[Extract] = []
    for one in sorted(found, key=lambda e: (-e.score, e.source, e.start)):
        good = not kept or one.score >= SHARE_OF_BEST * kept[0].score
        if one.answers and good and not any(_alike(one, other) for other in kept):
            kept.append(one)
        if len(kept) == at_most:
            break
    return sorted(kept, key=lambda e: (e.source, e.start))


def snippet_of(source: int, found: Sequence[Extract], text: str) -> str:
    """Return the statement of *source* that meets the question best."""
    own = [one for one in found if one.source == source]
    best = min(own, key=lambda e: (not e.answers, -e.score, e.start), default=None)
    return best.text if best else without_markup(text)


def missing_words(question: str, candidates: Iterable[Candidate]) -> tuple[str, ...]:
    """Return the words of content in a question that no candidate has in any form."""
    held: set[str] = set()
    languages: dict[str | None, None] = {}
    for one in candidates:
        language = detect_language(one.chunk.text)
        languages[language] = None
        held.update(index_terms(one.chunk.text, language), _named(one, language))
    if not languages:
        return ()
    return tuple(
        word
        for word in content_words(subject_of(question))
        if not _SPACELESS.search(word)
        and held.isdisjoint(spellings(word, tuple(languages)).every)
    )


def _said(source: int, candidate: Candidate, language: str | None) -> list[_Said]:
    text = candidate.chunk.text
    named = _named(candidate, language)
    headings = [
        (one.start(), frozenset(index_terms(one[1], language)))
        for one in _HEADING.finditer(text)
    ]
    found = statements(text) or _plain_only(text)
    return [
        _Said(
            source,
            candidate,
            one,
            frozenset(index_terms(one.text, language)),
            named.union(*(words for at, words in headings if at < one.start)),
        )
        for one in found
    ]


def _plain_only(text: str) -> list[Statement]:
    """Return what a passage of a word or a number says, which is no sentence."""
    if "#" in text or "|" in text or "```" in text:
        return []
    return [Statement(s.text, s.start, s.end) for s in sentences(text)]


def _named(candidate: Candidate, language: str | None) -> frozenset[str]:
    """Return the words of the title, of the file and of the headings above."""
    document = candidate.document
    path = getattr(candidate.chunk, "heading_path", None) or ()
    file = PurePath(document.source_uri.rpartition("/")[2]).stem
    return frozenset(index_terms("\n".join((document.title, file, *path)), language))


def _coverages(
    groups: Sequence[tuple[str, ...]], said: Sequence[_Said]
) -> tuple[list[float], list[float]]:
    """Return what share of the question's weight each statement covers.

    First by itself, then with the headings above it, so that "Due: 3 March" under
    "INV-49302" meets a question about that invoice.
    """
    itself = [[not one.own.isdisjoint(group) for one in said] for group in groups]
    whole = [
        [not (one.own | one.under).isdisjoint(group) for one in said]
        for group in groups
    ]
    # One more for every word: in a handful of sentences rarity alone says too much.
    weights = [1 + _rarity(len(said), sum(row)) for row in itself]
    total = math.fsum(weights) or 1.0

    def share(held: list[list[bool]], place: int) -> float:
        pairs = zip(weights, held, strict=True)
        return math.fsum(weight for weight, row in pairs if row[place]) / total

    places = range(len(said))
    return [share(itself, n) for n in places], [share(whole, n) for n in places]


def _rarity(all_of_them: int, holding: int) -> float:
    return math.log1p((all_of_them - holding + 0.5) / (holding + 0.5))


def _as_read(
    found: Sequence[Extract],
    candidates: Sequence[Candidate],
    read: Mapping[str, PassageRead],
) -> list[Extract]:
    """Let a reader's word count for the passages that it has read."""
    texts = {one.id: one.chunk.text for one in candidates}
    result: list[Extract] = []
    for one in found:
        seen = read.get(one.chunk_id)
        if seen is None or (seen.found and seen.end <= seen.start):
            result.append(one)
            continue
        text = texts[one.chunk_id]
        at = statement_at(text, seen.start, seen.end) if seen.found else None
        if at is None or (at.start, at.end) != (one.start, one.end):
            result.append(replace(one, answers=False))
            continue
        words = without_markup(text[seen.start : seen.end])
        place = one.text.find(words) if words else -1
        span = None if place < 0 else (place, place + len(words))
        result.append(replace(one, answers=True, score=one.score + 1, span=span))
    return result


def _enough(question: str, candidates: Sequence[Candidate]) -> float:
    """Return how much of the question's weight a sentence has to cover."""
    if _SPACELESS.search(question):
        return ENOUGH_WITHOUT_SPACES
    lacking = missing_words(question, candidates)
    return ENOUGH_WITH_A_WORD_MISSING if lacking else ENOUGH


def _trust(candidates: Sequence[Candidate]) -> list[float]:
    """Return from 0 to 1 how far sentences of each source go before others."""
    known = [one.signals.get("relevance", 1.0) for one in candidates]
    best = max(known, default=0.0) or 1.0
    return [math.sqrt(max(0.0, value) / best) for value in known]


def strong(candidates: Sequence[Candidate]) -> frozenset[int]:
    """Return the sources that are not far less relevant than the best of them."""
    known = [one.signals.get("relevance") for one in candidates]
    best = max((value for value in known if value is not None), default=0.0)
    return frozenset(
        number
        for number, (one, value) in enumerate(zip(candidates, known, strict=True), 1)
        if value is None or one.protected or value >= SHARE_OF_RELEVANCE * best
    )


def _says_nothing(text: str) -> bool:
    """Return whether a statement only asks, or only leads to what follows."""
    return text.endswith(("?", "\uff1f", "\u061f", ":", "\uff1a"))


def _weight(text: str) -> float:
    """Return less than 1 for what rarely answers a question, such as another one."""
    return COST_OF_SILENCE if _says_nothing(text) else 1.0


def _cosines(question: str, texts: Sequence[str], embedder: Embedder) -> list[float]:
    asked, vectors = beside(embedder, question, texts)
    row = np.round(vectors.astype(np.float64) @ asked.astype(np.float64), PLACES)
    return [max(0.0, float(cosine)) for cosine in row]


def _alike(one: Extract, other: Extract) -> bool:
    union = len(one.terms | other.terms)
    return one.text == other.text or (
        union > 0 and len(one.terms & other.terms) / union >= SAME
    )
