"""The grants preset: nearest first, within a budget of tokens."""

from typing import Literal, Self

from pydantic import AliasChoices, Field, model_validator
from pydantic_settings import SettingsConfigDict

from kept.kernel.pipeline import Pipeline
from kept.kernel.presets.configuration import PresetSettings
from kept.kernel.presets.plan import MAX_K, Parts, Plan, Preset
from kept.kernel.stages import ReservedTokenBudget, TokenBudget, TopK


class GrantsSettings(PresetSettings):
    """How grant texts are chosen for a planner's or a writer's prompt."""

    model_config = SettingsConfigDict(env_prefix="RAG_")

    top_k: int = Field(default=5, ge=1, le=MAX_K, description="Chunks at most")
    depth: int = Field(
        default=200, ge=1, le=10_000, description="How many of the nearest are weighed"
    )
    token_budget: int = Field(
        default=0, ge=0, description="Total of tokens at most (0 disables)"
    )
    reserved_shares: dict[str, float] = Field(
        default_factory=dict,
        description="Shares of the token budget set aside by section tag, as JSON, "
        'such as {"eligibility": 0.3}',
    )
    similarity_threshold: float | None = Field(
        default=None,
        ge=0.0,
        le=1.0,
        description="Cosine of first chunks from which a document is a near duplicate "
        "(none: the embedder's own; 1.0 leaves only the exact check)",
    )

    embeddings_backend: Literal["hash", "minilm"] | None = Field(
        default=None,
        validation_alias=AliasChoices("EMBEDDINGS_BACKEND", "embeddings_backend"),
        description="The embedder under this preset (none: KEPT_EMBEDDER)",
    )

    @model_validator(mode="after")
    def _shares_need_a_budget(self) -> Self:
        shares = self.reserved_shares
        name = self.variable("reserved_shares")
        if shares and not self.token_budget:
            msg = f"{name} is {shares!r}, but {self.variable('token_budget')} is 0; "
            msg += "expected a budget of at least 1"
            raise ValueError(msg)
        if any(not 0.0 <= share <= 1.0 for share in shares.values()):
            msg = f"{name} is {shares!r}; expected shares from 0 to 1"
            raise ValueError(msg)
        if sum(shares.values()) > 1.0 + 1e-9:
            msg = f"{name} is {shares!r}; expected shares that add up to 1 at most"
            raise ValueError(msg)
        return self


def build(settings: GrantsSettings, parts: Parts, k: int) -> Plan:
    """Sort by cosine, trim to the budget, take the top."""
    return Plan(
        pipeline=Pipeline.of(budget(settings), TopK(k)),
        k=k,
        depth=settings.depth,
        legs=("dense",),
    )


def budget(settings: GrantsSettings) -> TokenBudget | ReservedTokenBudget | None:
    """Return the budget asked for, if any."""
    if settings.reserved_shares:
        return ReservedTokenBudget(settings.token_budget, settings.reserved_shares)
    return TokenBudget(settings.token_budget) if settings.token_budget else None


GRANTS = Preset(
    name="grants",
    summary="Nearest first within a token budget, shares reserved by section.",
    settings=GrantsSettings,
    k_setting="top_k",
    build=build,
)
