"""Auditing a retriever: it is asked repeatedly, concurrently and off topic."""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from kept.errors import InputError
from kept.evaluation.retriever_check import probes
from kept.evaluation.retriever_check.observations import (
    Observed,
    ObservedQuestion,
    RetrieverAnswer,
    TwinAsked,
)
from kept.evaluation.retriever_check.report import RetrieverReport, worst_first
from kept.evaluation.retriever_check.score_checks import floors, near_matches, scores
from kept.evaluation.retriever_check.stability_checks import (
    duplicates,
    failures,
    order,
    ties,
)
from kept.evaluation.retriever_check.target import Target, target_of

MOST_TWINS = 16
CHECKS = (near_matches, floors, scores, order, ties, duplicates, failures)

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestioningEffort:
    """How much is asked: *runs* of each question, and once more on *threads*."""

    runs: int = 3
    threads: int = 8

    def __post_init__(self) -> None:
        """Raise for an effort that compares nothing."""
        for name, least in (("runs", 2), ("threads", 1)):
            if (met := getattr(self, name)) < least:
                msg = f"{name} is {met}; expected at least {least}"
                raise InputError(msg)


def audit(
    retriever: object,
    questions: Iterable[str],
    *,
    k: int = 10,
    effort: QuestioningEffort | None = None,
    progress: Progress | None = None,
) -> RetrieverReport:
    """Question *retriever* and report its problems.

    It is a function of a question and the number wanted, or a retriever of
    LangChain, LlamaIndex or Haystack. Raise only if every question fails.
    """
    if k < 1:
        msg = f"k is {k}; expected at least 1"
        raise InputError(msg)
    target = retriever if isinstance(retriever, Target) else target_of(retriever)
    asked = [question for question in dict.fromkeys(questions) if question.strip()]
    if not asked:
        msg = "there are no questions; give at least one, better twenty"
        raise InputError(msg)
    effort = effort or QuestioningEffort()
    observer = _Observer(target, k, effort, progress or (lambda step: None))
    observed = observer.observe(asked)
    return RetrieverReport(
        retriever=target.name,
        questions=len(asked),
        k=k,
        runs=effort.runs,
        threads=effort.threads,
        calls=observer.calls,
        findings=worst_first([check(observed) for check in CHECKS]),
    )


class _Observer:
    """Asks everything that the checks need, and counts the calls."""

    def __init__(
        self, target: Target, k: int, effort: QuestioningEffort, progress: Progress
    ) -> None:
        self.target = target
        self.k = k
        self.effort = effort
        self.progress = progress
        self.calls = 0

    def observe(self, questions: Sequence[str]) -> Observed:
        self.progress(f"asking {len(questions)} questions")
        # One after the other first: a difference between runs is then not one of
        # threads.
        runs = [self._answers(questions, self.k) for _ in range(self.effort.runs)]
        errors = [answer.error for answer in runs[0] if answer.error]
        if len(errors) == len(questions):
            raise InputError(errors[0])
        self.progress(f"asking on {self.effort.threads} threads")
        threaded = self._answers(questions, self.k, threads=self.effort.threads)
        texts = [hit.text for answer in runs[0] for hit in answer.hits if hit.text]
        self.progress("asking for fewer and for more")
        fewer, more = self._other_depths(questions)
        self.progress("asking off-topic questions, and its own sentences")
        twins = probes.twins(texts, MOST_TWINS)
        return Observed(
            k=self.k,
            takes_k=self.target.takes_k,
            asked=tuple(
                ObservedQuestion(
                    question=question,
                    runs=tuple(run[place] for run in runs),
                    threaded=threaded[place],
                    fewer=fewer[place] if fewer else None,
                    more=more[place] if more else None,
                )
                for place, question in enumerate(questions)
            ),
            off_topic=tuple(
                self._answers(probes.off_topic([*texts, *questions]), self.k)
            ),
            twins=tuple(
                map(
                    TwinAsked,
                    twins,
                    self._answers([twin.question for twin in twins], self.k),
                )
            ),
        )

    def _other_depths(
        self, questions: Sequence[str]
    ) -> tuple[list[RetrieverAnswer], list[RetrieverAnswer]]:
        if not self.target.takes_k:
            return [], []
        # Half and twice the number: a score that is scaled over the results changes
        # with it.
        half = max(1, self.k // 2)
        fewer = self._answers(questions, half) if half < self.k else []
        return fewer, self._answers(questions, 2 * self.k)

    def _answers(
        self, questions: Sequence[str], k: int, *, threads: int = 0
    ) -> list[RetrieverAnswer]:
        self.calls += len(questions)
        if not threads:
            return [self._answer(question, k) for question in questions]
        with ThreadPoolExecutor(threads) as pool:
            return list(pool.map(lambda question: self._answer(question, k), questions))

    def _answer(self, question: str, k: int) -> RetrieverAnswer:
        try:
            return RetrieverAnswer(question, k, self.target(question, k)[:k])
        except InputError as error:
            return RetrieverAnswer(question, k, (), str(error))
