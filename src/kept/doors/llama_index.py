"""LlamaIndex: a retriever, and a node postprocessor that guards another one."""

import asyncio
from typing import Any

from kept._runtime import LLAMA_INDEX

LLAMA_INDEX.demand()

from llama_index.core.bridge.pydantic import Field  # noqa: E402 -- demanded first
from llama_index.core.postprocessor.types import BaseNodePostprocessor  # noqa: E402
from llama_index.core.retrievers import BaseRetriever  # noqa: E402
from llama_index.core.schema import (  # noqa: E402
    BaseNode,
    MetadataMode,
    NodeRelationship,
    NodeWithScore,
    QueryBundle,
    RelatedNodeInfo,
    TextNode,
)
from llama_index.core.vector_stores import (  # noqa: E402
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
)

from kept.doors.framework_guard import (  # noqa: E402
    KEPT,
    FrameworkGuard,
    OnFound,
    metadata_of,
    noted,
    passage_from,
    relevance_of,
)
from kept.errors import InputError  # noqa: E402
from kept.kernel.filter_operators import compared, either, every, neither  # noqa: E402
from kept.kernel.filters import Filters, options_of  # noqa: E402
from kept.kernel.model import Candidate  # noqa: E402
from kept.knowledge_base.base import KnowledgeBase  # noqa: E402
from kept.knowledge_base.select import Selecting  # noqa: E402
from kept.search.retrieve import Found  # noqa: E402
from kept.search.select import Given, Passage  # noqa: E402

__all__ = ["KeptPostprocessor", "KeptRetriever"]


class KeptRetriever(BaseRetriever):
    """Kept as the retriever of a query engine.

    A question without a passage that deserves to be cited gets an empty list;
    *on_found* hears of it, and of every other result. The score of a node is its
    relevance, a probability. *filters* are ours, or those of LlamaIndex.
    """

    def __init__(  # noqa: PLR0913 -- what decides a result
        self,
        base: KnowledgeBase,
        *,
        k: int | None = None,
        filters: Filters | MetadataFilters | None = None,
        intent: str = "other",
        context: int = 0,
        on_found: OnFound | None = None,
    ) -> None:
        super().__init__()
        self._base = base
        self._k = k
        self._filters = _filters(filters)
        self._intent = intent
        self._context = context
        self._on_found = on_found

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        found = self._base.search(
            query_bundle.query_str,
            k=self._k,
            filters=self._filters,
            intent=self._intent,
            context=self._context,
        )
        if self._on_found is not None:
            self._on_found(found)
        return nodes_of(found)

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await asyncio.to_thread(self._retrieve, query_bundle)


_COMPARISONS = {
    FilterOperator.EQ: "eq",
    FilterOperator.NE: "ne",
    FilterOperator.GT: "gt",
    FilterOperator.GTE: "gte",
    FilterOperator.LT: "lt",
    FilterOperator.LTE: "lte",
    FilterOperator.IN: "in",
    FilterOperator.NIN: "nin",
    FilterOperator.ANY: "in",
    FilterOperator.TEXT_MATCH: "contains",
    FilterOperator.CONTAINS: "eq",
    FilterOperator.IS_EMPTY: "not_present",
}
_JOINS = {
    FilterCondition.AND: every,
    FilterCondition.OR: either,
    FilterCondition.NOT: neither,
    None: every,
}


def _filters(given: Filters | MetadataFilters | None) -> Filters | None:
    if isinstance(given, MetadataFilters):
        return _joined(given)
    return given


def _joined(given: MetadataFilters) -> Filters:
    parts = [
        _joined(one) if isinstance(one, MetadataFilters) else _compared(one)
        for one in given.filters
    ]
    return _JOINS[given.condition](parts)


def _compared(given: MetadataFilter) -> Filters:
    if given.operator is FilterOperator.ALL:
        return every(compared(given.key, "eq", one) for one in options_of(given.value))
    if given.operator not in _COMPARISONS:
        known = ", ".join(one.value for one in (*_COMPARISONS, FilterOperator.ALL))
        msg = (
            f"metadata cannot be compared by {given.operator.value!r}; expected one "
            f"of: {known}"
        )
        raise InputError(msg)
    return compared(given.key, _COMPARISONS[given.operator], given.value)


def nodes_of(found: Found) -> list[NodeWithScore]:
    """Return the passages, the cited first, as LlamaIndex knows nodes."""
    return [
        NodeWithScore(node=_node(candidate, note), score=relevance_of(candidate))
        for candidate, note in noted(found)
    ]


def _node(candidate: Candidate, note: dict[str, Any]) -> TextNode:
    document = candidate.document
    return TextNode(
        id_=candidate.id,
        text=candidate.chunk.text,
        metadata=metadata_of(candidate, note),
        excluded_llm_metadata_keys=[KEPT],
        excluded_embed_metadata_keys=[KEPT],
        relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=document.id)},
    )


class KeptPostprocessor(BaseNodePostprocessor):
    """Kept as a guard over the nodes that another retriever found.

    *scores* says what the nodes' scores mean; by default only that the best comes
    first. What stays is the nodes themselves with their scores, in their own order
    unless *order* is ``kept``.
    """

    selecting: Selecting = Field(default_factory=Selecting, exclude=True)
    scores: str = "order"
    order: str | None = None
    ids: str = "derived"
    k: int | None = None
    on_found: OnFound | None = Field(default=None, exclude=True)

    @classmethod
    def class_name(cls) -> str:
        """Name it as LlamaIndex's events do."""
        return "KeptPostprocessor"

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        if query_bundle is None:
            msg = (
                "the question is missing; call postprocess_nodes with query_str or "
                "query_bundle"
            )
            raise InputError(msg)
        given = Given.of(self.scores, order=self.order, ids=self.ids)
        guard = FrameworkGuard(self.selecting, given, self.k, self.on_found)
        chosen, _ = guard(query_bundle.query_str, [_passage(node) for node in nodes])
        return [_noted(nodes[one.place], dict(one.note)) for one in chosen]


def _passage(scored: NodeWithScore) -> Passage:
    node = scored.node
    return passage_from(
        node.get_content(metadata_mode=MetadataMode.NONE),
        id_=node.node_id,
        score=scored.score,
        metadata=node.metadata,
    )


def _noted(scored: NodeWithScore, note: dict[str, Any]) -> NodeWithScore:
    """Return a copy whose record is kept out of the language model's text."""
    node: BaseNode = scored.node.model_copy(
        update={
            "metadata": {**scored.node.metadata, KEPT: note},
            "excluded_llm_metadata_keys": _with_kept(
                scored.node.excluded_llm_metadata_keys
            ),
            "excluded_embed_metadata_keys": _with_kept(
                scored.node.excluded_embed_metadata_keys
            ),
        }
    )
    return NodeWithScore(node=node, score=scored.score)


def _with_kept(keys: list[str]) -> list[str]:
    return [*(key for key in keys if key != KEPT), KEPT]
