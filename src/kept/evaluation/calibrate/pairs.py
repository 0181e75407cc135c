"""Judged pairs of a question and a chunk that was recalled for it, with signals."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kept.errors import InputError
from kept.evaluation.json_lines import Line, json_lines
from kept.evaluation.known_items import known_items
from kept.kernel.model import Candidate
from kept.kernel.ports import Embedder
from kept.kernel.signals import Floats
from kept.models.embedders import questioned
from kept.search.ports import Shelf

KINDS = ("chunk_id", "document_id", "text")
DEPTH = 50
SIGNALS = ("cosine", "coverage", "bm25_share", "focus", "strength")


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """Whether one passage is relevant to one question.

    The passage is named by *kind*: ``chunk_id``, ``document_id`` or ``text``, a part
    of a chunk's text.
    """

    question: str
    kind: str
    passage: str
    relevant: bool

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            msg = f"kind is {self.kind!r}; expected one of {', '.join(KINDS)}"
            raise InputError(msg)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairs:
    """Pairs in columns; *question* is the number of each pair's question.

    *unfound* counts the relevant passages that were not recalled: a fit learns
    nothing from them.
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
        return replace(
            self,
            signals={name: values[chosen] for name, values in self.signals.items()},
            truths=self.truths[chosen],
            question=self.question[chosen],
        )

    def folds(self, count: int) -> NDArray[np.int64]:
        """Return the fold of each pair; all pairs of a question share one."""
        # By digest, so that adding questions moves none of the others.
        fold = [
            int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") % count
            for text in self.questions
        ]
        return np.array(fold, dtype=np.int64)[self.question]


def read_judgements(path: Path, *, relevant_from: float = 1.0) -> tuple[Judgement, ...]:
    """Read JSON lines with ``question``, a passage and ``relevant``.

    The passage is under ``chunk_id``, ``document_id`` or ``text``. ``relevant`` is
    true, false or a grade, which counts as relevant from *relevant_from* on.
    """
    found = tuple(
        _judgement(line, record, relevant_from) for line, record in json_lines(path)
    )
    if not found:
        msg = f"{path}: there are no judgements in it; write one JSON object per line"
        raise InputError(msg)
    return found


def known_item_judgements(
    chunks: Mapping[str, str], *, at_most: int = 200
) -> tuple[Judgement, ...]:
    """Make questions about single *chunks* from their texts, which are given by id.

    They reuse the words of the text and so are easier than people's questions: a
    calibration fitted on them alone is overconfident.
    """
    ids, texts = list(chunks), list(chunks.values())
    return tuple(
        Judgement(
            question=item.question,
            kind="chunk_id",
            passage=ids[item.passage],
            relevant=True,
        )
        for item in known_items(texts, at_most=at_most)
    )


def recalled(
    questions: Sequence[str], shelf: Shelf, embedder: Embedder, *, depth: int = DEPTH
) -> Iterator[tuple[str, Sequence[Candidate]]]:
    """Yield each question with the candidates of both legs and their signals."""
    vectors = questioned(embedder, questions)
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
    judged_only: bool = False,
) -> Pairs:
    """Recall for each judged question as a search would, and label what is recalled.

    A passage without a judgement counts as not relevant if its question has only
    relevant judgements, and is left out if it has both kinds, or with *judged_only*.
    Of a document that is relevant as a whole, its best chunk counts and the others are
    left out.
    """
    grouped: dict[str, list[Judgement]] = {}
    for judgement in judgements:
        grouped.setdefault(judgement.question, []).append(judgement)
    rows: list[tuple[float, ...]] = []
    unfound = 0
    found = recalled(tuple(grouped), shelf, embedder, depth=depth)
    for number, (text, candidates) in enumerate(found):
        otherwise = np.nan if judged_only else None
        labelled, missing = _labelled(grouped[text], candidates, otherwise)
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
    judgements: Sequence[Judgement],
    candidates: Sequence[Candidate],
    otherwise: float | None,
) -> tuple[list[tuple[Candidate, float]], int]:
    """Return the candidates that have a label, and how many relevant are missing."""
    labels: dict[str, float] = {}
    missing = 0
    for judgement in judgements:
        meant = [c for c in candidates if _means(judgement, c)]
        if judgement.relevant and not meant:
            missing += 1
        if judgement.relevant and judgement.kind == "document_id" and meant:
            best = max(meant, key=lambda c: (_evidence(c), c.id))
            # Which other chunks of the document are relevant is not known.
            labels.update({c.id: np.nan for c in meant if c.id not in labels})
            labels[best.id] = 1.0
        else:
            labels.update({c.id: float(judgement.relevant) for c in meant})
    if otherwise is None:
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


def _judgement(
    line: Line, record: Mapping[str, Any], relevant_from: float
) -> Judgement:
    kind = next((name for name in KINDS if record.get(name)), None)
    if kind is None:
        there = ", ".join(sorted(record)) or "nothing"
        advice = f"name it under {' or '.join(KINDS)}"
        raise line.error(problem=f"no passage (there is: {there})", advice=advice)
    relevant = record.get("relevant", record.get("grade"))
    if not isinstance(relevant, bool | int | float):
        advice = "write true, false or a grade as a number"
        raise line.error(problem=f"relevant is {relevant!r}", advice=advice)
    return Judgement(
        question=line.text(record, "question"),
        kind=kind,
        passage=line.text(record, kind),
        relevant=relevant
        if isinstance(relevant, bool)
        else float(relevant) >= relevant_from,
    )
