"""Asking: a knowledge base under a preset, as the evaluation sees it.

Stages are pure, so recall runs once per question and any number of plans on what it
brought. What comes out is what a search with the same plan returns.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from kept.decisions import Refusal, Selection
from kept.evaluating.corpus import Corpus
from kept.evaluation.suite import Ranked, ranked_documents
from kept.evaluation.trec import best_first
from kept.gate import turned_away
from kept.model import Candidate
from kept.pipeline import Pipeline
from kept.pool import Pool
from kept.presets import Plan, preset
from kept.retrieve import Request, selected
from kept.signals import chance_of_one
from kept.stages import ORDERING

DEPTH = 100


@dataclass(frozen=True, slots=True)
class Recall:
    """What was recalled for a question, weighed but not yet sifted."""

    request: Request
    candidates: tuple[Candidate, ...] = field(repr=False)

    @property
    def confidence(self) -> float | None:
        """The chance that one of the best passages answers, as the refusal sees it."""
        leading = Pool.of(self.candidates).first_wave()
        return chance_of_one(leading.readings("relevance"))


@dataclass(frozen=True)
class Asking:
    """Puts questions to a corpus under one plan."""

    corpus: Corpus
    plan: Plan

    @property
    def configuration(self) -> str:
        """The fingerprint of everything but the passages that decides an answer."""
        return self.corpus.base.retriever(self.plan).configuration

    def recall(self, question: str) -> Recall:
        """Return all that the legs bring, whatever the gate and the stages say."""
        base = self.corpus.base
        request = Request(question=question, tenant=base.tenant)
        retriever = base.retriever(replace(self.plan, pipeline=Pipeline(()), gate=None))
        return Recall(request, retriever(request).selection.candidates)

    def refused(self, question: str) -> Refusal | None:
        """Return why the gate turns a question away, if it does."""
        if self.plan.gate is None:
            return None
        with self.corpus.base.store.shelf(self.corpus.base.tenant) as shelf:
            return turned_away(self.plan.gate, question, partial(shelf.weigh, question))

    def selected(self, recall: Recall) -> tuple[Refusal | None, Selection]:
        """Return what the plan makes of a recall, as a search would."""
        refused = self.refused(recall.request.question)
        if refused is not None:
            return refused, Selection(())
        return selected(self.plan, recall.request, recall.candidates)

    def guarded(self, recall: Recall) -> Ranked:
        """Rank the documents that the plan lets through."""
        refused, selection = self.selected(recall)
        gated = refused is not None and not selection.trace
        return self._named(
            ranked_documents(
                selection,
                document_id=_document,
                confidence=None if gated else recall.confidence,
                refusal=refused.reason if refused else None,
            )
        )

    def plain(self, recall: Recall) -> Ranked:
        """Rank all recalled documents in the plan's order, nothing held back."""
        stages = [s for s in self.plan.pipeline.stages if isinstance(s, ORDERING)]
        selection = Pipeline(tuple(stages))(recall.request.query(), recall.candidates)
        ranked = ranked_documents(
            selection, document_id=_document, confidence=recall.confidence
        )
        return self._named(replace(ranked, funnel=()))

    def _named(self, ranked: Ranked) -> Ranked:
        """Give every document the ids that the collection knows it by."""
        names = self.corpus.names
        ranking = [(name, score) for d, score in ranked.ranking for name in names[d]]
        return replace(
            ranked,
            ranking=best_first(ranking)[:DEPTH],
            touches=tuple(
                replace(touch, document_id=name)
                for touch in ranked.touches
                for name in names[touch.document_id]
            ),
        )


def asking(
    corpus: Corpus, preset_name: str, overrides: Mapping[str, Any] | None = None
) -> Asking:
    """Put *corpus* under a preset, *overrides* before the environment.

    So many passages are asked for that a ranking of documents can be measured.
    """
    chosen = preset(preset_name)
    settings = chosen.configure(overrides)
    return Asking(corpus, chosen.plan(settings, corpus.base.parts, k=DEPTH))


def _document(candidate: Candidate) -> str:
    return candidate.document.id
