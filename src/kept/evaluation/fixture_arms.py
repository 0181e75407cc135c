"""Running a fixture's questions with retrieval, with an oracle and closed book."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from typing import Any

from kept.evaluation.fixture import Fixture, FixtureQuestion, made_questions
from kept.evaluation.grader import (
    Faithfulness,
    Grade,
    content_words,
    faithfulness,
    grade,
)
from kept.kernel.record import Reason, Selection, Verdict

NEARLY_ALL = 0.6
HITS_AT = 3


class FixtureVerdict(StrEnum):
    """The result of a fixture run."""

    PASSED = "passed"
    BELOW_ACCEPTANCE = "below_acceptance"
    NOT_INGESTED = "not_ingested"
    NOTHING_TO_ASK = "nothing_to_ask"

    @property
    def exit_code(self) -> int:
        """The exit code of the command line."""
        return {"passed": 0, "below_acceptance": 20, "not_ingested": 21}.get(self, 22)


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseZero:
    """The result of ingesting the document."""

    chunks: int
    embedded: int
    duplicate: bool = False

    @property
    def problems(self) -> tuple[str, ...]:
        """Names of what went wrong."""
        checks = {
            "duplicate_detected": self.duplicate,
            "no_chunks": not self.chunks,
            "embedded_differs_from_chunks": self.embedded != self.chunks,
        }
        return tuple(name for name, failed in checks.items() if failed)


@dataclass(frozen=True, slots=True, kw_only=True)
class FixturePassage:
    """A chunk to answer a question from."""

    chunk_id: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownAnswer:
    """What a reader is shown: an answer, or a refusal and *beside* it sentences.

    The sentences are those of the sources that meet the question best, word for word.
    """

    text: str
    refused: bool = False
    beside: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FixtureSystem:
    """The system under test, as callables.

    *search* runs the real query path among the distractors, *oracle* returns the
    document's own nearest chunks, *answer* answers from passages (none for the
    closed book). Without *answer* only retrieval is judged.
    """

    ingested: PhaseZero
    chunks: tuple[FixturePassage, ...]
    search: Callable[[str], Selection]
    oracle: Callable[[str], Sequence[FixturePassage]]
    answer: Callable[[str, Sequence[FixturePassage]], ShownAnswer] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Miss:
    """Why no target was among the first k, with the reason from the record.

    *kind* is ``not_recalled``, ``dropped``, ``trimmed`` or ``ranked_low``.
    """

    kind: str
    stage: str = ""
    reason: str = ""
    evidence: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmAnswer:
    """One arm's answer with its grade and its faithfulness.

    What stands *beside* a refusal is graded in its place.
    """

    text: str
    refused: bool
    beside: tuple[str, ...]
    grade: Grade
    faithfulness: Faithfulness


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionOutcome:
    """One question under every arm; *rank*, of the first target, counts from 0."""

    question: FixtureQuestion
    rank: int | None
    miss: Miss | None
    retrieval_on: ArmAnswer | None = None
    oracle: ArmAnswer | None = None
    closed_book: ArmAnswer | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FixtureReport:
    """All questions of a fixture, their shares and the verdict.

    *shares* has hits, retrieval_on, oracle, closed_book and faithfulness, each None
    where it was not run; *failed* names those below acceptance.
    """

    name: str
    ingested: PhaseZero
    outcomes: tuple[QuestionOutcome, ...]
    shares: dict[str, Fraction | None]
    failed: tuple[str, ...]
    verdict: FixtureVerdict


def run_fixture(fixture: Fixture, system: FixtureSystem) -> FixtureReport:
    """Ask the fixture's questions in every arm and return the verdict."""
    questions = fixture.questions or made_questions([c.text for c in system.chunks])
    ready = not system.ingested.problems
    outcomes = tuple(_outcome(q, system) for q in questions) if ready else ()
    shares = _shares(outcomes)
    failed = tuple(
        name
        for name in ("hits", "retrieval_on", "oracle", "faithfulness")
        if (share := shares[name]) is not None
        and share < getattr(fixture.acceptance, name)
    )
    return FixtureReport(
        name=fixture.name,
        ingested=system.ingested,
        outcomes=outcomes,
        shares=shares,
        failed=failed,
        verdict=_verdict(ready=ready, asked=bool(outcomes), failed=bool(failed)),
    )


