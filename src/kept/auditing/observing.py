"""Observing: every question asked again and again, and what came back."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from kept.auditing import probes
from kept.auditing.checking import CHECKS
from kept.auditing.hits import Hit
from kept.auditing.observed import Answer, Asked, Observed, TwinAsked
from kept.auditing.report import Report, worst_first
from kept.auditing.target import Target, target_of
from kept.errors import InputError

MOST_TWINS = 16

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How much is asked: *runs* of each question, and once more on *threads*."""

    runs: int = 3
    threads: int = 8

    def __post_init__(self) -> None:
        """Refuse what would compare nothing."""
        for name, least in (("runs", 2), ("threads", 1)):
            if (met := getattr(self, name)) < least:
                msg = f"{name} is {met}; expected at least {least}"
                raise InputError(msg)


def audit(
    retriever: object,
    questions: Iterable[str],
    *,
    k: int = 10,
    effort: Effort | None = None,
    progress: Progress | None = None,
) -> Report:
    """Question *retriever* and report what it does to its users.

    It is a function of a question and how many are wanted, or a retriever of
    LangChain, LlamaIndex or Haystack. It fails only if every question fails.
    """
    if k < 1:
        msg = f"k is {k}; expected at least 1"
        raise InputError(msg)
    target = retriever if isinstance(retriever, Target) else target_of(retriever)
    asked = [question for question in dict.fromkeys(questions) if question.strip()]
    if not asked:
        msg = "there are no questions; give at least one, better twenty"
        raise InputError(msg)
    observer = _Observer(target, k, effort or Effort(), progress or _quiet)
    observed = observer.observe(asked)
    return Report(
        retriever=target.name,
        questions=len(asked),
        k=k,
        runs=observer.effort.runs,
        threads=observer.effort.threads,
        calls=observer.calls,
        findings=worst_first([check(observed) for check in CHECKS]),
    )


class _Observer:
    """Asks, and counts how often."""

    def __init__(
        self, target: Target, k: int, effort: Effort, progress: Progress
    ) -> None:
        self.target = target
        self.k = k
        self.effort = effort
        self.progress = progress
        self.calls = 0

    def observe(self, questions: Sequence[str]) -> Observed:
        """Ask everything that the checks need."""
        self.progress(f"asking {len(questions)} questions")
        runs = [list(self._all(questions, self.k)) for _ in range(self.effort.runs)]
        _demand_some(runs[0])
        self.progress(f"asking on {self.effort.threads} threads")
        threaded = self._at_once(questions)
        texts = [hit.text for answer in runs[0] for hit in answer.hits if hit.text]
        self.progress("asking for fewer and for more")
        fewer, more = self._other_depths(questions)
        self.progress("asking what is off topic, and what it found itself")
        off_topic = probes.off_topic([*texts, *questions])
        twins = probes.twins(texts, MOST_TWINS)
        return Observed(
            k=self.k,
            takes_k=self.target.takes_k,
            asked=tuple(
                Asked(
                    question=question,
                    runs=tuple(run[place] for run in runs),
                    threaded=threaded[place],
                    fewer=fewer[place] if fewer else None,
                    more=more[place] if more else None,
                )
                for place, question in enumerate(questions)
            ),
            off_topic=tuple(self._all(off_topic, self.k)),
            twins=tuple(
                TwinAsked(twin, self._ask(twin.question, self.k)) for twin in twins
            ),
        )

    def _other_depths(
        self, questions: Sequence[str]
    ) -> tuple[list[Answer], list[Answer]]:
        if not self.target.takes_k:
            return [], []
        half = max(1, self.k // 2)
        fewer = list(self._all(questions, half)) if half < self.k else []
        return fewer, list(self._all(questions, 2 * self.k))

    def _at_once(self, questions: Sequence[str]) -> list[Answer]:
        with ThreadPoolExecutor(self.effort.threads) as pool:
            tasks = [pool.submit(self._asked, one, self.k) for one in questions]
            answers = [task.result() for task in tasks]
        self.calls += len(answers)
        return answers

    def _all(self, questions: Iterable[str], k: int) -> Iterator[Answer]:
        for question in questions:
            yield self._ask(question, k)

    def _ask(self, question: str, k: int) -> Answer:
        self.calls += 1
        return self._asked(question, k)

    def _asked(self, question: str, k: int) -> Answer:
        try:
            hits: tuple[Hit, ...] = self.target(question, k)
        except InputError as error:
            return Answer(question, k, (), str(error))
        return Answer(question, k, hits[:k])


def _demand_some(answers: Sequence[Answer]) -> None:
    """Refuse to audit what never answers; its own words say why."""
    errors = [answer.error for answer in answers if answer.error]
    if len(errors) == len(answers):
        raise InputError(errors[0])


def _quiet(step: str) -> None:
    """Tell nobody."""
