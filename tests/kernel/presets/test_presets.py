"""Presets: flags → pipeline, by ==."""

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest

from kept.errors import SettingsError
from kept.kernel.calibration import shipped
from kept.kernel.model import Candidate, Query
from kept.kernel.pipeline import Pipeline
from kept.kernel.presets import PRESETS, Badge, GateRules, Parts, Plan, preset
from kept.kernel.presets.plan import Configured
from kept.kernel.record import Selection
from kept.kernel.stages import (
    AcceptedCap,
    AskJudge,
    CharBudget,
    Composite,
    DenseFloor,
    DistanceThresholds,
    Diversity,
    DocumentLimit,
    ExcerptCap,
    Fuse,
    FuseAbsolute,
    LabelRequired,
    MaximalMarginalRelevance,
    MinSimilarity,
    OnePerDocument,
    OpportunisticRerank,
    PerIntentCap,
    Pin,
    ProtectKeywordHit,
    ProtectNearMatches,
    RankByRelevance,
    Read,
    ReciprocalRankFusion,
    RelevanceFloor,
    RelevanceReranker,
    ReservedTokenBudget,
    ScoreFloor,
    SmallDense,
    SoftScoreLimit,
    SparseRecall,
    TagFilter,
    TokenBudget,
    TopK,
)
from kept.search.render import record_json
from kept.testing.tables import ScriptedJudge, ScriptedReader, candidates

WORST = "authority=low chunk_confidence=0 confidence=0 horizon=long_term"
CAPS = {"educational": 5, "persuasive": 4, "story": 6} | dict.fromkeys(
    ("contrarian", "emotional", "other"), 5
)
WEIGHED_BY_NEAR_MATCH = (
    Composite(),
    SoftScoreLimit(0.40),
    DistanceThresholds(0.42, 0.50),
    OnePerDocument(),
    ExcerptCap(2),
    PerIntentCap(CAPS),
    TopK(6),
)
FLAGS_OFF = [
    ("default", {"guardrails_enable": False}, Pipeline.of(Fuse(0.5, 0.5), TopK(8))),
    ("tenant_kb", {"guardrails_enable": False}, Pipeline.of(Fuse(0.65, 0.35), TopK(8))),
    ("few_shot", {}, Pipeline.of(LabelRequired(), TopK(2))),
    ("grants", {}, Pipeline.of(TopK(5))),
    (
        "near_match",
        {
            "protection_enable": False,
            "sparse_recall_enable": False,
            "small_dense_assist_enable": False,
        },
        Pipeline.of(*WEIGHED_BY_NEAR_MATCH),
    ),
]
JUDGE = ScriptedJudge(frozenset())
PARTS = Parts(near_match_distance=0.12)
CALIBRATION = shipped("minilm-")
READER = ScriptedReader({})
ALL_PARTS = Parts(
    near_match_distance=0.12,
    judge=JUDGE,
    reranker=RelevanceReranker(),
    reading=(READER, CALIBRATION),
)


class LastFirst:
    """A reranker with an opinion of its own."""

    id = "last-first"

    def scores(self, query: Query, candidates: Sequence[Candidate]) -> Sequence[float]:
        """Return higher scores for later candidates."""
        return [float(place) for place, _ in enumerate(candidates)]


def plan(name: str, parts: Parts = PARTS, **overrides: object) -> Plan:
    """Return the plan of a preset with *overrides*."""
    return preset(name).plan(preset(name).configure(overrides), parts)


def test_default_guards_on_the_absolute_channel() -> None:
    """Order is fused; protection, floors and waiver are absolute."""
    assert plan("default").pipeline == Pipeline.of(
        Fuse(0.5, 0.5),
        ProtectNearMatches(0.12, borne_out=True),
        ProtectKeywordHit(0.5, "bm25_share", above_near=True),
        RankByRelevance(),
        RelevanceFloor(0.3),
        DocumentLimit(4),
        Diversity(2, 0.15, 8),
        TopK(8, by="score"),
    )


