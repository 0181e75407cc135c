"""Comparing two runs question by question, with gates on the difference."""

import operator
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, Self

from kept.errors import InputError
from kept.evaluation.abstention import asked_in, attempt_of
from kept.evaluation.measures import Measures
from kept.evaluation.ordinal import MAE
from kept.evaluation.paired import TIE, Delta, curve_deltas, named_delta
from kept.evaluation.resampling import (
    STANDARD,
    Resampling,
    mean_interval,
    randomisation_test,
)
from kept.evaluation.runs import EvaluationRun, QueryRecord
from kept.evaluation.selective import PAIRED

# Coverage and risk of the curve count whatever was scored, so a run's own refusals are
# no part of them.
AREAS = PAIRED[2:]
Pairs = Sequence[tuple[QueryRecord, QueryRecord]]

COMPARE: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
_GATE = re.compile(
    r"\s*(?:(?P<bound>low|high)\s*\(\s*)?(?P<measure>[^\s<>=]+?)\s*(?P<close>\))?\s*"
    r"(?P<compare>>=|<=|>|<)\s*(?P<limit>[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?)\s*",
    re.IGNORECASE,
)
_CURVE_NAMES = {name.casefold(): name for name in (*PAIRED, MAE)}


class HasDeltas(Protocol):
    """Something with paired deltas that gates can bound."""

    def delta(self, measure: str) -> Delta:
        """Return the change of one measure."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryDelta:
    """One question under both runs, with the addresses of both traces."""

    question_id: str
    question: str
    before: float
    after: float
    trace_before: str | None = None
    trace_after: str | None = None

    @property
    def difference(self) -> float:
        """How much better B is than A."""
        return round(self.after - self.before, 9)


@dataclass(frozen=True, slots=True, kw_only=True)
class Blame:
    """What one cause did to the measure: the gains and losses of B due to it.

    *stage* is the stage whose decision differs, ``recall`` where a document never
    became a candidate, ``order`` where it was only ranked elsewhere, and ``refusal``
    where the question was refused.
    """

    stage: str
    reason: str
    gained: float
    lost: float
    questions: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunComparison:
    """Run B against run A."""

    before: str
    after: str
    questions: int
    only_before: int
    only_after: int
    deltas: tuple[Delta, ...]
    by_query: tuple[QueryDelta, ...]
    blame: tuple[Blame, ...]
    newly_refused: tuple[str, ...]
    newly_answered: tuple[str, ...]
    notes: tuple[str, ...] = ()

    def delta(self, measure: str) -> Delta:
        """Return the change of one measure; the error lists those there are."""
        return named_delta(measure, self.deltas)


def compare(
    before: EvaluationRun, after: EvaluationRun, *, how: Resampling = STANDARD
) -> RunComparison:
    """Compare two runs on the same collection, by every measure they share.

    Single questions and blame use the first of them.
    """
    if before.header.collection_fingerprint != after.header.collection_fingerprint:
        msg = (
            f"{before.header.name} was run on {before.header.collection} and "
            f"{after.header.name} on {after.header.collection} in another state; "
            "compare runs on the same collection"
        )
        raise InputError(msg)
    pairs = _paired(before.judged, after.judged)
    measures = [m for m in before.header.measures if m in after.header.measures]
    if not pairs or not measures:
        what = "measure" if pairs else "judged question"
        msg = f"the runs share no {what}; there is nothing to compare"
        raise InputError(msg)
    everything = _paired(before.records, after.records)
    return RunComparison(
        before=before.header.name,
        after=after.header.name,
        questions=len(pairs),
        only_before=len(before.judged) - len(pairs),
        only_after=len(after.judged) - len(pairs),
        deltas=(
            *(_delta(m, pairs, how) for m in measures),
            *_area_deltas(everything, how),
        ),
        by_query=tuple(_query_delta(measures[0], a, b) for a, b in pairs),
        blame=_blame(measures[0], pairs),
        newly_refused=_refused(everything),
        newly_answered=_refused([(b, a) for a, b in everything]),
        notes=tuple(
            f"{run.header.name} was interrupted; it holds {len(run.records)} questions"
            for run in (before, after)
            if not run.complete
        ),
    )


def _paired(before: Iterable[QueryRecord], after: Iterable[QueryRecord]) -> Pairs:
    others = {r.question_id: r for r in after}
    return [(r, others[r.question_id]) for r in before if r.question_id in others]


def _refused(pairs: Pairs) -> tuple[str, ...]:
    """Name the questions that the first answers and the second refuses."""
    return tuple(b.question_id for a, b in pairs if b.refusal and not a.refusal)


def _delta(measure: str, pairs: Pairs, how: Resampling) -> Delta:
    differences = [b.measures[measure] - a.measures[measure] for a, b in pairs]
    interval = mean_interval(differences, how=how)
    if interval is None:  # pragma: no cover -- there is at least one pair
        msg = f"no interval for {measure}"
        raise InputError(msg)
    return Delta(
        measure=measure,
        before=_mean([a.measures[measure] for a, _ in pairs]),
        after=_mean([b.measures[measure] for _, b in pairs]),
        difference=interval,
        p_value=randomisation_test(differences, how=how),
        wins=sum(d > TIE for d in differences),
        ties=sum(abs(d) <= TIE for d in differences),
        losses=sum(d < -TIE for d in differences),
    )


def _area_deltas(pairs: Pairs, how: Resampling) -> tuple[Delta, ...]:
    """Return how the areas under risk and coverage changed, if it is known.

    That takes questions that are marked as answerable or not.
    """
    both = [(asked_in([a]), asked_in([b])) for a, b in pairs]
    marked = [(a[0], b[0]) for a, b in both if a and b]
    deltas = curve_deltas(
        [attempt_of(a) for a, _ in marked], [attempt_of(b) for _, b in marked], how=how
    )
    return tuple(delta for delta in deltas if delta.measure in AREAS)


def _query_delta(measure: str, before: QueryRecord, after: QueryRecord) -> QueryDelta:
    return QueryDelta(
        question_id=before.question_id,
        question=before.question,
        before=before.measures[measure],
        after=after.measures[measure],
        trace_before=before.trace,
        trace_after=after.trace,
    )


def _blame(measure: str, pairs: Pairs) -> tuple[Blame, ...]:
    """Share each question's difference equally among its causes."""
    shares: dict[tuple[str, str], dict[str, float]] = {}
    for before, after in pairs:
        difference = after.measures[measure] - before.measures[measure]
        if abs(difference) <= TIE:
            continue
        better, worse = (after, before) if difference > 0 else (before, after)
        causes = _causes(better, worse)
        for cause in causes:
            each = shares.setdefault(cause, defaultdict(float))
            each[before.question_id] += difference / len(causes)
    blamed = [
        Blame(
            stage=stage,
            reason=reason,
            gained=round(sum(v for v in each.values() if v > 0), 9),
            lost=round(sum(v for v in each.values() if v < 0), 9),
            questions=tuple(each),
        )
        for (stage, reason), each in shares.items()
    ]
    return tuple(sorted(blamed, key=lambda b: (b.lost - b.gained, b.stage, b.reason)))


