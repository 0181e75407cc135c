"""Near match: dominance, reserved slots, assists, reasons."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kept.kernel.counters import counters
from kept.kernel.model import Query
from kept.kernel.pipeline import Pipeline
from kept.kernel.presets import Parts, preset
from kept.kernel.record import Selection
from kept.kernel.stages import Composite, DistanceThresholds, SoftScoreLimit, TopK
from kept.search.candidate_rows import candidate_rows
from kept.testing.tables import candidates

WORST = "authority=low chunk_confidence=0 confidence=0 horizon=long_term"
BEST = "authority=high chunk_confidence=1 confidence=1 horizon=current"


def run(pool: str, text: str = "what is it", **settings: object) -> Selection:
    """Run the near-match preset over a table."""
    near_match = preset("near_match")
    plan = near_match.plan(near_match.configure(settings), Parts(0.1))
    return plan.pipeline(Query(text=text), candidates(pool))


def chosen(pool: str, text: str = "what is it", **settings: object) -> list[str]:
    """Return the ids that the near-match preset selects, in order."""
    return [c.id for c in run(pool, text, **settings).candidates]


FEW = "\n".join(f"x{n} 0.89 chunks=90 {BEST}" for n in range(3))
CROWD = "\n".join(f"x{n} 0.89 chunks=90 {BEST}" for n in range(9))


def test_a_near_match_is_not_removed_by_anything() -> None:
    """Hard invariant A: distance <= near_match_distance is not removed by soft
    score nor by penalties, and appears in the final Top-K.

    The 0.0937 candidate with the worst attributes, a soft limit and a threshold
    that it fails, against a crowd with the best ones.
    """  # noqa: D205 -- the criterion is one sentence
    pool = f"near 0.9063 chunks=90 {WORST}\n{CROWD}"

    selection = run(
        pool,
        return_k=1,
        soft_score_limit=0.01,
        strict_distance_threshold=0.05,
        fallback_distance_threshold=0.05,
        other_cap=1,
    )

    assert [c.id for c in selection.candidates] == ["near"]
    assert [(stage, d.verdict) for stage, d in selection.explain("near")] == [
        ("protect_near_matches", "protected"),
        ("soft_score_limit", "spared"),
        ("distance_thresholds", "spared"),
    ]


def test_without_protection_the_same_candidate_is_lost() -> None:
    """The current behaviour: vector search is right and ranking drops it."""
    old = Pipeline.of(Composite(), SoftScoreLimit(0.2), DistanceThresholds(), TopK(3))
    pool = candidates(f"near 0.9063 chunks=90 {WORST}\n{CROWD}")

    selection = old(Query(text="q"), pool)

    assert "near" not in [c.id for c in selection.candidates]
    [(stage, decision)] = selection.explain("near")
    assert (stage, decision.reason) == ("soft_score_limit", "soft_score_limit")
    assert decision.evidence == {"composite": 0.22322, "at_most": 0.2}


def test_regression_safety_without_near_matches() -> None:
    """C: for queries with no near-match candidates, ranking is unchanged."""
    pool = f"""
        a 0.80 chunks=90 {WORST}
        b 0.78 chunks=90 {BEST}
        c 0.60 chunks=90
        d 0.40 chunks=90
    """

    assert chosen(pool) == chosen(pool, protection_enable=False) == ["b", "a", "c"]


def test_protected_dominance() -> None:
    """Unit test 1: a protected item survives the filters and is in the final set."""
    pool = f"p 0.90 chunks=90 {WORST}\n{CROWD}"

    assert chosen(pool, return_k=3)[0] == "p"


def test_protected_bypasses_soft_score() -> None:
    """Unit test 2: composite fails the soft score but distance qualifies: passes."""
    pool = f"p 0.90 chunks=90 {WORST}\nq 0.89 chunks=90 {WORST}"

    assert chosen(pool, soft_score_limit=0.05) == ["p"]


def test_injection_adds_nothing_beside_a_protected_chunk_of_the_document() -> None:
    """Unit test 3a: if protected exists for the KI, injection does not add another."""
    pool = """
        p 0.95 doc=ki chunks=2
        q 0.85 doc=ki chunks=2
    """

    selection = run(pool)

    assert [c.id for c in selection.candidates] == ["p"]
    assert counters(selection)["injected"] == 0


def test_injection_may_replace_a_non_protected_chunk() -> None:
    """Unit test 3b: if only non-protected exists, injection may add or replace.

    A nearer chunk of the same KI comes in though its composite is worse.
    """
    pool = f"""
        good 0.84 doc=ki chunks=2 chunk_confidence=1
        near 0.85 doc=ki chunks=2 chunk_confidence=0
        other 0.83 chunks=90 {BEST}
    """

    selection = run(pool, soft_score_limit=0.15, return_k=2)

    assert {c.id for c in selection.candidates} == {"near", "other"}
    assert counters(selection)["injected"] == 1
    assert counters(selection)["replaced"] == 1


def test_assists_see_the_unfiltered_pool() -> None:
    """Phase 5: the good candidate still exists where the assist runs."""
    pool = f"small 0.86 chunks=4 {WORST}\n{FEW}"

    without = chosen(pool, small_dense_assist_enable=False, soft_score_limit=0.1)
    with_it = chosen(pool, soft_score_limit=0.1)

    assert "small" not in without
    assert "small" in with_it


@given(
    st.lists(
        st.tuples(st.integers(500, 990), st.integers(1, 8), st.integers(0, 3)),
        min_size=1,
        max_size=12,
    ),
    st.integers(1, 4),
)
def test_an_injection_displaces_nothing_nearer(
    rows: list[tuple[int, int, int]], k: int
) -> None:
    """Assists "correct wrong selections without polluting results".

    What they cost another candidate is farther away than what they inject.
    """
    pool = "\n".join(
        f"c{n} 0.{cosine} chunks={chunks} doc=d{document}-{chunks} "
        + (WORST if document % 2 else BEST)
        for n, (cosine, chunks, document) in enumerate(rows)
    )
    off = {"sparse_recall_enable": False, "small_dense_assist_enable": False}
    before, after = run(pool, return_k=k, **off), run(pool, return_k=k)

    there = {c.id for c in after.candidates}
    lost = [c for c in before.candidates if c.id not in there]
    injected = [c for c in after.candidates if c.signals.get("injected")]
    nearest = min((c.signal("distance") for c in injected), default=0.0)
    assert all(c.signal("distance") > nearest for c in lost)


TRACED = f"""
    near  0.95 chunks=90 {WORST} role=metric
    good  0.85 chunks=90 {BEST} excerpt=yes
    plain 0.30 chunks=90