def targets(question: FixtureQuestion, chunks: Sequence[FixturePassage]) -> set[str]:
    """Return the ids of the chunks that hold a question's target.

    Its text is compared without spaces; where a chunk boundary cuts it, the chunk
    with most of its words counts. Without a target, any chunk that would pass as an
    answer counts.
    """
    if not question.target:
        return {c.chunk_id for c in chunks if grade(question.expected, c.text).passed}
    wanted = _folded(question.target)
    whole = {c.chunk_id for c in chunks if wanted in _folded(c.text)}
    if whole or not chunks:
        return whole
    words = set(content_words(question.target))
    share, _, chunk_id = max(
        (len(words & set(content_words(c.text))) / len(words), -i, c.chunk_id)
        for i, c in enumerate(chunks)
    )
    return {chunk_id} if share >= NEARLY_ALL else set()


def miss_reason(selection: Selection, wanted: set[str]) -> Miss:
    """Return from the record why none of the *wanted* chunks is at the top."""
    if any(c.id in wanted for c in selection.candidates):
        return Miss(kind="ranked_low")
    gone = {c.id for c in selection.dropped} & wanted
    for step in reversed(selection.trace):
        for decision in step.decisions:
            if decision.chunk_id in gone and decision.verdict is Verdict.DROPPED:
                trimmed = decision.reason == Reason.BEYOND_TOP_K
                return Miss(
                    kind="trimmed" if trimmed else "dropped",
                    stage=step.stage,
                    reason=str(decision.reason),
                    evidence=dict(decision.evidence),
                )
    return Miss(kind="not_recalled")


def _outcome(question: FixtureQuestion, system: FixtureSystem) -> QuestionOutcome:
    selection = system.search(question.question)
    wanted = targets(question, system.chunks)
    places = [i for i, c in enumerate(selection.candidates) if c.id in wanted]
    rank = places[0] if places else None
    hit = rank is not None and rank < HITS_AT
    found = [
        FixturePassage(chunk_id=c.id, text=c.chunk.text) for c in selection.candidates
    ]
    return QuestionOutcome(
        question=question,
        rank=rank,
        miss=None if hit else miss_reason(selection, wanted),
        retrieval_on=_answer(question, system, found),
        oracle=_answer(question, system, system.oracle(question.question)),
        closed_book=_answer(question, system, ()),
    )


def _answer(
    question: FixtureQuestion, system: FixtureSystem, passages: Sequence[FixturePassage]
) -> ArmAnswer | None:
    if system.answer is None:
        return None
    shown = system.answer(question.question, passages)
    # A refusal states nothing, so all that can be unfaithful is what stands beside it.
    stated = "\n".join(shown.beside) if shown.refused else shown.text
    return ArmAnswer(
        text=shown.text,
        refused=shown.refused,
        beside=shown.beside,
        grade=grade(question.expected, stated),
        faithfulness=faithfulness(stated, [p.text for p in passages]),
    )


def _shares(outcomes: Sequence[QuestionOutcome]) -> dict[str, Fraction | None]:
    def share(flags: Sequence[bool]) -> Fraction | None:
        return Fraction(sum(flags), len(flags)) if flags else None

    shares: dict[str, Fraction | None] = {"hits": share([not o.miss for o in outcomes])}
    for arm in ("retrieval_on", "oracle", "closed_book"):
        answers = [a for o in outcomes if (a := getattr(o, arm))]
        shares[arm] = share([a.grade.passed for a in answers])
    scores = [
        Fraction(o.retrieval_on.faithfulness.score).limit_denominator(1000)
        for o in outcomes
        if o.retrieval_on
    ]
    shares["faithfulness"] = sum(scores, Fraction(0)) / len(scores) if scores else None
    return shares


def _verdict(*, ready: bool, asked: bool, failed: bool) -> FixtureVerdict:
    if not ready:
        return FixtureVerdict.NOT_INGESTED
    if not asked:
        return FixtureVerdict.NOTHING_TO_ASK
    return FixtureVerdict.BELOW_ACCEPTANCE if failed else FixtureVerdict.PASSED


def _folded(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip().casefold()