def _causes(better: QueryRecord, worse: QueryRecord) -> list[tuple[str, str]]:
    """Return the cause for each relevant document that is ranked lower or lost."""
    if worse.refusal and not better.refusal:
        return [("refusal", worse.refusal)]
    # A document that is missing counts as ranked behind all that are there.
    ranks = {d: i for i, (d, _) in enumerate(worse.ranking)}
    last = len(worse.ranking)
    return [
        _cause(document, better, worse)
        for rank, (document, _) in enumerate(better.ranking)
        if document in better.relevant and ranks.get(document, last + rank) > rank
    ] or [("order", "ranked_elsewhere")]


def _cause(document: str, better: QueryRecord, worse: QueryRecord) -> tuple[str, str]:
    if any(d == document for d, _ in worse.ranking):
        return "order", "ranked_elsewhere"
    for touch in reversed(worse.touches):
        if touch.document_id == document and touch.verdict == "dropped":
            return touch.stage, touch.reason
    for touch in better.touches:
        if touch.document_id == document and touch.verdict == "added":
            return touch.stage, touch.reason
    return "recall", "not_recalled"


def _mean(values: Sequence[float]) -> float:
    return round(sum(values) / len(values), 9)


@dataclass(frozen=True, slots=True)
class Gate:
    """A condition on the change of a measure from A to B.

    ``nDCG@10 >= -0.005`` bounds the mean difference, ``low(nDCG@10) >= -0.01`` the
    lower end of its interval.
    """

    measure: str
    compare: str
    limit: float
    bound: str = "estimate"

    def __str__(self) -> str:
        name = self.measure
        if self.bound != "estimate":
            name = f"{self.bound}({name})"
        return f"{name} {self.compare} {self.limit:g}"

    @classmethod
    def parsed(cls, text: str) -> Self:
        """Parse a gate; the error shows how one is written."""
        match = _GATE.fullmatch(text)
        if match is None or bool(match["bound"]) != bool(match["close"]):
            msg = (
                f"{text!r} is no gate; write a measure, a comparison and a number, "
                "such as 'nDCG@10 >= -0.005' or 'low(R@100) >= -0.01'"
            )
            raise InputError(msg)
        measure = _CURVE_NAMES.get(match["measure"].casefold())
        if measure is None:
            [measure] = Measures.named(match["measure"]).names
        bound = (match["bound"] or "estimate").lower()
        return cls(measure, match["compare"], float(match["limit"]), bound)

    def held_against(self, comparison: HasDeltas) -> "GateVerdict":
        """Return whether *comparison* passes, and the number that decides."""
        interval = comparison.delta(self.measure).difference
        value = float(getattr(interval, self.bound))
        passed = COMPARE[self.compare](value, self.limit)
        return GateVerdict(str(self), value, passed)


@dataclass(frozen=True, slots=True)
class GateVerdict:
    """A gate, the number that decides it, and whether it passed."""

    gate: str
    value: float
    passed: bool


def gate_verdicts(
    gates: Iterable[str], comparison: HasDeltas
) -> tuple[GateVerdict, ...]:
    """Check every gate against *comparison*."""
    parsed = [Gate.parsed(text) for text in gates]
    return tuple(gate.held_against(comparison) for gate in parsed)
