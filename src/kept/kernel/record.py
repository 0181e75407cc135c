"""The record: what happened to each candidate, where and why."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, Self

from kept.kernel.model import Candidate, Scalar, open_twin


class Verdict(StrEnum):
    """What a stage did to a candidate; without a decision it was kept."""

    DROPPED = "dropped"
    SPARED = "spared"
    PROTECTED = "protected"
    INJECTED = "injected"
    ADDED = "added"
    READ = "read"


class Reason(StrEnum):
    """Why. Stages outside this package bring their own strings.

    The strings of the near-match design are verbatim; each has a sentence in
    ``doc`` from which the reference page is made.
    """

    doc: str

    def __new__(cls, value: str, doc: str) -> Self:
        """Make a string that knows its own explanation."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.doc = doc
        return member

    NEAR_MATCH = "near_match", "Within near_match_distance of the query: protected."
    KEYWORD_MATCH = "keyword_match", "The strongest keyword hit: protected."
    PINNED = "pinned", "Forced in by the caller: never pruned."
    SPARSE_RECALL = (
        "sparse_recall",
        "Injected: the nearest chunk of a very small document; score filters spare it.",
    )
    SMALL_DENSE = (
        "small_dense",
        "Injected: the nearest chunk of a small document; score filters spare it.",
    )
    REPEATED = (
        "repeated",
        "The same text was handed in already, better placed.",
    )
    REPLACED = (
        "replaced",
        "A strictly nearer chunk of the same document was injected in its place.",
    )
    PROTECTED_OVERFLOW = (
        "protected_overflow",
        "More protected candidates than the limit has room for; the first stay.",
    )
    SOFT_SCORE_LIMIT = "soft_score_limit", "Composite score above the soft limit."
    STRICT_DISTANCE = (
        "strict_distance_threshold",
        "Beyond the strict distance, which others met.",
    )
    FALLBACK_DISTANCE = (
        "fallback_distance_threshold",
        "Beyond the fallback distance, after nothing met the strict one.",
    )
    ONE_PER_DOCUMENT = "dedupe_ki", "Another chunk stands for the same document."
    MIN_SIMILARITY = "min_similarity", "Less similar to the query than the minimum."
    MAX_DISTANCE = "max_distance", "Farther from the query than the maximum."
    SCORE_FLOOR = "score_floor", "Fused score below the floor (relative channel)."
    DENSE_FLOOR = (
        "dense_floor",
        "Dense signal below the floor; spared when the keyword signal waives it.",
    )
    RELEVANCE_FLOOR = (
        "relevance_floor",
        "Calibrated relevance below the floor (absolute channel).",
    )
    ANSWER_IN_PASSAGE = (
        "answer_in_passage",
        "The reader found the question answered here, at least in part.",
    )
    NO_ANSWER_IN_PASSAGE = (
        "no_answer_in_passage",
        "The reader found no answer to the question here.",
    )
    TAG_FILTER = "tag_filter", "Carries none of the tags asked for."
    LABEL_REQUIRED = "label_required", "Has no label for the item asked about."
    DIVERSITY = (
        "diversity",
        "One chunk in a row too many; another document has one as good.",
    )
    DOCUMENT_LIMIT = "document_limit", "Its document already has as many as it may."
    MMR = "mmr", "Too similar to what is kept, or too weak, for one of the k places."
    PER_INTENT_CAP = "per_intent_cap", "Beyond the cap of the question's intent."
    EXCERPT_CAP = "excerpt_cap", "Beyond the cap on excerpts; the protected pass."
    BEYOND_TOP_K = "trim_top_n", "Below the k best."
    CHAR_BUDGET = "char_budget", "Would exceed the budget of characters."
    TOKEN_BUDGET = "token_budget", "Would exceed the budget of tokens."
    JUDGE_REJECTED = "judge_rejected", "The judge rejected it, protected or not."
    JUDGE_UNSURE = "judge_unsure", "The judge was unsure, which counts as reject."
    ACCEPTED_CAP = "accepted_cap", "Accepted, but enough others were before it."


class Refused(StrEnum):
    """Why a question as a whole was answered with nothing."""

    QUERY_QUALITY = "query_quality"
    NOTHING_RELEVANT = "nothing_relevant"


DROPPED, SPARED, PROTECTED = Verdict.DROPPED, Verdict.SPARED, Verdict.PROTECTED
OVERFLOW = Reason.PROTECTED_OVERFLOW
# Protection shields from scores, limits and penalties, and not from the judge.
JUDGED = frozenset({Reason.JUDGE_REJECTED, Reason.JUDGE_UNSURE})


