"""The near-match preset: a near-perfect match always reaches the result."""

from typing import Self

from pydantic import Field, model_validator
from pydantic_settings import SettingsConfigDict

from kept.kernel.pipeline import Pipeline
from kept.kernel.presets.configuration import PresetSettings
from kept.kernel.presets.plan import MAX_K, Parts, Plan, Preset
from kept.kernel.signals import PLACES
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

# The original's limit is .40 where its fallback distance is .50: the .6 of it that
# distance weighs, what a document of no known quality pays (.085), and a little more.
OF_DISTANCE, OF_ATTRIBUTES = 0.60, 0.10
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
    soft_score_limit: float | None = Field(
        default=None,
        ge=0.0,
        le=2.0,
        description="Drop candidates whose composite score is above this "
        "(none: 0.6 of the fallback threshold and 0.1)",
    )
    strict_distance_threshold: float | None = Field(
        default=None,
        ge=0.0,
        le=2.0,
        description="Drop candidates beyond this distance "
        "(none: the embedder's own measured threshold)",
    )
    fallback_distance_threshold: float | None = Field(
        default=None,
        ge=0.0,
        le=2.0,
        description="... or beyond this one, if nothing met the strict one "
        "(none: the embedder's own)",
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
        if None not in (
            self.strict_distance_threshold,
            self.fallback_distance_threshold,
        ):
            self.demand_order(
                "strict_distance_threshold", "fallback_distance_threshold"
            )
        self.demand_order(
            "small_dense_assist_min_chunks", "small_dense_assist_max_chunks"
        )
        return self


def filled(settings: NearMatchSettings, parts: Parts) -> NearMatchSettings:
    """Return *settings* with the embedder's numbers where they have none.

    A number of one's own moves the other threshold along, so that the two stay in
    order.
    """
    strict, fallback = parts.distance_thresholds
    own_strict = settings.strict_distance_threshold
    own_fallback = settings.fallback_distance_threshold
    if own_fallback is not None:
        strict, fallback = min(strict, own_fallback), own_fallback
    if own_strict is not None:
        strict, fallback = own_strict, max(own_strict, fallback)
    soft = settings.soft_score_limit
    return settings.changed(
        strict_distance_threshold=strict,
        fallback_distance_threshold=fallback,
        soft_score_limit=round(OF_DISTANCE * fallback + OF_ATTRIBUTES, PLACES)
        if soft is None
        else soft,
    )


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
            None
            if settings.soft_score_limit is None
            else SoftScoreLimit(settings.soft_score_limit),
            thresholds(settings),
            OnePerDocument(),
            ExcerptCap(settings.excerpt_cap, settings.protected_excerpt_bypass),
            PerIntentCap({name: getattr(settings, f"{name}_cap") for name in INTENTS}),
            TopK(k),
        ),
        k=k,
        depth=settings.top_n,
        legs=("dense",),
    )


def thresholds(settings: NearMatchSettings) -> DistanceThresholds | None:
    """Return the stage of the two distances, once they are known."""
    strict = settings.strict_distance_threshold
    fallback = settings.fallback_distance_threshold
    if strict is None or fallback is None:
        return None
    return DistanceThresholds(strict, fallback)


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
    filled=filled,
)
