"""The default preset: the best of the four, with floors that really refuse."""

from collections.abc import Mapping
from typing import Literal, Self

from pydantic import AliasChoices, Field, model_validator
from pydantic_settings import SettingsConfigDict

from kept.kernel.pipeline import Pipeline
from kept.kernel.presets.configuration import PresetSettings
from kept.kernel.presets.plan import MAX_K, Badge, GateRules, Parts, Plan, Preset
from kept.kernel.signals import PLACES
from kept.kernel.stages import (
    AskJudge,
    CharBudget,
    Diversity,
    DocumentLimit,
    Fuse,
    FuseAbsolute,
    MaximalMarginalRelevance,
    OpportunisticRerank,
    ProtectKeywordHit,
    ProtectNearMatches,
    RankByRelevance,
    Read,
    ReciprocalRankFusion,
    RelevanceFloor,
    RelevanceReranker,
    TopK,
)

# These are the numbers of the tenant knowledge base, whose stages they are.
ADJACENT_CHUNKS = 2
DIVERSITY_GAP = 0.15
RERANKED = 20
NOVELTY_TRADE_OFF = 0.7


class DefaultSettings(PresetSettings):
    """How passages are chosen when no other preset is asked for."""

    model_config = SettingsConfigDict(env_prefix="KEPT_", populate_by_name=True)

    guardrails_enable: bool = Field(
        default=True,
        validation_alias=AliasChoices(
            "KEPT_GUARDRAILS_ENABLE", "RETRIEVAL_GUARDRAILS_ENABLE"
        ),
        description="Guard the result; false gives plain hybrid search",
    )
    top_k: int = Field(
        default=8, ge=1, le=MAX_K, description="How many passages come back at most"
    )
    depth: int = Field(
        default=50, ge=1, le=10_000, description="How many each leg of recall brings"
    )
    fusion: Literal["absolute", "weighted", "reciprocal_rank"] | None = Field(
        default=None,
        description="How the two legs become one order: by absolute signals, by "
        "signals scaled over each leg, or by ranks (none: absolute where the "
        "embedder's cosines have been measured, else weighted)",
    )
    keyword_weight: float = Field(
        default=0.5,
        ge=0.0,
        le=1.0,
        description="Weight of the keyword leg; the dense leg has the rest",
    )
    near_match_distance: float | None = Field(
        default=None,
        ge=0.0,
        le=2.0,
        description="Protect passages within this distance of the question "
        "(none: the embedder's own measured distance)",
    )
    keyword_protection: float | None = Field(
        default=0.5,
        ge=0.0,
        le=1.0,
        description="Protect the strongest keyword hit if its BM25 is at least this "
        "share of the question's ideal (none: protect no keyword hit)",
    )
    cite: Literal["strict", "balanced", "generous"] = Field(
        default="balanced",
        description="How sure a citation has to be: the floor on relevance at which "
        "on collections left out {STRICT} (strict), {BALANCED} (balanced) or "
        "{GENEROUS} (generous) in 10 citations were deserved",
    )
    relevance_floor: float | None = Field(
        default=None,
        ge=0.0,
        le=1.0,
        description="Cite nothing below this relevance (none: the floor of KEPT_CITE)",
    )
    rerank_from: float = Field(
        default=0.03,
        ge=0.0,
        le=1.0,
        description="Rerank when the best relevance is at least this",
    )
    rerank_below: float = Field(
        default=0.70, ge=0.0, le=1.0, description="... and less than this"
    )
    diversity: Literal["gap", "mmr", "off"] = Field(
        default="gap",
        description="Breadth across documents: the gap rule, maximal marginal "
        "relevance, or none",
    )
    document_limit: int = Field(
        default=4, ge=1, description="How many chunks of one document come back"
    )
    validation_enable: bool = Field(
        default=False, description="Ask the judge; only what it accepts is cited"
    )
    max_chars: int | None = Field(
        default=None,
        ge=1,
        description="Budget of characters; what does not fit is skipped (none: off)",
    )
    gate_enable: bool = Field(
        default=True, description="Answer small talk with guidance, without a search"
    )

    @model_validator(mode="after")
    def _fit_together(self) -> Self:
        self.demand_order("rerank_from", "rerank_below")
        return self


def filled(settings: DefaultSettings, parts: Parts) -> DefaultSettings:
    """Put in the numbers of the embedder and its calibration where none are set."""
    near, floor = bounds(settings, parts)
    return settings.changed(near_match_distance=near, relevance_floor=floor)