@dataclass(frozen=True, slots=True)
class Decision:
    """One thing that happened to one candidate, and what was compared."""

    chunk_id: str
    verdict: Verdict
    reason: str
    evidence: Mapping[str, Scalar] = field(default_factory=dict, hash=False)


_OpenDecision = open_twin(Decision)


def decided(
    chunk_id: str, verdict: Verdict, reason: str, evidence: Mapping[str, Scalar]
) -> Decision:
    """Make a decision quickly: most candidates of a query need one."""
    made: Any = _OpenDecision()
    made.chunk_id = chunk_id
    made.verdict = verdict
    made.reason = reason
    made.evidence = evidence
    # A frozen dataclass sets every field through object.__setattr__, which is slow.
    # Fields are set on an open twin, whose class is then exchanged.
    made.__class__ = Decision
    decision: Decision = made
    return decision


@dataclass(frozen=True, slots=True)
class Drop:
    """A rule's wish to drop a candidate; protection may overrule it."""

    reason: str
    evidence: Mapping[str, Scalar]

    @classmethod
    def because(cls, reason: str, **evidence: Scalar) -> "Drop":
        """Build a drop from what was seen and what it was held against."""
        return cls(reason, evidence)


class Later:
    """A frozen record whose field *later* is computed when it is first read.

    Most of a query's record is never read; a reader gets a tuple.
    """

    __slots__ = ("_made_of",)

    later: ClassVar[str]

    # Type checkers would take any attribute for granted.
    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> tuple[Any, ...]:
            if name != self.later:
                msg = f"{type(self).__name__!r} object has no attribute {name!r}"
                raise AttributeError(msg)
            made = tuple(self._made_of())
            object.__setattr__(self, name, made)
            return made


@dataclass(frozen=True, slots=True)
class Step(Later):
    """A stage's line in the trace."""

    later: ClassVar[str] = "decisions"

    stage: str
    before: int
    after: int
    decisions: tuple[Decision, ...] = ()
    facts: Mapping[str, Scalar] = field(default_factory=dict, hash=False)


_OpenStep = open_twin(Step)


def step_of(
    stage: str,
    before: int,
    after: int,
    decide: Callable[[], Iterable[Decision]],
    facts: Mapping[str, Scalar],
) -> Step:
    """Make a step whose decisions are built when they are read."""
    made: Any = _OpenStep()
    made.stage = stage
    made.before = before
    made.after = after
    made.facts = facts
    made._made_of = decide  # noqa: SLF001 -- not frozen yet
    made.__class__ = Step
    step: Step = made
    return step


@dataclass(frozen=True, slots=True)
class Selection(Later):
    """The answer to a query, and how it came about.

    A pure function of query, candidates and stages: it holds no clock reading
    and no generated id, so equal inputs give equal selections.
    """

    later: ClassVar[str] = "dropped"

    candidates: tuple[Candidate, ...]
    dropped: tuple[Candidate, ...] = ()
    trace: tuple[Step, ...] = ()

    @property
    def recalled(self) -> int:
        """How many candidates came in by recall."""
        return len(self.candidates) + len(self.dropped) - self.added

    @property
    def added(self) -> int:
        """How many candidates a stage brought in."""
        return sum(1 for _ in self.decisions(Verdict.ADDED))

    def decisions(self, verdict: Verdict | None = None) -> Iterator[Decision]:
        """Yield every decision in order, or only those with *verdict*."""
        for step in self.trace:
            for decision in step.decisions:
                if verdict is None or decision.verdict is verdict:
                    yield decision

    def explain(self, chunk_id: str) -> Iterator[tuple[str, Decision]]:
        """Yield each (stage, decision) that touched *chunk_id*, in order."""
        for step in self.trace:
            for decision in step.decisions:
                if decision.chunk_id == chunk_id:
                    yield step.stage, decision


_OpenSelection = open_twin(Selection)


def selection_of(
    candidates: tuple[Candidate, ...],
    gone: Callable[[], Iterable[Candidate]],
    trace: tuple[Step, ...],
) -> Selection:
    """Make a selection whose dropped candidates are built when they are read."""
    made: Any = _OpenSelection()
    made.candidates = candidates
    made.trace = trace
    made._made_of = gone  # noqa: SLF001 -- not frozen yet
    made.__class__ = Selection
    selection: Selection = made
    return selection


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why a question was answered with nothing, and what to do instead."""

    reason: str
    message: str
    evidence: Mapping[str, Any] = field(default_factory=dict, hash=False)
