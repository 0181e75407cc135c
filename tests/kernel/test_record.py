"""The record: verdicts, reasons and who is served first."""

import json

import pytest

from kept.kernel.counters import COUNTERS, counters
from kept.kernel.model import Candidate, Query
from kept.kernel.outcome import allotted, sift
from kept.kernel.pipeline import Pipeline
from kept.kernel.record import Drop, Reason, Refusal, Refused, Selection, Verdict
from kept.kernel.stages import (
    ExcerptCap,
    OpportunisticRerank,
    ProtectNearMatches,
    RelevanceFloor,
    RelevanceReranker,
    SmallDense,
    TopK,
)
from kept.testing.tables import candidates, decisions_in, ids

VERBATIM = {
    "soft_score_limit",
    "strict_distance_threshold",
    "fallback_distance_threshold",
    "per_intent_cap",
    "excerpt_cap",
    "dedupe_ki",
    "trim_top_n",
}


def test_the_documented_reasons_are_verbatim_and_none_is_unknown() -> None:
    """Dashboards built on the original strings keep working."""
    reasons = set(Reason)

    assert reasons >= VERBATIM
    assert "unknown" not in reasons


@pytest.mark.parametrize("reason", list(Reason))
def test_every_reason_explains_itself(reason: Reason) -> None:
    """A sentence each, from which the reference page is made."""
    assert reason.doc.endswith(".")
    assert reason == reason.value == str(reason)
    assert Reason(reason.value) is reason


def test_a_reason_is_plain_text_in_json() -> None:
    """No door needs to know the enumeration."""
    assert json.dumps({"reason": Reason.BEYOND_TOP_K}) == '{"reason": "trim_top_n"}'


def test_limits_serve_the_pinned_then_the_nearest_protected_then_the_rest() -> None:
    """The rest keep the order in which they came."""
    pool = candidates("a 0.9\nb 0.8\nc 0.6 !\nd 0.7 !\ne 0.1 *")

    served = pool.keeping(pool.seats())

    assert [c.id for c in served] == ["e", "d", "c", "a", "b"]


def test_equally_near_protected_candidates_are_served_by_chunk_id() -> None:
    """The order of service is total too."""
    pool = candidates("b 0.9 !\na 0.9 !")

    assert [c.id for c in pool.keeping(pool.seats())] == ["a", "b"]


def test_sifting_drops_the_rest_and_spares_the_protected() -> None:
    """Both are decisions; only one is a departure."""

    def bad(candidate: Candidate) -> Drop:
        return Drop.because("bad", score=candidate.score)

    outcome = sift(candidates("a 0.9\nb 0.8 !"), bad)

    assert ids(outcome) == ["b"]
    assert decisions_in(outcome) == [
        ("b", "spared", "bad", {"score": 0.8}),
        ("a", "dropped", "bad", {"score": 0.9}),
    ]


def test_sifting_nothing_out_returns_the_pool_itself() -> None:
    """No copy, no decisions."""
    pool = candidates("a 0.9")

    assert sift(pool, lambda _: None).pool is pool


def test_evidence_of_a_limit_can_say_more() -> None:
    """Such as the intent whose cap it was."""
    pool = candidates("a 0.9\nb 0.8")

    outcome = allotted(pool, 1, "cap", intent="story")

    assert decisions_in(outcome) == [
        ("b", "dropped", "cap", {"place": 2, "at_most": 1, "intent": "story"})
    ]


def test_an_explanation_goes_stage_by_stage() -> None:
    """Every stage that touched a candidate, in order."""
    chain = Pipeline.of(ProtectNearMatches(0.1), RelevanceFloor(0.95), TopK(1))

    selection = chain(Query(text="q"), candidates("a 0.90\nb 0.99 relevance=0.1"))

    assert [(stage, d.verdict, d.reason) for stage, d in selection.explain("b")] == [
        ("protect_near_matches", Verdict.PROTECTED, "near_match"),
        ("relevance_floor", Verdict.SPARED, "relevance_floor"),
    ]
    assert [d.chunk_id for d in selection.decisions(Verdict.DROPPED)] == ["a"]


def test_every_counter_counts_what_it_says() -> None:
    """One query in which everything happens."""
    pool = candidates("""
        near1 0.99 chunks=90 excerpt=yes relevance=0.50
        near2 0.98 chunks=90 excerpt=yes relevance=0.40
        near3 0.97 chunks=90 relevance=0.40
        small 0.86 doc=small chunks=4 relevance=0.30
        twin  0.70 doc=small chunks=4 relevance=0.30
        weak  0.50 chunks=90 relevance=0.10
    """)
    chain = Pipeline.of(
        ProtectNearMatches(0.1),
        SmallDense(),
        RelevanceFloor(0.2),
        OpportunisticRerank(RelevanceReranker(), signal="relevance"),
        ExcerptCap(1),
        TopK(2),
    )

    counted = counters(chain(Query(text="q"), pool))

    assert counted == {
        "protected": 3,
        "protected_overflow": 1,
        "excerpt_cap_bypassed": 1,
        "gated": 0,
        "filtered_by_floor": 1,
        "reranked": 1,
        "injected": 1,
        "replaced": 1,
    }


def test_a_gated_question_is_counted_and_nothing_else() -> None:
    """A refusal for want of relevance is not a gate."""
    gated = Refusal(reason=Refused.QUERY_QUALITY, message="Ask more.")
    empty = Refusal(reason=Refused.NOTHING_RELEVANT, message="Nothing.")

    assert counters(Selection(()), gated) == {**dict.fromkeys(COUNTERS, 0), "gated": 1}
    assert counters(Selection(()), empty) == dict.fromkeys(COUNTERS, 0)