def bounds(settings: DefaultSettings, parts: Parts) -> tuple[float, float]:
    """Return the distance within which a match is near, and the floor to cite from."""
    near, floor = settings.near_match_distance, settings.relevance_floor
    return (
        parts.near_match_distance if near is None else near,
        floors(parts)[settings.cite] if floor is None else floor,
    )


def floors(parts: Parts) -> Mapping[str, float]:
    """Return the floors of the calibration that decides: the reader's, if one reads."""
    return parts.floors if parts.reading is None else parts.reading[1].floors


def unread_floor(settings: DefaultSettings, parts: Parts) -> float | None:
    """Return the floor for questions that the reader does not read, if there is one."""
    named = floors(parts)[settings.cite]
    # What is filled in from the calibration is no floor of one's own.
    own = settings.relevance_floor not in (None, named)
    return None if own or parts.reading is None else parts.floors[settings.cite]


def build(settings: DefaultSettings, parts: Parts, k: int) -> Plan:
    """Guard on relevance, order on the fused score."""
    return Plan(
        pipeline=guarded(settings, parts, k)
        if settings.guardrails_enable
        else Pipeline.of(fusion(settings, parts), TopK(k)),
        k=k,
        depth=settings.depth,
        gate=GateRules(ask_knowledge_base=True)
        if settings.guardrails_enable and settings.gate_enable
        else None,
        badge=Badge("relevance"),
    )


def guarded(settings: DefaultSettings, parts: Parts, k: int) -> Pipeline:
    """List the stages in the order in which they run.

    Where all passages are near, like a hundred invoices with one layout, the words show
    which one was asked for: limits serve the protected by score, which combines both.
    """
    near, floor = bounds(settings, parts)
    protect_keyword = settings.keyword_protection
    max_chars = settings.max_chars
    mmr = settings.diversity == "mmr"
    return Pipeline.of(
        fusion(settings, parts),
        ProtectNearMatches(near, borne_out=True),
        None
        if protect_keyword is None
        else ProtectKeywordHit(protect_keyword, "bm25_share", above_near=True),
        None if parts.reading is None else Read(*parts.reading),
        RankByRelevance(),
        RelevanceFloor(floor, unread_floor(settings, parts)),
        rerank(settings, parts),
        DocumentLimit(settings.document_limit),
        # Directly before the places are given: it has to know who will be cited.
        Diversity(ADJACENT_CHUNKS, DIVERSITY_GAP, k)
        if settings.diversity == "gap"
        else None,
        MaximalMarginalRelevance(k, NOVELTY_TRADE_OFF, by="score")
        if mmr
        else TopK(k, by="score"),
        AskJudge(parts.demand_judge(settings.variable("validation_enable")))
        if settings.validation_enable
        else None,
        None if max_chars is None else CharBudget(max_chars, "skip", by="score"),
    )


def fusion(
    settings: DefaultSettings, parts: Parts
) -> FuseAbsolute | Fuse | ReciprocalRankFusion:
    """Return the stage that puts both legs in one order."""
    keywords = settings.keyword_weight
    weights = round(1.0 - keywords, PLACES), keywords
    match settings.fusion or ("absolute" if parts.known_cosines else "weighted"):
        case "absolute":
            return FuseAbsolute(*weights)
        case "weighted":
            return Fuse(*weights)
        case _:
            return ReciprocalRankFusion()


def rerank(settings: DefaultSettings, parts: Parts) -> OpportunisticRerank | None:
    """Return the rerank stage, if there is a reranker.

    Relevance rests on the signals that the absolute order is made of: it has
    nothing to add to that.
    """
    if parts.reranker is None:
        return None
    same_signals = isinstance(fusion(settings, parts), FuseAbsolute)
    if same_signals and parts.reranker.id == RelevanceReranker().id:
        return None
    return OpportunisticRerank(
        parts.reranker,
        at_least=settings.rerank_from,
        below=settings.rerank_below,
        window=RERANKED,
        signal="relevance",
    )


DEFAULT = Preset(
    name="default",
    summary="The best of the four, with floors on calibrated relevance.",
    settings=DefaultSettings,
    k_setting="top_k",
    build=build,
    filled=filled,
    judge_setting="validation_enable",
    reranks=True,
    reads=True,
)