def test_default_with_everything_on() -> None:
    """The judge is asked before the budget, so that rejects do not waste it."""
    on = plan(
        "default",
        ALL_PARTS,
        near_match_distance=0.05,
        cite="strict",
        validation_enable=True,
        max_chars=900,
        diversity="mmr",
        fusion="reciprocal_rank",
    )

    assert on.pipeline == Pipeline.of(
        ReciprocalRankFusion(),
        ProtectNearMatches(0.05, borne_out=True),
        ProtectKeywordHit(0.5, "bm25_share", above_near=True),
        Read(READER, CALIBRATION),
        RankByRelevance(),
        RelevanceFloor(CALIBRATION.floors["strict"], 0.5),
        OpportunisticRerank(RelevanceReranker(), 0.03, 0.70, 20, "relevance"),
        DocumentLimit(4),
        MaximalMarginalRelevance(8, 0.7, by="score"),
        AskJudge(JUDGE),
        CharBudget(900, "skip", by="score"),
    )


def test_default_without_guardrails_is_plain_hybrid_search() -> None:
    """The master switch leaves fusion and the top k."""
    off = plan("default", guardrails_enable=False)

    assert off.pipeline == Pipeline.of(Fuse(0.5, 0.5), TopK(8))
    assert off.gate is None


@pytest.mark.parametrize(
    ("known", "chosen", "stage"),
    [
        (True, None, FuseAbsolute(0.5, 0.5)),
        (False, None, Fuse(0.5, 0.5)),
        (False, "absolute", FuseAbsolute(0.5, 0.5)),
        (True, "weighted", Fuse(0.5, 0.5)),
        (True, "reciprocal_rank", ReciprocalRankFusion()),
    ],
)
def test_default_orders_by_absolute_signals_where_cosines_are_known(
    known: bool,  # noqa: FBT001 -- a row of the table
    chosen: str | None,
    stage: object,
) -> None:
    """What a cosine means differs from model to model; a choice of one's own wins."""
    parts = Parts(near_match_distance=0.12, known_cosines=known)

    assert plan("default", parts, fusion=chosen).pipeline.stages[0] == stage


def test_relevance_takes_no_second_look_at_an_absolute_order() -> None:
    """It rests on the same signals; a reranker that reads the text still looks."""
    known = replace(ALL_PARTS, known_cosines=True)
    reading = replace(known, reranker=LastFirst())

    def looks(parts: Parts, fusion: str | None = None) -> bool:
        stages = plan("default", parts, fusion=fusion).pipeline.stages
        return any(isinstance(stage, OpportunisticRerank) for stage in stages)

    assert not looks(known)
    assert looks(known, "weighted")
    assert looks(reading)


def test_default_can_leave_single_guards_out() -> None:
    """Off means absent."""
    off = plan("default", keyword_protection=None, diversity="off", gate_enable=False)

    names = [stage.name for stage in off.pipeline.stages]
    assert "protect_keyword_hit" not in names
    assert "diversity" not in names
    assert off.gate is None


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        ({}, (0.49, 0.55, 0.65)),
        ({"soft_score_limit": 0.3}, (0.3, 0.55, 0.65)),
        ({"strict_distance_threshold": 0.7}, (0.52, 0.7, 0.7)),
        ({"fallback_distance_threshold": 0.5}, (0.40, 0.5, 0.5)),
    ],
)
def test_near_match_takes_its_limits_from_the_embedder(
    own: dict[str, float], expected: tuple[float, float, float]
) -> None:
    """The document's .40, .42 and .50 belong to the embedder they were set with."""
    parts = Parts(near_match_distance=0.2, distance_thresholds=(0.55, 0.65))
    chosen = preset("near_match")
    limits = (SoftScoreLimit(expected[0]), DistanceThresholds(*expected[1:]))

    made = chosen.plan(chosen.configure(own), parts).pipeline.stages

    assert (
        tuple(s for s in made if s.name in {limits[0].name, limits[1].name}) == limits
    )
    original = chosen.plan(chosen.configure({}), PARTS).pipeline.stages
    assert {SoftScoreLimit(0.40), DistanceThresholds(0.42, 0.50)} <= set(original)


