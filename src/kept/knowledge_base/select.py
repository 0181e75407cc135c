"""Select from the caller's passages, with or without a knowledge base.

>>> from kept.knowledge_base.select import Selecting
>>> from kept import Passage
>>> guard = Selecting(embedder="hash")
>>> found = guard.select(
...     "When does the Leeds office open?",
...     [
...         Passage(id="leeds", text="The Leeds office opens at eight.", score=0.2),
...         Passage(id="pump", text="The pump costs 410 euro.", score=0.9),
...     ],
...     scores="distance",
... )
>>> [c.id for c in found.selection.candidates]
['leeds']
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kept._runtime import Closing
from kept.kernel.calibration import Calibration, calibration_of, known_cosines
from kept.kernel.filters import Filters, filters_given
from kept.kernel.ports import Embedder
from kept.kernel.presets import Configured, Parts, preset
from kept.kernel.signals import QueryTerms
from kept.knowledge_base.settings import Settings
from kept.knowledge_base.wiring import (
    LanguageModels,
    Progress,
    embedder_of,
    fingerprint_of,
    watch_of,
)
from kept.search.retrieve import Found, Request
from kept.search.select import (
    GIVEN_COSINES,
    Given,
    Passage,
    PassagePool,
    Selector,
    plan_for,
    pool_of,
)

if TYPE_CHECKING:
    from kept.knowledge_base.base import KnowledgeBase

GIVEN_NEAR_MATCH = 0.10


class Selecting(Closing):
    """Chooses from handed-in passages as a search chooses from its own.

    *settings* are those of `Settings`; a *base* lends its settings, its tenant's
    overrides and the weights of its words.
    """

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        base: "KnowledgeBase | None" = None,
        progress: Progress | None = None,
        **given: Any,  # noqa: ANN401 -- checked by the settings
    ) -> None:
        self._base = base
        known = base.settings if base is not None else settings
        self.settings = known or Settings.of(given)
        self._progress = progress
        self._watch = watch_of(self.settings) if base is None else base.watch
        self._models = (
            LanguageModels(self.settings, self._watch) if base is None else base.models
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Come through to another process, where models are made again."""
        return _made_again, (self.settings, self._base)

    def close(self) -> None:
        """Let go of every connection that is not the knowledge base's."""
        if self._base is None:
            self._models.close()
            self._watch.close()

    def select(  # noqa: PLR0913 -- a question has as many sides
        self,
        question: str,
        passages: Iterable[Passage],
        *,
        scores: str | None = None,
        order: str | None = None,
        cosines: str = "own",
        ids: str = "derived",
        k: int | None = None,
        filters: Filters | Mapping[str, Any] | None = None,
        intent: str = "other",
        item: str | None = None,
        pinned: Iterable[str] = (),
        context: int = 0,
    ) -> Found:
        """Return those of *passages* that deserve to be cited, or a refusal.

        *scores* says what their scores mean, *order* whose order counts, *cosines*
        whether ours or theirs are measured by, *ids* whether they may be missing.
        What *filters* leave out is as if it had not been handed in.
        """
        given = Given.of(scores, order=order, cosines=cosines, ids=ids)
        request = Request(
            question=question,
            tenant=self.settings.tenant,
            k=k,
            filters=filters_given(filters),
            intent=intent,
            item=item,
            pinned=frozenset(pinned),
            context=context,
        )
        return self.answer(request, passages, given)

    def answer(
        self, request: Request, passages: Iterable[Passage], given: Given
    ) -> Found:
        """Return what is chosen for a whole request."""
        return self.choose(request, pool_of(passages, given))

    def choose(self, request: Request, pool: PassagePool) -> Found:
        """Return what is chosen from a pool that is named and checked already."""
        selector = self._selector(request, pool.given)
        weights = self._weights(request)
        return self._watch.search(
            request,
            selector.plan,
            lambda seen: replace(selector, plan=seen)(request, pool, weights),
        )

    @cached_property
    def embedder(self) -> Embedder:
        """What turns question and passages into vectors."""
        if self._base is not None:
            return self._base.embedder
        return self._watch.embedder(embedder_of(self.settings, self._progress))

    def _selector(self, request: Request, given: Given) -> Selector:
        embedder = self.embedder if given.cosines == "own" else None
        embedder_id = GIVEN_COSINES if embedder is None else embedder.id
        path = self.settings.calibration if embedder is not None else None
        calibration = calibration_of(embedder_id, Path(path) if path else None)
        parts = self._parts(request, embedder, calibration)
        configured = self._configured(request)
        plan = plan_for(
            configured.plan(parts, k=request.k, pins=bool(request.pinned)), given
        )
        configuration = fingerprint_of(plan, embedder_id, calibration.id)
        return Selector(embedder, calibration, plan, configuration)

    def _configured(self, request: Request) -> Configured:
        if self._base is not None:
            return self._base.configured(tenant=request.tenant)
        return self._own

    @cached_property
    def _own(self) -> Configured:
        chosen = preset(self.settings.preset)
        return Configured(chosen, chosen.configure())

    def _parts(
        self, request: Request, embedder: Embedder | None, calibration: Calibration
    ) -> Parts:
        settings = self._configured(request).settings
        near = GIVEN_NEAR_MATCH if embedder is None else embedder.near_match_distance
        return Parts(
            near_match_distance=near,
            judge=self._models.judge(getattr(settings, "validation_model", "")),
            reranker=self._models.reranker(),
            known_cosines=embedder is not None and known_cosines(embedder.id),
            floors=calibration.floors,
        )

    def _weights(self, request: Request) -> tuple[str, QueryTerms] | None:
        """Return the words as the knowledge base weighs them, if it holds any."""
        if self._base is None:
            return None
        with self._base.store.shelf(request.tenant) as shelf:
            if not shelf.chunks:
                return None
            return shelf.state, shelf.weigh(request.question)


def _made_again(settings: Settings, base: "KnowledgeBase | None") -> Selecting:
    return Selecting(settings, base=base)


def select(
    question: str,
    passages: Iterable[Passage],
    *,
    scores: str | None = None,
    k: int | None = None,
    filters: Filters | Mapping[str, Any] | None = None,
    **settings: Any,  # noqa: ANN401 -- checked by the settings
) -> Found:
    """Choose once from handed-in passages; *settings* are those of `Settings`."""
    with Selecting(**settings) as chosen:
        return chosen.select(question, passages, scores=scores, k=k, filters=filters)