"""


def test_every_candidate_is_traced_with_what_the_document_lists() -> None:
    """Phase 1: "Log for top N candidates per query: id, knowledge_item_id, distance,
    authority, confidence, time_horizon, chunk_role, chunk_type, computed composite
    score, filters applied + drop reason".
    """  # noqa: D205 -- as the document has it
    rows = {row["chunk_id"]: row for row in candidate_rows(run(TRACED))}

    assert {row["chunk_id"]: row["document_id"] for row in rows.values()} == {
        name: name for name in ("near", "good", "plain")
    }
    shown = ("authority", "confidence", "document_confidence", "time_horizon")
    assert [[row[name] for name in shown] for row in rows.values()] == [
        ["low", 0.0, 0.0, "long_term"],
        ["high", 1.0, 1.0, "current"],
        [None, None, None, None],
    ]
    assert [(row["role"], row["excerpt"], row["type"]) for row in rows.values()] == [
        ("metric", False, "document"),
        (None, True, "document"),
        (None, False, "document"),
    ]
    assert [(row["protected"], row["drop_reason"]) for row in rows.values()] == [
        (True, None),
        (False, None),
        (False, "soft_score_limit"),
    ]


def test_the_composite_of_a_protected_candidate_is_its_distance() -> None:
    """Phase 3: "If protected: compositeScore = distance … do not apply penalties"."""
    near, good, _ = candidate_rows(run(TRACED))

    assert near["signals"]["composite"] == near["signals"]["distance"] == 0.05
    assert good["signals"]["composite"] == 0.09


METRIC = """
    text   0.80 doc=ki chunks=90
    metric 0.70 doc=ki chunks=90 role=metric
