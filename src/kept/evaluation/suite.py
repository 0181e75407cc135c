"""Asking a system every question of a collection, and recording what it returns."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kept.errors import InputError
from kept.evaluation.collection import Collection, Question
from kept.evaluation.measures import DEFAULT_MEASURES, Measures
from kept.evaluation.runs import (
    EvaluationRun,
    QueryRecord,
    RunHeader,
    RunWriter,
    StageCount,
    Touch,
)
from kept.evaluation.trec import Qrels, Ranking, Run, best_first
from kept.kernel.model import Candidate
from kept.kernel.record import Selection

# As many as the refusal looks at, and as Success@3 counts.
CITED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """What a system returned for one question.

    *ranking* holds (document id, score) under the collection's ids. *confidence*
    is what a floor is compared with; None means that nothing was scored.
    """

    ranking: Ranking = ()
    confidence: float | None = None
    refusal: str | None = None
    funnel: tuple[StageCount, ...] = ()
    touches: tuple[Touch, ...] = ()
    trace: str | None = None


AskSystem = Callable[[str], Ranked]
"""Asks a system one question."""

Progress = Callable[[int, int], None]
"""Called with the number of questions done, and their total."""


def ranked_documents(
    selection: Selection,
    *,
    document_id: Callable[[Candidate], str],
    confidence: float | None = None,
    refusal: str | None = None,
) -> Ranked:
    """Turn a selection of chunks into a ranking of documents with its record.

    A document has the score of its best chunk. *document_id* returns the id of a
    candidate's document in the collection.
    """
    scores: dict[str, float] = {}
    for candidate in selection.candidates:
        name = document_id(candidate)
        scores[name] = max(candidate.score, scores.get(name, candidate.score))
    owners = {c.id: document_id(c) for c in (*selection.candidates, *selection.dropped)}
    return Ranked(
        ranking=best_first(scores.items()),
        confidence=confidence,
        refusal=refusal,
        funnel=tuple(
            StageCount(stage=s.stage, before=s.before, after=s.after)
            for s in selection.trace
        ),
        touches=tuple(
            Touch(
                stage=step.stage,
                document_id=owners[decision.chunk_id],
                chunk_id=decision.chunk_id,
                verdict=decision.verdict.value,
                reason=str(decision.reason),
                evidence=dict(decision.evidence),
            )
            for step in selection.trace
            for decision in step.decisions
        ),
    )


def plan(
    collection: Collection,
    *,
    measures: Iterable[str] = DEFAULT_MEASURES,
    name: str = "run",
    configuration: Mapping[str, Any] | None = None,
    fingerprints: Mapping[str, str] | None = None,
) -> RunHeader:
    """Return the header of a run on *collection*."""
    return RunHeader(
        name=name,
        collection=collection.name,
        collection_fingerprint=collection.fingerprint,
        measures=Measures.named(*measures).names,
        configuration=configuration or {},
        fingerprints=fingerprints or {},
    )


def evaluate(
    collection: Collection,
    search: AskSystem,
    header: RunHeader,
    *,
    out: Path | None = None,
    progress: Progress | None = None,
) -> EvaluationRun:
    """Ask every question of *collection* and measure the answers.

    With *out*, each record is written at once, and questions that an interrupted run
    with the same header has recorded are not asked again.
    """
    measures = Measures.named(*header.measures)
    if out is None:
        records = _records(collection, search, measures, {}, progress)
        return EvaluationRun(header=header, records=tuple(records))
    with RunWriter(out, header) as writer:
        done = dict(writer.done)
        for record in _records(collection, search, measures, done, progress):
            if record.question_id not in done:
                writer.add(record)
        return writer.finish()


def scored_run(
    qrels: Qrels,
    run: Run,
    *,
    measures: Iterable[str] = DEFAULT_MEASURES,
    name: str = "run",
) -> EvaluationRun:
    """Measure a run that another system wrote, by judgements alone.

    It can be compared with any run that was scored on the same judgements.
    """
    if not any(run.get(question_id) for question_id in qrels):
        msg = (
            "the run ranks nothing for any judged query; check that run and "
            "judgements use the same query ids"
        )
        raise InputError(msg)
    judged = Collection(
        name="judgements",
        passages=(),
        questions=tuple(Question(id=q, text=q) for q in qrels),
        qrels=qrels,
    )

    def search(question: str) -> Ranked:
        return Ranked(ranking=tuple(run.get(question, ())))

    return evaluate(judged, search, plan(judged, measures=measures, name=name))


def _records(
    collection: Collection,
    search: AskSystem,
    measures: Measures,
    done: Mapping[str, QueryRecord],
    progress: Progress | None,
) -> Iterable[QueryRecord]:
    total = len(collection.questions)
    for count, question in enumerate(collection.questions, start=1):
        grades = collection.qrels.get(question.id, {})
        yield done.get(question.id) or record_of(
            question, search(question.text), grades, measures
        )
        if progress:
            progress(count, total)


def record_of(
    question: Question, found: Ranked, grades: Mapping[str, int], measures: Measures
) -> QueryRecord:
    """Measure what was *found* for *question*; keep decisions on relevant documents."""
    ranking = best_first(found.ranking)
    if found.confidence is not None and not math.isfinite(found.confidence):
        msg = f"the confidence of question {question.id} is {found.confidence}"
        raise InputError(msg)
    relevant = {d for d, grade in grades.items() if grade > 0}
    judged = bool(grades) and question.answerable is not False
    touches = tuple(t for t in found.touches if t.document_id in relevant)
    present = {d for d, _ in ranking} | {t.document_id for t in touches}
    return QueryRecord(
        question_id=question.id,
        question=question.text,
        ranking=ranking,
        measures=measures.of_query(grades, ranking) if judged else {},
        relevant=tuple(sorted(relevant & present)),
        relevant_total=len(relevant),
        answerable=question.answerable,
        kind=question.kind,
        confidence=found.confidence,
        refusal=found.refusal,
        correct=_correct(question, relevant, ranking),
        funnel=found.funnel,
        touches=touches,
        trace=found.trace,
    )


def _correct(question: Question, relevant: set[str], ranking: Ranking) -> bool | None:
    """Return whether a relevant document is among those that would be cited."""
    if question.answerable is False:
        return False
    if not relevant:
        return None
    return any(document in relevant for document, _ in ranking[:CITED])
