"""The stages that ship with Kept, by the name they have in a trace."""

from collections.abc import Mapping
from types import MappingProxyType

from kept.kernel.outcome import Stage
from kept.kernel.stages.assist import SmallDense, SparseRecall
from kept.kernel.stages.budget import CharBudget, ReservedTokenBudget, TokenBudget
from kept.kernel.stages.composite import Composite, SoftScoreLimit
from kept.kernel.stages.diversity import (
    Diversity,
    DocumentLimit,
    MaximalMarginalRelevance,
)
from kept.kernel.stages.fusion import (
    Fuse,
    FuseAbsolute,
    RankByRelevance,
    ReciprocalRankFusion,
)
from kept.kernel.stages.given import DropRepeats, OrderAsGiven
from kept.kernel.stages.judge import AcceptedCap, AskJudge
from kept.kernel.stages.limit import ExcerptCap, OnePerDocument, PerIntentCap, TopK
from kept.kernel.stages.pin import Pin
from kept.kernel.stages.protect import ProtectKeywordHit, ProtectNearMatches
from kept.kernel.stages.read import Read
from kept.kernel.stages.rerank import OpportunisticRerank, RelevanceReranker
from kept.kernel.stages.tags import LabelRequired, TagFilter
from kept.kernel.stages.threshold import (
    DenseFloor,
    DistanceThresholds,
    MaxDistance,
    MinSimilarity,
    RelevanceFloor,
    ScoreFloor,
)

__all__ = [
    "ORDERING",
    "STAGES",
    "AcceptedCap",
    "AskJudge",
    "CharBudget",
    "Composite",
    "DenseFloor",
    "DistanceThresholds",
    "Diversity",
    "DocumentLimit",
    "DropRepeats",
    "ExcerptCap",
    "Fuse",
    "FuseAbsolute",
    "LabelRequired",
    "MaxDistance",
    "MaximalMarginalRelevance",
    "MinSimilarity",
    "OnePerDocument",
    "OpportunisticRerank",
    "OrderAsGiven",
    "PerIntentCap",
    "Pin",
    "ProtectKeywordHit",
    "ProtectNearMatches",
    "RankByRelevance",
    "Read",
    "ReciprocalRankFusion",
    "RelevanceFloor",
    "RelevanceReranker",
    "ReservedTokenBudget",
    "ScoreFloor",
    "SmallDense",
    "SoftScoreLimit",
    "SparseRecall",
    "TagFilter",
    "TokenBudget",
    "TopK",
]

STAGES: Mapping[str, type[Stage]] = MappingProxyType(
    {
        stage.name: stage
        for stage in (
            AcceptedCap,
            AskJudge,
            CharBudget,
            Composite,
            DenseFloor,
            DistanceThresholds,
            Diversity,
            DocumentLimit,
            DropRepeats,
            ExcerptCap,
            Fuse,
            FuseAbsolute,
            LabelRequired,
            MaxDistance,
            MaximalMarginalRelevance,
            MinSimilarity,
            OnePerDocument,
            OpportunisticRerank,
            OrderAsGiven,
            PerIntentCap,
            Pin,
            ProtectKeywordHit,
            ProtectNearMatches,
            RankByRelevance,
            Read,
            ReciprocalRankFusion,
            RelevanceFloor,
            ReservedTokenBudget,
            ScoreFloor,
            SmallDense,
            SoftScoreLimit,
            SparseRecall,
            TagFilter,
            TokenBudget,
            TopK,
        )
    }
)

ORDERING = (Composite, Fuse, FuseAbsolute, ReciprocalRankFusion)
"""The stages that give candidates their first order."""