"""


def test_metric_is_preferred_on_a_numeric_question() -> None:
    """Unit test 4a: for a numeric query the metric chunk is chosen."""
    assert chosen(METRIC, "how much does it cost") == ["metric"]


@pytest.mark.parametrize("text", ["who wrote it", "what happened in 2019"])
def test_the_nearest_is_preferred_otherwise(text: str) -> None:
    """Else choose min distance; a bare year is not price-like."""
    assert chosen(METRIC, text) == ["text"]


def test_a_protected_chunk_wins_over_the_metric_role() -> None:
    """Unit test 4b: if a protected non-metric exists, it wins."""
    pool = METRIC + "    p 0.95 doc=ki chunks=90"

    assert chosen(pool, "how much does it cost") == ["p"]


def test_protected_first_by_distance_then_the_rest_by_composite() -> None:
    """Reserved slots: all protected first, sorted by distance, then the best."""
    pool = f"""
        far  0.91 chunks=90 {WORST}
        near 0.99 chunks=90 {WORST}
        b    0.89 chunks=90
        a    0.88 chunks=90 {BEST}
    """

    assert chosen(pool) == ["near", "far", "a", "b"]


def test_more_protected_than_slots_overflow() -> None:
    """Keep the top return_k protected by distance; emit protected_overflow."""
    pool = "a 0.99 chunks=90\nb 0.98 chunks=90\nc 0.97 chunks=90"

    selection = run(pool, return_k=2)

    assert [c.id for c in selection.candidates] == ["a", "b"]
    assert counters(selection)["protected"] == 3
    assert counters(selection)["protected_overflow"] == 1


def test_a_protected_excerpt_bypasses_the_cap() -> None:
    """Excerpt cap interaction: the bypass is observable."""
    pool = "\n".join(f"e{n} 0.9{n} chunks=90 excerpt=yes" for n in range(4))

    selection = run(pool)

    assert len(selection.candidates) == 4
    assert counters(selection)["excerpt_cap_bypassed"] == 2


def test_the_bypass_can_be_switched_off() -> None:
    """protected_excerpt_bypass (bool, default true)."""
    pool = "\n".join(f"e{n} 0.9{n} chunks=90 excerpt=yes" for n in range(4))

    selection = run(pool, protected_excerpt_bypass=False)

    assert [c.id for c in selection.candidates] == ["e3", "e2"]
    assert counters(selection)["protected_overflow"] == 2


@pytest.mark.parametrize(
    ("reason", "pool", "settings"),
    [
        ("soft_score_limit", "a 0.8 chunks=90", {"soft_score_limit": 0.1}),
        ("strict_distance_threshold", "b 0.8 chunks=90\na 0.55 chunks=90", {}),
        ("fallback_distance_threshold", "a 0.49 chunks=90", {"soft_score_limit": 1}),
        ("per_intent_cap", "b 0.8 chunks=90\na 0.7 chunks=90", {"other_cap": 1}),
        ("excerpt_cap", "a 0.8 chunks=90 excerpt=yes", {"excerpt_cap": 0}),
        ("dedupe_ki", "b 0.8 doc=ki chunks=90\na 0.7 doc=ki chunks=90", {}),
        ("trim_top_n", "b 0.8 chunks=90\na 0.7 chunks=90", {"return_k": 1}),
    ],
)
def test_every_drop_has_its_documented_reason(
    reason: str, pool: str, settings: dict[str, object]
) -> None:
    """Phase 1: the trace shows exactly why a candidate is not in the set."""
    selection = run(pool, **settings)

    [(_, decision)] = selection.explain("a")
    assert (decision.verdict, decision.reason) == ("dropped", reason)
    assert len(decision.evidence) >= 2


def test_the_same_query_and_state_give_the_same_order() -> None:
    """Deterministic behaviour: equal composites are ordered by chunk id."""
    pool = "c 0.8 chunks=90\na 0.8 chunks=90\nb 0.8 chunks=90"

    assert chosen(pool) == ["a", "b", "c"]
