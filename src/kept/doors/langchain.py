"""LangChain: a retriever, a document compressor, and a guard around a retriever."""

from collections.abc import Mapping, Sequence
from typing import Any

from kept._runtime import LANGCHAIN

LANGCHAIN.demand()

from langchain_core.callbacks import (  # noqa: E402 -- demanded first
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
    Callbacks,
)
from langchain_core.documents import BaseDocumentCompressor, Document  # noqa: E402
from langchain_core.retrievers import BaseRetriever  # noqa: E402
from langchain_core.runnables import run_in_executor  # noqa: E402
from langchain_core.structured_query import (  # noqa: E402
    Comparator,
    Comparison,
    FilterDirective,
    Operation,
    Operator,
)
from pydantic import ConfigDict, Field  # noqa: E402

from kept.doors.framework_guard import (  # noqa: E402
    KEPT,
    FrameworkGuard,
    OnFound,
    metadata_of,
    noted,
    passage_from,
)
from kept.errors import InputError  # noqa: E402
from kept.kernel.filter_operators import compared, either, every, neither  # noqa: E402
from kept.kernel.filters import Filters  # noqa: E402
from kept.knowledge_base.base import KnowledgeBase  # noqa: E402
from kept.knowledge_base.select import Selecting  # noqa: E402
from kept.search.retrieve import Found  # noqa: E402
from kept.search.select import Given, Passage  # noqa: E402

__all__ = ["KeptCompressor", "KeptGuard", "KeptRetriever"]

AnyFilters = Filters | FilterDirective | Mapping[str, Any] | None


class KeptRetriever(BaseRetriever):
    """Kept as the retriever of a chain.

    A question without a passage that deserves to be cited gets an empty list;
    *on_found* hears of it, and of every other result. *filters* are ours, a plain
    dict, or those of a structured query; they and *k* can be given to ``invoke`` too.

    A copy in another process, such as an unpickled one, opens the store again.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    base: KnowledgeBase
    k: int | None = None
    filters: AnyFilters = None
    intent: str = "other"
    context: int = 0
    on_found: OnFound | None = None

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,
        k: int | None = None,
        filters: AnyFilters = None,
    ) -> list[Document]:
        return self._found(query, k, filters)

    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun,
        k: int | None = None,
        filters: AnyFilters = None,
    ) -> list[Document]:
        return await run_in_executor(None, self._found, query, k, filters)

    def _found(self, query: str, k: int | None, filters: AnyFilters) -> list[Document]:
        given = self.filters if filters is None else filters
        found = self.base.search(
            query,
            k=self.k if k is None else k,
            filters=_filters(given) if isinstance(given, FilterDirective) else given,
            intent=self.intent,
            context=self.context,
        )
        if self.on_found is not None:
            self.on_found(found)
        return documents_of(found)


_COMPARED = {
    Comparator.EQ,
    Comparator.NE,
    Comparator.GT,
    Comparator.GTE,
    Comparator.LT,
    Comparator.LTE,
    Comparator.IN,
    Comparator.NIN,
}


def _filters(given: FilterDirective) -> Filters:
    if isinstance(given, Operation):
        parts = [_filters(one) for one in given.arguments]
        if given.operator is Operator.NOT:
            return neither([every(parts)])
        return (either if given.operator is Operator.OR else every)(parts)
    if not isinstance(given, Comparison):
        msg = f"filters are a {type(given).__name__}; expected Comparison or Operation"
        raise InputError(msg)
    value = _plain(given.value)
    if given.comparator is Comparator.CONTAIN:
        said = "contains" if isinstance(value, str) else "eq"
        return compared(given.attribute, said, value)
    if given.comparator not in _COMPARED:
        msg = (
            f"metadata cannot be compared by {given.comparator.value!r}; "
            "'contain' finds a part of a text"
        )
        raise InputError(msg)
    return compared(given.attribute, given.comparator.value, value)


def _plain(value: Any) -> Any:  # noqa: ANN401 -- of JSON
    """Return a value as it is in metadata; a date comes with its type."""
    if isinstance(value, dict) and value.get("type") in ("date", "datetime"):
        return value.get(value["type"])
    return value


def documents_of(found: Found) -> list[Document]:
    """Return the passages, the cited first, as LangChain knows documents."""
    return [
        Document(
            page_content=candidate.chunk.text,
            id=candidate.id,
            metadata=metadata_of(candidate, note),
        )
        for candidate, note in noted(found)
    ]


class KeptCompressor(BaseDocumentCompressor):
    """Kept as a guard over the documents that another retriever found.

    *scores* says what the scores under *score_key* of the metadata mean; by
    default there are none, and the best document comes first. What stays is the
    documents themselves, in their own order unless *order* is ``kept``.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    selecting: Selecting = Field(default_factory=Selecting)
    scores: str = "order"
    score_key: str | None = None
    order: str | None = None
    ids: str = "derived"
    k: int | None = None
    on_found: OnFound | None = None

    def compress_documents(
        self,
        documents: Sequence[Document],
        query: str,
        callbacks: Callbacks | None = None,
    ) -> Sequence[Document]:
        """Return the documents that deserve to be cited, each with its story."""
        given = Given.of(self.scores, order=self.order, ids=self.ids)
        guard = FrameworkGuard(self.selecting, given, self.k, self.on_found)
        chosen, _ = guard(query, [self._passage(document) for document in documents])
        return [_noted(documents[one.place], dict(one.note)) for one in chosen]

    def _passage(self, document: Document) -> Passage:
        return passage_from(
            document.page_content,
            id_=document.id,
            score=None,
            metadata=document.metadata,
            score_key=self.score_key,
        )


class KeptGuard(BaseRetriever):
    """Another *retriever* whose results pass through a *compressor*."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    retriever: BaseRetriever
    compressor: BaseDocumentCompressor = Field(default_factory=KeptCompressor)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        documents = self.retriever.invoke(
            query, config={"callbacks": run_manager.get_child()}
        )
        return list(self.compressor.compress_documents(documents, query))

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun
    ) -> list[Document]:
        documents = await self.retriever.ainvoke(
            query, config={"callbacks": run_manager.get_child()}
        )
        return list(await self.compressor.acompress_documents(documents, query))


def _noted(document: Document, note: dict[str, Any]) -> Document:
    return document.model_copy(update={"metadata": {**document.metadata, KEPT: note}})
