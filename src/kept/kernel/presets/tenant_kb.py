"""The tenant-KB preset: hybrid search with the guardrails of its document.

Its floors act on the fused score, which is relative to the pool: with two
different dense hits the top is never below 0.65, so a floor of 0.45 does not
refuse and a rerank band of [0.45, 0.60) is not entered. They are kept as they
were; the default preset puts the same guards on calibrated relevance.
"""

from typing import Self

from pydantic import Field, model_validator
from pydantic_settings import SettingsConfigDict

from kept.kernel.pipeline import Pipeline
from kept.kernel.presets.configuration import PresetSettings
from kept.kernel.presets.plan import MAX_K, Badge, GateRules, Parts, Plan, Preset
from kept.kernel.stages import (
    DenseFloor,
    Diversity,
    Fuse,
    OpportunisticRerank,
    ProtectKeywordHit,
    ScoreFloor,
    TopK,
)

KEYWORD_WAIVER = 0.9


class TenantKbSettings(PresetSettings):
    """How sources are chosen for a tenant's question."""

    model_config = SettingsConfigDict(env_prefix="RETRIEVAL_")

    guardrails_enable: bool = Field(
        default=True, description="Guard the result; false gives plain hybrid search"
    )
    k: int = Field(default=8, ge=1, le=MAX_K, description="Sources at most")
    depth: int = Field(
        default=50, ge=1, le=10_000, description="How many each leg of recall brings"
    )
    vector_weight: float = Field(
        default=0.65, ge=0.0, le=1.0, description="Weight of the normalised dense score"
    )
    keyword_weight: float = Field(
        default=0.35, ge=0.0, le=1.0, description="Weight of the normalised BM25 score"
    )
    min_content_tokens: int = Field(
        default=3, ge=1, description="Content words that make a question of a text"
    )
    score_floor_enable: bool = Field(
        default=True, description="Apply the floors on combined and vector score"
    )
    score_floor: float = Field(
        default=0.45,
        ge=0.0,
        le=1.0,
        description="Combined score a source needs; relative to the pool, so it "
        "does not refuse a question",
    )
    vector_floor: float = Field(
        default=0.15, ge=0.0, le=1.0, description="Normalised dense score it needs"
    )
    allow_keyword_top1_override: bool = Field(
        default=True,
        description="Waive the vector floor for a normalised keyword score of 0.9",
    )
    keyword_include_enable: bool = Field(
        default=True, description="Always include the strongest keyword hit"
    )
    keyword_include_floor: float = Field(
        default=0.5,
        ge=0.0,
        le=1.0,
        description="... if its normalised keyword score is at least this",
    )
    rerank_enable: bool = Field(
        default=True, description="Rerank when the top score is borderline"
    )
    rerank_window: int = Field(
        default=20, ge=1, le=MAX_K, description="How many of the best are reranked"
    )
    rerank_trigger_max: float = Field(
        default=0.60,
        ge=0.0,
        le=1.0,
        description="Rerank only if the top score is below this and not below the "
        "score floor",
    )
    max_per_document: int = Field(
        default=2, ge=1, description="Adjacent chunks of a document before others"
    )
    diversity_delta: float = Field(
        default=0.15,
        ge=0.0,
        le=1.0,
        description="... unless the next from elsewhere scores this much less",
    )
    low_relevance: float = Field(
        default=0.50, ge=0.0, le=1.0, description="Badge sources below this score"
    )

    @model_validator(mode="after")
    def _fit_together(self) -> Self:
        if not self.vector_weight and not self.keyword_weight:
            names = map(self.variable, ("vector_weight", "keyword_weight"))
            msg = f"{' and '.join(names)} are both 0; expected more for one of them"
            raise ValueError(msg)
        self.demand_order("score_floor", "rerank_trigger_max")
        return self


def build(settings: TenantKbSettings, parts: Parts, k: int) -> Plan:
    """Guard hybrid search as the document says, or leave it plain."""
    on = settings.guardrails_enable
    fuse = Fuse(settings.vector_weight, settings.keyword_weight)
    return Plan(
        pipeline=Pipeline.of(
            fuse, *(guards(settings, parts, k) if on else ()), TopK(k)
        ),
        k=k,
        depth=settings.depth,
        gate=GateRules(settings.min_content_tokens) if on else None,
        badge=Badge("fused", settings.low_relevance),
    )


def guards(
    settings: TenantKbSettings, parts: Parts, k: int
) -> tuple[
    ProtectKeywordHit | None,
    ScoreFloor | None,
    DenseFloor | None,
    OpportunisticRerank | None,
    Diversity,
]:
    """List what stands between fusion and the top k."""
    floors = settings.score_floor_enable
    waived_at = KEYWORD_WAIVER if settings.allow_keyword_top1_override else None
    return (
        ProtectKeywordHit(settings.keyword_include_floor)
        if settings.keyword_include_enable
        else None,
        ScoreFloor(settings.score_floor) if floors else None,
        DenseFloor(settings.vector_floor, waived_at) if floors else None,
        None
        if parts.reranker is None or not settings.rerank_enable
        else OpportunisticRerank(
            parts.reranker,
            at_least=settings.score_floor,
            below=settings.rerank_trigger_max,
            window=settings.rerank_window,
        ),
        Diversity(settings.max_per_document, settings.diversity_delta, k),
    )


TENANT_KB = Preset(
    name="tenant_kb",
    summary="Hybrid search with the relative floors of the tenant knowledge base.",
    settings=TenantKbSettings,
    k_setting="k",
    build=build,
    reranks=True,
)