def test_few_shot_defaults_only_take_the_top() -> None:
    """With no flags set, selection is what it was before the guardrails."""
    assert plan("few_shot").pipeline == Pipeline.of(LabelRequired(), TopK(2))


def test_few_shot_with_everything_on_keeps_the_documented_order() -> None:
    """Tags, labels, threshold, top k, budget, judge, cap."""
    on = plan(
        "few_shot",
        ALL_PARTS,
        enable_item_tag_filter=True,
        min_reference_similarity=0.6,
        max_reference_chars_per_item=800,
        enable_reference_validation=True,
    )

    assert on.pipeline == Pipeline.of(
        TagFilter(),
        LabelRequired(),
        MinSimilarity(0.6, "half"),
        TopK(2),
        CharBudget(800, "stop"),
        AskJudge(JUDGE),
        AcceptedCap(2),
    )


def test_the_cap_of_accepted_references_applies_only_with_validation() -> None:
    """In the original it held always, so a top k above 2 did nothing."""
    without = plan("few_shot", ALL_PARTS, top_k_references=5)

    assert without.pipeline == Pipeline.of(LabelRequired(), TopK(5))


def test_tenant_kb_has_the_documented_guards() -> None:
    """Floors on the fused score, the band below 0.60, two adjacent chunks."""
    assert plan("tenant_kb", ALL_PARTS).pipeline == Pipeline.of(
        Fuse(0.65, 0.35),
        ProtectKeywordHit(0.5),
        ScoreFloor(0.45),
        DenseFloor(0.15, 0.9),
        OpportunisticRerank(RelevanceReranker(), 0.45, 0.60, 20),
        Diversity(2, 0.15, 8),
        TopK(8),
    )


def test_tenant_kb_without_guardrails_is_plain_hybrid_search() -> None:
    """RETRIEVAL_GUARDRAILS_ENABLE=false."""
    off = plan("tenant_kb", RETRIEVAL_GUARDRAILS_ENABLE=False)

    assert off.pipeline == Pipeline.of(Fuse(0.65, 0.35), TopK(8))
    assert off.gate is None


@pytest.mark.parametrize("name", ["default", "tenant_kb"])
def test_without_a_reranker_there_is_no_rerank_stage(name: str) -> None:
    """KEPT_RERANKER=none leaves the stage out, whatever the preset's switch says."""
    names = [stage.name for stage in plan(name, PARTS).pipeline.stages]
    with_one = [stage.name for stage in plan(name, ALL_PARTS).pipeline.stages]

    assert "opportunistic_rerank" not in names
    assert "opportunistic_rerank" in with_one


def test_tenant_kb_has_a_toggle_for_each_guard() -> None:
    """Floors, waiver, inclusion and rerank, one by one."""
    off = plan(
        "tenant_kb",
        ALL_PARTS,
        score_floor_enable=False,
        keyword_include_enable=False,
        rerank_enable=False,
    )
    strict = plan("tenant_kb", allow_keyword_top1_override=False)

    assert off.pipeline == Pipeline.of(Fuse(), Diversity(2, 0.15, 8), TopK(8))
    assert DenseFloor(0.15, None) in strict.pipeline.stages


def test_grants_takes_the_nearest_and_budgets_on_request() -> None:
    """No budget, a plain one, or one with shares."""
    shares = {"eligibility": 0.3}

    assert plan("grants").pipeline == Pipeline.of(TopK(5))
    assert plan("grants", token_budget=900).pipeline == Pipeline.of(
        TokenBudget(900), TopK(5)
    )
    assert plan(
        "grants", token_budget=900, reserved_shares=shares
    ).pipeline == Pipeline.of(ReservedTokenBudget(900, shares), TopK(5))


def test_near_match_protects_before_it_weighs() -> None:
    """Protect, assist, weigh, filter, elect, cap, trim."""
    assert plan("near_match").pipeline == Pipeline.of(
        ProtectNearMatches(0.10),
        SparseRecall(0.20, 2),
        SmallDense(0.15, 3, 6),
        *WEIGHED_BY_NEAR_MATCH,
    )


