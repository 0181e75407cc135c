"""The selector: the caller's passages through the pipeline of a preset."""

import time
from dataclasses import dataclass, replace

import numpy as np

from kept.kernel.calibration import Calibration
from kept.kernel.gate import turned_away
from kept.kernel.model import Candidate
from kept.kernel.outcome import Stage, sift
from kept.kernel.pipeline import ranked
from kept.kernel.pool import Pool
from kept.kernel.ports import Embedder
from kept.kernel.presets.plan import Plan
from kept.kernel.record import Drop, Refusal, Selection, Step
from kept.kernel.signals import PLACES, Floats, QueryTerms
from kept.kernel.stages import (
    ORDERING,
    DropRepeats,
    OpportunisticRerank,
    OrderAsGiven,
    RankByRelevance,
)
from kept.search.retrieve import Fingerprints, Found, Request, check_question, selected
from kept.search.select.measure import Texts, embedded
from kept.search.select.passages import PassagePool
from kept.search.select.score_meaning import Given, Scores
from kept.text.tokens import count_tokens

GIVEN_COSINES = "given"


REORDERING = (OpportunisticRerank, RankByRelevance)


def plan_for(plan: Plan, given: Given) -> Plan:
    """Return *plan* for passages from elsewhere: no repeats, in the order wanted.

    Where their own order counts, it replaces that of the preset and no signal takes
    a second look at it; every floor and limit stays.
    """
    stages: list[Stage] = [DropRepeats(), *plan.pipeline.stages]
    if given.order == "given":
        stages = [one for one in stages if not isinstance(one, REORDERING)]
        ordering = [n for n, one in enumerate(stages) if isinstance(one, ORDERING)]
        place = ordering[-1] + 1 if ordering else 1
        stages.insert(place, OrderAsGiven(given.scores.smaller_is_better))
    return replace(plan, pipeline=replace(plan.pipeline, stages=tuple(stages)))


@dataclass(frozen=True)
class Selector:
    """Chooses from pools by way of a plan that was made for them.

    Without an *embedder* the cosines are those that came with the passages.
    """

    embedder: Embedder | None
    calibration: Calibration
    plan: Plan
    configuration: str

    def __call__(
        self,
        request: Request,
        pool: PassagePool,
        weights: tuple[str, QueryTerms] | None = None,
    ) -> Found:
        """Return what of *pool* deserves to be cited, and the whole record.

        *weights* are the question's words as a knowledge base weighs them, with
        the fingerprint of its state; without, the pool itself weighs them. What the
        request's filters leave out is no part of the pool.
        """
        started = time.perf_counter()
        check_question(request.question)
        pool.demand(request.pinned)
        pool = pool.within(request.filters, request.pinned)
        texts = Texts(tuple(member.passage.text for member in pool.members))
        state, terms = weights or ("", texts.weigh(request.question))
        refused, selection = self._chosen(request, pool, texts, terms)
        return Found(
            request=request,
            selection=selection,
            refused=refused,
            fingerprints=Fingerprints(
                knowledge_base="+".join(filter(None, (state, pool.fingerprint))),
                configuration=self.configuration,
            ),
            timings={"select": round((time.perf_counter() - started) * 1000, 3)},
        )

    def _chosen(
        self, request: Request, pool: PassagePool, texts: Texts, terms: QueryTerms
    ) -> tuple[Refusal | None, Selection]:
        if self.plan.gate is not None:
            refused = turned_away(self.plan.gate, request.question, lambda: terms)
            if refused is not None:
                return refused, _all_refused(pool, refused)
        candidates = self._candidates(request.question, pool, texts, terms)
        measured = self.calibration(candidates, request.question)
        return selected(self.plan, request, measured)

    def _candidates(
        self, question: str, pool: PassagePool, texts: Texts, terms: QueryTerms
    ) -> tuple[Candidate, ...]:
        if not pool.members:
            return ()
        if self.embedder is None:
            vectors, cosines = [None] * len(pool.members), _given_cosines(pool)
        else:
            rows, cosines = embedded(self.embedder, question, texts.texts)
            vectors = list(rows)
        columns = texts.measured(terms, cosines)
        columns["in_dense"] = np.ones(len(cosines))
        columns["in_keyword"] = (columns["bm25"] > 0).astype(np.float64)
        if pool.given.scores is not Scores.NONE:
            columns["given"] = np.array([m.given for m in pool.members], np.float64)
        names = tuple(columns)
        values = zip(*(column.tolist() for column in columns.values()), strict=True)
        return tuple(
            Candidate(
                chunk=member.chunk(count_tokens(member.passage.text)),
                document=member.document(),
                score=_arrival(member.given, signals[0], pool.given.scores),
                signals=dict(zip(names, signals, strict=True)),
                vector=vector,
            )
            for member, signals, vector in zip(
                pool.members, values, vectors, strict=True
            )
        )


def _all_refused(pool: PassagePool, refused: Refusal) -> Selection:
    """Return a record in which the gate turned everything away that was handed in."""
    scores = pool.given.scores
    candidates = ranked(
        Candidate(
            chunk=member.chunk(count_tokens(member.passage.text)),
            document=member.document(),
            score=_arrival(member.given, 0.0, scores),
            signals={} if member.given is None else {"given": member.given},
        )
        for member in pool.members
    )
    drop = Drop(refused.reason, refused.evidence)
    decisions = sift(Pool.of(candidates), lambda _: drop).decisions
    return Selection((), candidates, (Step("gate", len(candidates), 0, decisions),))


def _given_cosines(pool: PassagePool) -> Floats:
    values: Floats = np.array([m.given for m in pool.members], dtype=np.float64)
    if pool.given.scores is Scores.COSINE_DISTANCE:
        values = 1.0 - values
    return values.clip(-1.0, 1.0).round(PLACES)


def _arrival(given: float | None, cosine: float, scores: Scores) -> float:
    """Return the score that a candidate arrives with, larger being better."""
    if given is None:
        return cosine
    return round(-given if scores.smaller_is_better else given, PLACES)
