"""The near-match preset: a near-perfect match always reaches the result."""

from typing import Self

from pydantic import Field, model_validator
from pydantic_settings import SettingsConfigDict

from kept.kernel.pipeline import Pipeline
from kept.kernel.presets.configuration import PresetSettings
from kept.kernel.presets.plan import (
    MAX_K,
    Parts,
    Plan,
    Preset,
)
from kept.kernel.stages import (
    Composite,
    DistanceThresholds,
    ExcerptCap,
    OnePerDocument,
    PerIntentCap,
    ProtectNearMatches,
    SmallDense,
    SoftScoreLimit,
    SparseRecall,
    TopK,
)

INTENTS = ("educational", "persuasive", "story", "contrarian", "emotional", "other")


class NearMatchSettings(PresetSettings):
    """How knowledge chunks are chosen, near matches before all."""

    model_config = SettingsConfigDict(env_prefix="AI_RETRIEVER_")

    protection_enable: bool = Field(
        default=True, description="Protect near matches from every filter"
    )
    near_match_distance: float = Field(
        default=0.10,
        ge=0.0,
        le=2.0,
        description="Protect candidates within this distance, inclusive",
    )
    return_k: int = Field(default=6, ge=1, le=MAX_K, description="Chunks at most")
    top_n: int = Field(
        default=50, ge=1, le=10_000, description="How many vector search brings"
    )
    soft_score_limit: float = Field(
        default=0.40,
        ge=0.0,
        le=2.0,
        description="Drop candidates whose composite score is above this",
    )
    strict_distance_threshold: float = Field(
        default=0.42, ge=0.0, le=2.0, description="Drop candidates beyond this distance"
    )
    fallback_distance_threshold: float = Field(
        default=0.50,
        ge=0.0,
        le=2.0,
        description="... or beyond this one, if nothing met the strict one",
    )
    sparse_recall_enable: bool = Field(
        default=True, description="Inject the nearest chunk of a very small document"
    )
    sparse_recall_distance: float = Field(
        default=0.20, ge=0.0, le=2.0, description="... within this distance"
    )
    sparse_recall_max_chunks: int = Field(
        default=2, ge=1, description="... of at most so many chunks"
    )
    small_dense_assist_enable: bool = Field(
        default=True, description="Inject the nearest chunk of a small document"
    )
    small_dense_assist_distance: float = Field(
        default=0.15, ge=0.0, le=2.0, description="... within this distance"
    )
    small_dense_assist_min_chunks: int = Field(
        default=3, ge=1, description="... of at least so many chunks"
    )
    small_dense_assist_max_chunks: int = Field(
        default=6, ge=1, description="... and at most so many"
    )
    excerpt_cap: int = Field(default=2, ge=0, description="Excerpts at most")
    protected_excerpt_bypass: bool = Field(
        default=True, description="Protected excerpts pass the excerpt cap"
    )
    educational_cap: int = Field(default=5, ge=1, description="Cap of this intent")
    persuasive_cap: int = Field(default=4, ge=1, description="Cap of this intent")
    story_cap: int = Field(default=6, ge=1, description="Cap of this intent")
    contrarian_cap: int = Field(default=5, ge=1, description="Cap of this intent")
    emotional_cap: int = Field(default=5, ge=1, description="Cap of this intent")
    other_cap: int = Field(default=5, ge=1, description="Cap of any other intent")

    @model_validator(mode="after")
    def _bounds_in_order(self) -> Self:
        self.demand_order("strict_distance_threshold", "fallback_distance_threshold")
        self.demand_order(
            "small_dense_assist_min_chunks", "small_dense_assist_max_chunks"
        )
        return self


def build(settings: NearMatchSettings, parts: Parts, k: int) -> Plan:
    """Protect, assist, weigh, filter, and serve the protected first."""
    return Plan(
        pipeline=Pipeline.of(
            ProtectNearMatches(settings.near_match_distance)
            if settings.protection_enable
            else None,
            sparse_recall(settings),
            small_dense(settings),
            Composite(),
            SoftScoreLimit(settings.soft_score_limit),
            DistanceThresholds(
                settings.strict_distance_threshold,
                settings.fallback_distance_threshold,
            ),
            OnePerDocument(),
            ExcerptCap(settings.excerpt_cap, settings.protected_excerpt_bypass),
            PerIntentCap({name: getattr(settings, f"{name}_cap") for name in INTENTS}),
            TopK(k),
        ),
        k=k,
        depth=settings.top_n,
        legs=("dense",),
    )


def sparse_recall(settings: NearMatchSettings) -> SparseRecall | None:
    """Return the assist of very small documents, if it is on."""
    if not settings.sparse_recall_enable:
        return None
    return SparseRecall(
        settings.sparse_recall_distance, settings.sparse_recall_max_chunks
    )


def small_dense(settings: NearMatchSettings) -> SmallDense | None:
    """Return the assist of small documents, if it is on."""
    if not settings.small_dense_assist_enable:
        return None
    return SmallDense(
        settings.small_dense_assist_distance,
        settings.small_dense_assist_min_chunks,
        settings.small_dense_assist_max_chunks,
    )


NEAR_MATCH = Preset(
    name="near_match",
    summary="Protected near matches, reserved slots, assists, one per document.",
    settings=NearMatchSettings,
    k_setting="return_k",
    build=build,
)
