"""Haystack: two components, a retriever and a guard, that pipelines can save."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

from kept._runtime import HAYSTACK

HAYSTACK.demand()

from haystack import Document, component, default_from_dict, default_to_dict  # noqa: E402 -- demanded first

from kept.doors.framework_guard import (  # noqa: E402
    KEPT,
    FrameworkGuard,
    metadata_of,
    noted,
    passage_from,
    relevance_of,
)
from kept.doors.library import open as open_knowledge_base  # noqa: E402
from kept.errors import InputError  # noqa: E402
from kept.kernel.filter_operators import compared, either, every, neither  # noqa: E402
from kept.kernel.filters import Filters, filters_of  # noqa: E402
from kept.knowledge_base.base import KnowledgeBase  # noqa: E402
from kept.knowledge_base.select import Selecting  # noqa: E402
from kept.knowledge_base.settings import Settings  # noqa: E402
from kept.search.render import record_json, refusal_json  # noqa: E402
from kept.search.retrieve import Found  # noqa: E402
from kept.search.select import Given, Passage  # noqa: E402

__all__ = ["KeptGuard", "KeptRetriever"]

Filtering = Mapping[str, Any]


@component
class KeptRetriever:
    """Kept as the retriever of a pipeline, over the knowledge base in *store*.

    The score of a document is its relevance, a probability. *filters* are those of
    `kept.Filters`, by name, or Haystack's own. It opens the store when it is first
    needed.
    """

    def __init__(  # noqa: PLR0913 -- plain values, so that a pipeline can be saved
        self,
        store: str = "./.kept",
        *,
        tenant: str | None = None,
        embedder: str | None = None,
        preset: str | None = None,
        top_k: int | None = None,
        filters: dict[str, Any] | None = None,
    ) -> None:
        self.store = store
        self.tenant = tenant
        self.embedder = embedder
        self.preset = preset
        self.top_k = top_k
        self.filters = filters
        self._base: KnowledgeBase | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return it as a pipeline saves it."""
        return default_to_dict(
            self,
            store=self.store,
            tenant=self.tenant,
            embedder=self.embedder,
            preset=self.preset,
            top_k=self.top_k,
            filters=self.filters,
        )

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Return what was saved."""
        made: Self = default_from_dict(cls, data)
        return made

    def warm_up(self) -> None:
        """Open the knowledge base."""
        self._opened()

    def _opened(self) -> KnowledgeBase:
        if self._base is None:
            given = _given(self.tenant, self.embedder, self.preset)
            self._base = open_knowledge_base(self.store, **given)
        return self._base

    def close(self) -> None:
        """Let go of every file."""
        if self._base is not None:
            self._base.close()
            self._base = None

    @component.output_types(
        documents=list[Document], record=dict[str, Any], refused=dict[str, Any] | None
    )
    def run(
        self,
        query: str,
        top_k: int | None = None,
        filters: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Return the passages that deserve to be cited, and the whole record."""
        found = self._opened().search(
            query,
            k=self.top_k if top_k is None else top_k,
            filters=_filters(self.filters if filters is None else filters),
        )
        return _told(found, documents_of(found))

    @component.output_types(
        documents=list[Document], record=dict[str, Any], refused=dict[str, Any] | None
    )
    async def run_async(
        self,
        query: str,
        top_k: int | None = None,
        filters: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Do the same without holding the event loop up."""
        found: dict[str, Any] = await asyncio.to_thread(self.run, query, top_k, filters)
        return found


def documents_of(found: Found) -> list[Document]:
    """Return the passages, the cited first, as Haystack knows documents."""
    return [
        Document(
            id=candidate.id,
            content=candidate.chunk.text,
            meta=metadata_of(candidate, note),
            score=relevance_of(candidate),
        )
        for candidate, note in noted(found)
    ]


@component
class KeptGuard:
    """Kept as a guard over the documents that another retriever found.

    *scores* says what the documents' scores mean; by default only that the best
    comes first. What stays is the documents themselves with their scores, in their
    own order unless *order* is ``kept``. A *store* lends the weights of its words.
    """

    def __init__(  # noqa: PLR0913 -- plain values, so that a pipeline can be saved
        self,
        *,
        scores: str = "order",
        order: str | None = None,
        ids: str = "derived",
        top_k: int | None = None,
        store: str | None = None,
        tenant: str | None = None,
        embedder: str | None = None,
        preset: str | None = None,
    ) -> None:
        self.scores = scores
        self.order = order
        self.ids = ids
        self.top_k = top_k
        self.store = store
        self.tenant = tenant
        self.embedder = embedder
        self.preset = preset
        self._given = Given.of(scores, order=order, ids=ids)
        self._base: KnowledgeBase | None = None
        self._selecting: Selecting | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return it as a pipeline saves it."""
        return default_to_dict(
            self,
            scores=self.scores,
            order=self.order,
            ids=self.ids,
            top_k=self.top_k,
            store=self.store,
            tenant=self.tenant,
            embedder=self.embedder,
            preset=self.preset,
        )

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Return what was saved."""
        made: Self = default_from_dict(cls, data)
        return made

    def warm_up(self) -> None:
        """Make ready to embed, and open the knowledge base if there is one."""
        self._guard()

    def close(self) -> None:
        """Let go of every file and connection."""
        for held in (self._selecting, self._base):
            if held is not None:
                held.close()
        self._selecting = self._base = None

    @component.output_types(
        documents=list[Document], record=dict[str, Any], refused=dict[str, Any] | None
    )
    def run(
        self, query: str, documents: list[Document], top_k: int | None = None
    ) -> dict[str, Any]:
        """Return the documents that deserve to be cited, and the whole record."""
        guard = self._guard()
        chosen, found = guard(query, [_passage(one) for one in documents], top_k)
        kept = [_noted(documents[one.place], dict(one.note)) for one in chosen]
        return _told(found, kept)

    @component.output_types(
        documents=list[Document], record=dict[str, Any], refused=dict[str, Any] | None
    )
    async def run_async(
        self, query: str, documents: list[Document], top_k: int | None = None
    ) -> dict[str, Any]:
        """Do the same without holding the event loop up."""
        found: dict[str, Any] = await asyncio.to_thread(
            self.run, query, documents, top_k
        )
        return found

    def _guard(self) -> FrameworkGuard:
        if self._selecting is None:
            given = _given(self.tenant, self.embedder, self.preset)
            if self.store is not None:
                self._base = open_knowledge_base(self.store, **given)
            self._selecting = Selecting(Settings.of(given), base=self._base)
        return FrameworkGuard(self._selecting, self._given, self.top_k)


def _given(*given: str | None) -> dict[str, Any]:
    names = ("tenant", "embedder", "preset")
    pairs = zip(names, given, strict=True)
    return {name: value for name, value in pairs if value is not None}


def _filters(given: Filtering | None) -> Filters:
    """Return ours as they are named, and those of Haystack in our words."""
    if not given:
        return Filters()
    return _theirs(given) if "operator" in given else filters_of(given)


_COMPARISONS = {
    "==": "eq",
    "!=": "ne",
    ">": "gt",
    ">=": "gte",
    "<": "lt",
    "<=": "lte",
    "in": "in",
    "not in": "nin",
}


def _theirs(given: object) -> Filters:
    if not isinstance(given, Mapping) or "operator" not in given:
        msg = f"a condition is {given!r}; expected an object with an operator"
        raise InputError(msg)
    if "field" in given:
        return _compared(given)
    said = given["operator"]
    if said not in ("AND", "OR", "NOT"):
        msg = f"there is no operator {said!r} of conditions; expected AND, OR or NOT"
        raise InputError(msg)
    parts = [_theirs(one) for one in given.get("conditions", ())]
    if said == "NOT":
        return neither([every(parts)])
    return (either if said == "OR" else every)(parts)


def _compared(given: Filtering) -> Filters:
    key = str(given["field"]).removeprefix("meta.")
    if f"meta.{key}" != given["field"] or "." in key:
        msg = f"the field {given['field']!r} cannot be compared; expected meta.KEY"
        raise InputError(msg)
    said = given["operator"]
    if said not in _COMPARISONS:
        msg = (
            f"there is no operator {said!r}; expected one of: {', '.join(_COMPARISONS)}"
        )
        raise InputError(msg)
    return compared(key, _COMPARISONS[said], given.get("value"))


def _passage(document: Document) -> Passage:
    return passage_from(
        document.content or "",
        id_=document.id,
        score=document.score,
        metadata=document.meta,
    )


def _noted(document: Document, note: dict[str, Any]) -> Document:
    return replace(document, meta={**document.meta, KEPT: note})


def _told(found: Found, documents: list[Document]) -> dict[str, Any]:
    return {
        "documents": documents,
        "record": record_json(found.selection),
        "refused": refusal_json(found.refused),
    }
