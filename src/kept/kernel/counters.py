"""Counters: what the guardrails did to one query, in whole numbers."""

from collections.abc import Iterable, Mapping

from kept.kernel.record import Decision, Reason, Refusal, Refused, Selection, Verdict

COUNTERS: Mapping[str, str] = {
    "protected": "Candidates protected as near match, keyword hit or pin.",
    "protected_overflow": "Protected candidates that a limit had no room for.",
    "excerpt_cap_bypassed": "Protected excerpts that passed the excerpt cap.",
    "gated": "Questions that were not worth a search.",
    "filtered_by_floor": "Candidates dropped by a floor.",
    "reranked": "Queries that were reranked.",
    "injected": "Candidates injected by an assist.",
    "replaced": "Candidates replaced by an injected one.",
}

_PROTECTED = frozenset({Reason.NEAR_MATCH, Reason.KEYWORD_MATCH, Reason.PINNED})
_INJECTED = frozenset({Reason.SPARSE_RECALL, Reason.SMALL_DENSE})
_FLOORS = frozenset(
    {
        Reason.SCORE_FLOOR,
        Reason.DENSE_FLOOR,
        Reason.RELEVANCE_FLOOR,
        Reason.NO_ANSWER_IN_PASSAGE,
        Reason.MIN_SIMILARITY,
    }
)


def counters(selection: Selection, refusal: Refusal | None = None) -> dict[str, int]:
    """Count what happened to one query; add up the counts of many for totals."""
    decisions = tuple(selection.decisions())
    gated = refusal is not None and refusal.reason == Refused.QUERY_QUALITY
    return {
        "protected": _chunks(decisions, Verdict.PROTECTED, _PROTECTED),
        "protected_overflow": _chunks(
            decisions, Verdict.DROPPED, {Reason.PROTECTED_OVERFLOW}
        ),
        "excerpt_cap_bypassed": _chunks(
            decisions, Verdict.SPARED, {Reason.EXCERPT_CAP}
        ),
        "gated": int(gated),
        "filtered_by_floor": _chunks(decisions, Verdict.DROPPED, _FLOORS),
        "reranked": int(any(step.facts.get("ran") is True for step in selection.trace)),
        "injected": _chunks(decisions, Verdict.INJECTED, _INJECTED),
        "replaced": _chunks(decisions, Verdict.DROPPED, {Reason.REPLACED}),
    }


def _chunks(
    decisions: Iterable[Decision], verdict: Verdict, reasons: Iterable[str]
) -> int:
    """Count the chunks, each once, that got *verdict* for one of *reasons*."""
    wanted = frozenset(reasons)
    return len(
        {d.chunk_id for d in decisions if d.verdict is verdict and d.reason in wanted}
    )