@pytest.mark.parametrize(
    ("name", "flag"),
    [
        ("few_shot", "EMBEDDING_ENABLE_REFERENCE_VALIDATION"),
        ("default", "KEPT_VALIDATION_ENABLE"),
    ],
)
def test_validation_without_a_judge_is_refused_at_start(name: str, flag: str) -> None:
    """Enabled means it works or there is no start."""
    with pytest.raises(SettingsError, match=f"{flag} is True, but no judge"):
        plan(name, **{flag: True})


@pytest.mark.parametrize(
    ("name", "gate", "legs", "badge"),
    [
        ("default", GateRules(3, ask_knowledge_base=True), 2, Badge("relevance", 0)),
        ("tenant_kb", GateRules(3), 2, Badge("fused", 0.5)),
        ("few_shot", None, 1, Badge("relevance", 0)),
        ("grants", None, 1, Badge("relevance", 0)),
        ("near_match", None, 1, Badge("relevance", 0)),
    ],
)
def test_a_plan_says_what_surrounds_the_stages(
    name: str, gate: GateRules | None, legs: int, badge: Badge
) -> None:
    """Gate, legs of recall and the badge, which only the tenant KB shows."""
    chosen = plan(name)

    assert chosen.gate == gate
    assert chosen.legs == ("dense", "keyword")[:legs]
    assert chosen.badge == badge


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_pins_are_a_stage_only_when_a_query_has_them(name: str) -> None:
    """And then the first."""
    settings = preset(name).configure()

    with_pins = preset(name).plan(settings, PARTS, pins=True).pipeline

    assert with_pins.stages[0] == Pin()
    assert with_pins.stages[1:] == plan(name).pipeline.stages


def test_on_violation_reaches_the_pipeline() -> None:
    """Production logs and restores where development raises."""
    assert plan("near_match").pipeline.on_violation == "raise"
    assert plan("near_match", on_violation="log").pipeline.on_violation == "log"


@pytest.mark.parametrize(("name", "flags", "before"), FLAGS_OFF)
def test_flags_off_give_the_pipeline_that_was_there_before(
    name: str, flags: dict[str, object], before: Pipeline
) -> None:
    """Equal pipelines, and the very bytes of their output."""
    query = Query(text="how much does it cost", item="Sleep")
    pool = candidates(f"""
        a 0.95 bm25=3 label.Sleep=1 doc=one chunks=2 {WORST}
        b 0.80 label.Sleep=0 doc=one chunks=2
        c 0.60 bm25=9 label.Sleep=null excerpt=yes
        d 0.55 label.Sleep=2 role=metric
    """)

    off = plan(name, **flags).pipeline

    assert off == before
    assert written(off(query, pool)) == written(before(query, pool))


@pytest.mark.parametrize("name", ["default", "near_match", "tenant_kb"])
def test_flags_on_give_another_output(name: str) -> None:
    """The bytes of the same pool differ where guardrails are on."""
    flags, before = next((flags, old) for one, flags, old in FLAGS_OFF if one == name)
    query = Query(text="how much does it cost")
    pool = candidates(f"a 0.95 bm25=3 chunks=2 {WORST}\nb 0.10")

    assert flags
    assert written(plan(name).pipeline(query, pool)) != written(before(query, pool))


def written(selection: Selection) -> str:
    """Return a record as it is printed."""
    return json.dumps(record_json(selection))


def test_a_plan_is_built_once_for_each_k_and_each_set_of_parts() -> None:
    """Queries share plans, and never one that was made of other parts."""
    chosen = preset("default")
    configured = Configured(chosen, chosen.configure())
    near, far = Parts(0.1), Parts(0.3)

    plan = configured.plan(near, k=3)

    assert configured.plan(Parts(0.1), k=3) is plan
    assert configured.plan(near, k=4).k == 4
    assert configured.plan(near, k=3, pins=True) != plan
    assert configured.plan(far, k=3) == chosen.plan(configured.settings, far, k=3)
    assert configured.plan(far, k=3) != plan
