"""The few-shot preset: labelled references for one item of a questionnaire."""

from pydantic import Field
from pydantic_settings import SettingsConfigDict

from kept.kernel.pipeline import Pipeline
from kept.kernel.presets.configuration import PresetSettings
from kept.kernel.presets.plan import MAX_K, Parts, Plan, Preset
from kept.kernel.stages import (
    AcceptedCap,
    AskJudge,
    CharBudget,
    LabelRequired,
    MinSimilarity,
    TagFilter,
    TopK,
)


class FewShotSettings(PresetSettings):
    """How references are chosen for one item, such as one of the PHQ-8."""

    model_config = SettingsConfigDict(env_prefix="EMBEDDING_")

    top_k_references: int = Field(
        default=2, ge=1, le=MAX_K, description="References per item at most"
    )
    reference_depth: int = Field(
        default=1000,
        ge=1,
        le=100_000,
        description="How many of the nearest references are weighed per item",
    )
    enable_item_tag_filter: bool = Field(
        default=False, description="Only weigh references tagged for the item"
    )
    min_reference_similarity: float = Field(
        default=0.0,
        ge=0.0,
        le=1.0,
        description="Drop references below this similarity, on the scale "
        "(1 + cosine) / 2 (0 disables)",
    )
    max_reference_chars_per_item: int = Field(
        default=0,
        ge=0,
        description="Max total reference chunk chars per item; the first that does "
        "not fit ends the list (0 disables)",
    )
    enable_reference_validation: bool = Field(
        default=False, description="Ask the judge; only accepted references go on"
    )
    validation_model: str = Field(
        default="", description="Model of the judge (empty: MODEL_JUDGE_MODEL)"
    )
    validation_max_refs_per_item: int = Field(
        default=2,
        ge=1,
        le=MAX_K,
        description="Accepted references per item at most, when validation is on",
    )
    dimension: int = Field(
        default=0,
        ge=0,
        description="Length that vectors must have; an embedder with another is "
        "refused (0: any)",
    )
    min_evidence_chars: int = Field(
        default=8, ge=1, description="Evidence shorter than this is not searched for"
    )
    enable_batch_query_embedding: bool = Field(
        default=True, description="Embed all evidence of a participant in one call"
    )
    query_embed_timeout_seconds: int = Field(
        default=300,
        ge=1,
        le=3600,
        description="Time-out of that call, instead of the embedder's own",
    )


def build(settings: FewShotSettings, parts: Parts, k: int) -> Plan:
    """Choose the references for one item, in the documented order."""
    floor = settings.min_reference_similarity
    budget = settings.max_reference_chars_per_item
    validate = settings.enable_reference_validation
    flag = settings.variable("enable_reference_validation")
    return Plan(
        pipeline=Pipeline.of(
            TagFilter() if settings.enable_item_tag_filter else None,
            LabelRequired(),
            MinSimilarity(floor, scale="half") if floor else None,
            TopK(k),
            CharBudget(budget, mode="stop") if budget else None,
            AskJudge(parts.demand_judge(flag)) if validate else None,
            AcceptedCap(settings.validation_max_refs_per_item) if validate else None,
        ),
        k=k,
        depth=settings.reference_depth,
        legs=("dense",),
    )


FEW_SHOT = Preset(
    name="few_shot",
    summary="Labelled reference passages for one item of a questionnaire.",
    settings=FewShotSettings,
    k_setting="top_k_references",
    build=build,
    judge_setting="enable_reference_validation",
)
