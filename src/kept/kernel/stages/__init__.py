"""The stages that ship with Kept, by the name they have in a trace."""

from collections.abc import Mapping
from types import MappingProxyType

from kept.pipeline import Stage
from kept.stages.assist import SmallDense, SparseRecall
from kept.stages.budget import CharBudget, ReservedTokenBudget, TokenBudget
from kept.stages.composite import Composite, SoftScoreLimit
from kept.stages.diversity import Diversity, DocumentLimit, MaximalMarginalRelevance
from kept.stages.fusion import Fuse, FuseAbsolute, ReciprocalRankFusion
from kept.stages.given import DropRepeats, OrderAsGiven
from kept.stages.judge import AcceptedCap, AskJudge
from kept.stages.limit import ExcerptCap, OnePerDocument, PerIntentCap, TopK
from kept.stages.pin import Pin
from kept.stages.protect import ProtectKeywordHit, ProtectNearMatches
from kept.stages.rerank import OpportunisticRerank, RelevanceReranker
from kept.stages.tags import LabelRequired, TagFilter
from kept.stages.threshold import (
    Answerable,
    DenseFloor,
    DistanceThresholds,
    MaxDistance,
    MinSimilarity,
    RelevanceFloor,
    RelevanceShare,
    ScoreFloor,
)

__all__ = [
    "ORDERING",
    "STAGES",
    "AcceptedCap",
    "Answerable",
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
    "ReciprocalRankFusion",
    "RelevanceFloor",
    "RelevanceReranker",
    "RelevanceShare",
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
            Answerable,
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
            ReciprocalRankFusion,
            RelevanceFloor,
            RelevanceShare,
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
