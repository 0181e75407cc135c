"""The promises: what holds for every pool and every chain of stages."""

import json
import os
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kept.errors import InvariantViolation, ProtectedCandidateDropped
from kept.kernel.model import Candidate, Chunk, Document, Query
from kept.kernel.outcome import Outcome, Stage
from kept.kernel.pipeline import Pipeline, ranked
from kept.kernel.pool import Pool
from kept.kernel.ports import Opinion
from kept.kernel.presets import PRESETS, Parts
from kept.kernel.record import JUDGED, Decision, Reason, Selection, Verdict
from kept.kernel.stages import (
    AcceptedCap,
    AskJudge,
    CharBudget,
    Composite,
    DenseFloor,
    DistanceThresholds,
    Diversity,
    DocumentLimit,
    ExcerptCap,
    Fuse,
    FuseAbsolute,
    LabelRequired,
    MaxDistance,
    MaximalMarginalRelevance,
    MinSimilarity,
    OnePerDocument,
    OpportunisticRerank,
    PerIntentCap,
    Pin,
    ProtectKeywordHit,
    ProtectNearMatches,
    RankByRelevance,
    RelevanceFloor,
    RelevanceReranker,
    ReservedTokenBudget,
    ScoreFloor,
    SmallDense,
    SoftScoreLimit,
    SparseRecall,
    TagFilter,
    TokenBudget,
    TopK,
)
from kept.search.render import record_json
from kept.testing.tables import ScriptedJudge, candidates

holds = settings(deadline=None, max_examples=80)

QUERY = Query(text="how much is it", item="Sleep")
PINNING = replace(QUERY, pinned=frozenset({"c01", "c07"}))
NEAR = 0.25

DOCUMENTS = tuple(
    Document(id=f"d{n}", chunk_count=count, authority=authority, confidence=confidence)
    for n, (count, authority, confidence) in enumerate(
        [(1, "high", 0.9), (2, "low", None), (4, None, 0.0), (9, "medium", 1.0)]
    )
)


@st.composite
def a_candidate(draw: st.DrawFn, chunk_id: str) -> Candidate:
    """Draw a candidate; few distinct values, so that ties are common."""
    eighths = st.integers(0, 8).map(lambda n: n / 8)
    cosine = draw(eighths)
    in_keyword = draw(st.booleans())
    document = draw(st.sampled_from(DOCUMENTS))
    return Candidate(
        chunk=Chunk(
            id=chunk_id,
            document_id=document.id,
            ord=draw(st.integers(0, 3)),
            text="x" * draw(st.integers(0, 9)),
            token_len=draw(st.integers(0, 9)),
            tags=draw(st.sampled_from([(), ("Sleep",), ("Tired", "Sleep")])),
            role=draw(st.sampled_from([None, "metric"])),
            excerpt=draw(st.booleans()),
            labels=draw(st.sampled_from([{}, {"Sleep": None}, {"Sleep": 0}])),
        ),
        document=document,
        score=cosine,
        signals={
            "cosine": cosine,
            "distance": 1 - cosine,
            "bm25": draw(st.integers(0, 4)) / 2 if in_keyword else 0.0,
            "coverage": draw(eighths),
            "bm25_share": draw(eighths),
            "relevance": draw(eighths),
            "in_dense": float(not in_keyword or draw(st.booleans())),
            "in_keyword": float(in_keyword),
        },
        vector=np.array(draw(st.sampled_from([(1, 0), (0, 1), (3, 4)])), np.float32),
    )


@st.composite
def a_pool(draw: st.DrawFn) -> list[Candidate]:
    """Draw up to fourteen candidates."""
    return [draw(a_candidate(f"c{n:02}")) for n in range(draw(st.integers(0, 14)))]


eighths = st.integers(0, 8).map(lambda n: n / 8)
places = st.integers(1, 6)
QUALITY = (
    st.builds(RelevanceFloor, eighths),
    st.builds(ScoreFloor, eighths),
    st.builds(DenseFloor, eighths, st.none() | eighths),
    st.just(RankByRelevance()),
    st.builds(MinSimilarity, eighths, st.sampled_from(["cosine", "half"])),
    st.builds(MaxDistance, eighths),
    st.builds(SoftScoreLimit, eighths),
    st.just(DistanceThresholds()),
    st.just(TagFilter()),
    st.just(LabelRequired()),
    st.just(OnePerDocument()),
    st.builds(Diversity, places, eighths),
    st.builds(DocumentLimit, places),
    st.just(OpportunisticRerank(RelevanceReranker(), 0.2, 0.9, window=3)),
    st.builds(ExcerptCap, places),
)
LIMITS = (
    st.builds(TopK, places),
    st.builds(AcceptedCap, places),
    st.builds(lambda cap: PerIntentCap({"other": cap}), places),
    st.builds(ExcerptCap, places, st.just(value=False)),
    st.builds(MaximalMarginalRelevance, places, eighths),
    st.builds(CharBudget, st.integers(1, 40), st.sampled_from(["stop", "skip"])),
    st.builds(TokenBudget, st.integers(1, 40), st.sampled_from(["stop", "skip"])),
    st.builds(ReservedTokenBudget, st.integers(1, 40), st.just({"Sleep": 0.5})),
)
JUDGING = (
    st.just(AskJudge(ScriptedJudge(frozenset(f"c{n:02}" for n in range(0, 14, 2))))),
)
ONCE = (OpportunisticRerank, MaximalMarginalRelevance)
WEIGHED = (Fuse(), Composite())
NEAR_ONLY = (Pin(), ProtectNearMatches(NEAR))
ALL_SHIELDS = (*NEAR_ONLY, SparseRecall(0.5), SmallDense(0.5))


def chains(
    *kinds: st.SearchStrategy[Stage], shields: tuple[Stage, ...] = ALL_SHIELDS
) -> st.SearchStrategy[Pipeline]:
    """Draw chains: shields, scores, and any of *kinds* in any order."""
    keyword = (ProtectKeywordHit(0.5),) if shields is ALL_SHIELDS else ()

    def chain(drawn: list[Stage]) -> Pipeline:
        last = {type(s): s for s in drawn if isinstance(s, ONCE)}
        rest = (s for s in drawn if not isinstance(s, ONCE))
        return Pipeline((*shields, *WEIGHED, *keyword, *rest, *last.values()))

    return st.lists(st.one_of(*kinds), max_size=6).map(chain)


any_chain = chains(*QUALITY, *LIMITS, *JUDGING)


def names(pool: tuple[Candidate, ...] | list[Candidate]) -> set[str]:
    """Return the ids of a pool."""
    return {c.id for c in pool}


def as_bytes(selection: Selection) -> bytes:
    """Return the record as every door shows it."""
    return json.dumps(record_json(selection)).encode()


@holds
@given(a_pool(), any_chain)
def test_nothing_vanishes(pool: list[Candidate], chain: Pipeline) -> None:
    """Every candidate is selected, or dropped with exactly one reason."""
    selection = chain(PINNING, pool)

    drops = Counter(d.chunk_id for d in selection.decisions(Verdict.DROPPED))
    assert names(selection.candidates) | names(selection.dropped) == names(pool)
    assert drops == Counter(c.id for c in selection.dropped)
    assert not names(selection.candidates) & set(drops)


@holds
@given(a_pool(), any_chain)
def test_counts_sum(pool: list[Candidate], chain: Pipeline) -> None:
    """Recalled plus added is selected plus dropped; each step follows the last."""
    selection = chain(PINNING, pool)

    assert selection.recalled == len(pool)
    assert selection.recalled + selection.added == len(selection.candidates) + len(
        selection.dropped
    )
    ends = [len(pool), *(step.after for step in selection.trace)]
    assert [step.before for step in selection.trace] == ends[:-1]
    assert ends[-1] == len(selection.candidates)


@holds
@given(a_pool(), any_chain, st.randoms(use_true_random=False))
def test_order_of_arrival_does_not_matter(
    pool: list[Candidate], chain: Pipeline, random: Random
) -> None:
    """Shuffled candidates give the very same selection and trace."""
    shuffled = random.sample(pool, len(pool))

    assert chain(PINNING, shuffled) == chain(PINNING, pool)


@holds
@given(a_pool(), any_chain)
def test_equal_inputs_give_equal_bytes(pool: list[Candidate], chain: Pipeline) -> None:
    """The record is a pure function of query, candidates and stages."""
    assert as_bytes(chain(QUERY, pool)) == as_bytes(chain(QUERY, list(pool)))


@holds
@given(a_pool(), any_chain)
def test_the_selection_is_in_the_one_order(
    pool: list[Candidate], chain: Pipeline
) -> None:
    """Score, then chunk id."""
    selected = chain(QUERY, pool).candidates

    assert selected == tuple(sorted(selected, key=lambda c: (-c.score, c.id)))


@holds
@given(a_pool(), chains(*QUALITY))
def test_no_quality_filter_takes_a_near_match(
    pool: list[Candidate], chain: Pipeline
) -> None:
    """Without a limit in the chain, whatever is near or pinned is selected."""
    near = {c.id for c in pool if c.signal("distance") <= NEAR}

    assert near <= names(chain(QUERY, pool).candidates)
    assert names(pool) & PINNING.pinned <= names(chain(PINNING, pool).candidates)


@holds
@given(a_pool(), any_chain)
def test_a_near_match_leaves_as_overflow_or_by_the_judge(
    pool: list[Candidate], chain: Pipeline
) -> None:
    """Pinned candidates do not leave."""
    selection = chain(PINNING, pool)

    near = {c.id for c in pool if c.signal("distance") <= NEAR}
    for decision in selection.decisions(Verdict.DROPPED):
        if decision.chunk_id in near:
            assert decision.reason in {Reason.PROTECTED_OVERFLOW, *JUDGED}
        assert decision.chunk_id not in PINNING.pinned


@holds
@given(a_pool(), chains(*QUALITY, *JUDGING))
def test_only_what_the_judge_accepts_is_left(
    pool: list[Candidate], chain: Pipeline
) -> None:
    """Spec 36: "Include only `accept` references", near matches included."""
    judges = [s.judge for s in chain.stages if isinstance(s, AskJudge)]

    left = chain(QUERY, pool).candidates

    for judge in judges:
        assert set(judge.review(QUERY, left)) <= {Opinion.ACCEPT}


@holds
@given(a_pool(), chains(*QUALITY, *LIMITS, shields=NEAR_ONLY))
def test_the_unprotected_never_cost_a_near_match_its_place(
    pool: list[Candidate], chain: Pipeline
) -> None:
    """The near matches that survive are those that survive among themselves."""
    near = [c for c in pool if c.signal("distance") <= NEAR]

    beside_others = names(chain(QUERY, pool).candidates) & names(near)
    alone = names(chain(QUERY, near).candidates)

    assert beside_others == alone


PREFIX_STABLE = (
    *JUDGING,
    st.builds(CharBudget, st.integers(1, 40), st.sampled_from(["stop", "skip"])),
    st.builds(TokenBudget, st.integers(1, 40), st.sampled_from(["stop", "skip"])),
    st.builds(AcceptedCap, places),
)


@holds
@given(
    a_pool(),
    any_chain,
    st.sampled_from([TopK, MaximalMarginalRelevance]),
    st.lists(st.one_of(*PREFIX_STABLE), max_size=3),
    places,
)
def test_a_larger_k_only_adds(
    pool: list[Candidate],
    before: Pipeline,
    limit: type[TopK | MaximalMarginalRelevance],
    after: list[Stage],
    k: int,
) -> None:
    """What k places hold, k + 1 places hold too."""
    head = tuple(
        s for s in before.stages if not isinstance(s, MaximalMarginalRelevance)
    )

    few = Pipeline((*head, limit(k), *after))(PINNING, pool)
    more = Pipeline((*head, limit(k + 1), *after))(PINNING, pool)

    assert names(few.candidates) <= names(more.candidates)


@holds
@given(a_pool(), st.sampled_from(sorted(PRESETS)), places, st.booleans())
def test_a_larger_k_only_adds_in_every_preset(
    pool: list[Candidate],
    name: str,
    k: int,
    known: bool,  # noqa: FBT001 -- drawn
) -> None:
    """The promise holds for the chains that ship."""
    preset = PRESETS[name]
    configured = preset.configure()
    parts = Parts(NEAR, known_cosines=known)
    few, more = (
        preset.plan(configured, parts, k=places).pipeline(QUERY, pool)
        for places in (k, k + 1)
    )

    assert names(few.candidates) <= names(more.candidates)


@holds
@given(a_pool(), st.sets(st.integers(0, 13)))
def test_an_absolute_order_does_not_depend_on_other_candidates(
    pool: list[Candidate], gone: set[int]
) -> None:
    """Some of a pool have the order, and the scores, that they have in all of it."""
    some = [c for place, c in enumerate(pool) if place not in gone]
    fused = Pipeline.of(FuseAbsolute())

    among_all = fused(QUERY, pool).candidates
    by_themselves = fused(QUERY, some[::-1]).candidates

    assert by_themselves == tuple(c for c in among_all if c.id in names(some))


@holds
@given(a_pool(), any_chain, places)
def test_only_pins_exceed_the_places(
    pool: list[Candidate], chain: Pipeline, k: int
) -> None:
    """At most k, or as many as are pinned."""
    selection = Pipeline((*chain.stages, TopK(k)))(PINNING, pool)

    pinned = [c for c in selection.candidates if c.pinned]
    assert len(selection.candidates) <= max(k, len(pinned))


@holds
@given(
    a_pool(),
    any_chain,
    st.integers(1, 40),
    st.sampled_from(["chars", "tokens", "tags"]),
)
def test_a_budget_is_never_exceeded(
    pool: list[Candidate], chain: Pipeline, at_most: int, kind: str
) -> None:
    """Only what is pinned may cost more, and then nothing else is bought."""
    budget: Stage = {
        "chars": CharBudget(at_most, "skip"),
        "tokens": TokenBudget(at_most),
        "tags": ReservedTokenBudget(at_most, {"Sleep": 0.4}),
    }[kind]

    selection = Pipeline((*chain.stages, budget))(PINNING, pool)

    def cost(kept: list[Candidate]) -> int:
        return sum(
            len(c.chunk.text) if kind == "chars" else c.chunk.token_len for c in kept
        )

    forced = cost([c for c in selection.candidates if c.pinned])
    assert cost(list(selection.candidates)) <= max(at_most, forced)


NEUTRAL = (
    RelevanceFloor(0.0),
    ScoreFloor(0.0),
    DenseFloor(0.0),
    MinSimilarity(0.0, "half"),
    MaxDistance(2.0),
    TopK(10**6),
    CharBudget(10**9),
    TokenBudget(10**9),
    DocumentLimit(10**6),
)


@holds
@given(a_pool(), any_chain, st.sampled_from(NEUTRAL), st.integers(0, 10))
def test_a_neutral_stage_changes_nothing(
    pool: list[Candidate], chain: Pipeline, neutral: Stage, place: int
) -> None:
    """A guardrail at its neutral value is as good as absent."""
    stages = list(chain.stages)
    stages.insert(len(ALL_SHIELDS) + len(WEIGHED) + place, neutral)

    with_it = Pipeline(tuple(stages))(PINNING, pool)

    assert with_it.candidates == chain(PINNING, pool).candidates


@settings(deadline=None, max_examples=20)
@given(a_pool(), any_chain)
def test_threads_do_not_change_the_record(
    pool: list[Candidate], chain: Pipeline
) -> None:
    """Eight at once give what one gives."""
    with ThreadPoolExecutor(4) as threads:
        records = set(threads.map(lambda _: as_bytes(chain(QUERY, pool)), range(8)))

    assert records == {as_bytes(chain(QUERY, pool))}


SCRIPT = """
import json
from kept.kernel.model import Query
from kept.kernel.presets import PRESETS, Parts
from kept.search.render import record_json
from kept.testing.tables import candidates

rows = "\\n".join(
    f"c{n} {n % 7 / 8} bm25={n % 5} relevance={n % 9 / 9} doc=d{n % 4} "
    f"ord={n % 3} label.Sleep={n % 4} tags=Sleep,Tired chunks={n % 4 + 1}"
    for n in range(40)
)
for preset in PRESETS.values():
    plan = preset.plan(preset.configure(), Parts(0.2, known_cosines=True), pins=True)
    query = Query(text="q", item="Sleep", pinned=frozenset({"c1", "c2", "zz"}))
    print(json.dumps(record_json(plan.pipeline(query, candidates(rows)))))
"""


def test_processes_and_hash_seeds_do_not_change_the_record() -> None:
    """The same bytes whatever PYTHONHASHSEED is."""
    records = {
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env={
                **os.environ,
                "PYTHONHASHSEED": seed,
                "PYTHONPATH": str(Path(__file__).parents[2] / "src"),
            },
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "4711")
    }

    assert len(records) == 1
    assert b"trim_top_n" in records.pop()


def test_equal_scores_are_ordered_by_chunk_id() -> None:
    """The order is total."""
    assert [c.id for c in ranked(candidates("b 0.5\na 0.5\nc 0.9"))] == ["c", "a", "b"]


def test_ties_at_both_ends_are_ordered_each_by_itself() -> None:
    """Ids decide within a tie and nowhere else."""
    pool = candidates("f 0.9\nb 0.1\ne 0.9\na 0.5\nd 0.1\nc 0.1\ng 0.9")

    assert [c.id for c in ranked(pool)] == ["e", "f", "g", "a", "b", "c", "d"]


def test_a_stage_that_is_none_is_not_there() -> None:
    """A disabled feature leaves no trace."""
    assert Pipeline.of(None, TopK(2), None) == Pipeline((TopK(2),))


def test_an_empty_pool_gives_an_empty_selection() -> None:
    """Every preset bears it."""
    for preset in PRESETS.values():
        plan = preset.plan(preset.configure(), Parts(0.1))

        selection = plan.pipeline(QUERY, ())

        assert selection.candidates == selection.dropped == ()


@dataclass(frozen=True)
class Faulty:
    """A stage that returns what a test gives it, correct or not."""

    name: ClassVar[str] = "faulty"

    keeps: tuple[Candidate, ...]
    decisions: tuple[Decision, ...] = ()

    def __call__(self, query: Query, pool: Pool) -> Outcome:
        """Return the given outcome."""
        return Outcome(Pool.of(self.keeps), decide=lambda: self.decisions)


A, B, P = candidates("a 0.9\nb 0.8\np 0.7 !")
[PINNED] = candidates("v 0.1 *")


def dropping(chunk_id: str, reason: str = "bad", **evidence: int) -> Decision:
    """Return a drop."""
    return Decision(chunk_id, Verdict.DROPPED, reason, evidence)


@pytest.mark.parametrize(
    ("rule", "pool", "stage"),
    [
        ("returned twice", (A,), Faulty((A, A))),
        ("vanished without a reason", (A, B), Faulty((A,))),
        ("both kept and dropped", (A,), Faulty((A,), (dropping("a"),))),
        ("dropped but never there", (A,), Faulty((A,), (dropping("z"),))),
        ("appeared without a reason", (A,), Faulty((A, B))),
        ("stripped of protection", (P,), Faulty((replace(P, protected=False),))),
        ("protected but dropped", (A, P), Faulty((A,), (dropping("p"),))),
        (
            "protected but dropped",
            (A, PINNED),
            Faulty((A,), (dropping("v", Reason.PROTECTED_OVERFLOW),)),
        ),
        (
            "protected but displaced",
            (A, P),
            Faulty((A,), (dropping("p", Reason.PROTECTED_OVERFLOW),)),
        ),
        (
            "protected but displaced",
            (A, P),
            Faulty(
                (A,),
                (dropping("p", Reason.PROTECTED_OVERFLOW, cost=1, used=1, at_most=2),),
            ),
        ),
    ],
)
def test_a_broken_promise_raises(
    rule: str, pool: tuple[Candidate, ...], stage: Faulty
) -> None:
    """Every arrival and departure is accounted for, or the query fails."""
    with pytest.raises(InvariantViolation, match=f"faulty: {rule}"):
        Pipeline.of(stage)(QUERY, pool)


@dataclass(frozen=True)
class Undecided:
    """A stage that hands the pool back and says that it dropped some of it."""

    name: ClassVar[str] = "undecided"

    def __call__(self, query: Query, pool: Pool) -> Outcome:
        """Keep and drop the same candidate."""
        return Outcome(pool, decide=lambda: [dropping(pool[0].id)])


@pytest.mark.parametrize("stage", [Fuse(), TopK(1)], ids=["scores", "drops"])
def test_a_pool_that_holds_a_chunk_twice_is_refused(stage: Fuse | TopK) -> None:
    """The fast check is not used where two candidates share an id."""
    signals = {"cosine": 0.5, "bm25": 1.0, "in_dense": 1.0, "in_keyword": 1.0}
    pool = [replace(one, signals=signals) for one in (A, A, B)]

    with pytest.raises(InvariantViolation, match=r"twice|kept and dropped"):
        Pipeline.of(stage)(QUERY, pool)


@dataclass(frozen=True)
class Forgetful:
    """A stage that has something else than an outcome to give."""

    name: ClassVar[str] = "forgetful"

    gives: Any

    def __call__(self, query: Query, pool: Pool) -> Outcome:
        """Return whatever there is."""
        outcome: Outcome = self.gives
        return outcome


@pytest.mark.parametrize("gives", [None, [A], (A, B)])
def test_a_stage_that_returns_no_outcome_is_named(gives: object) -> None:
    """The error names the stage that returned nothing."""
    said = f"forgetful: returned {type(gives).__name__} where an Outcome is expected$"

    with pytest.raises(InvariantViolation, match=said):
        Pipeline.of(Forgetful(gives))(QUERY, (A, B))


def test_an_untouched_pool_with_decisions_is_checked_too() -> None:
    """The shortcut for stages that do nothing is not a way around the check."""
    with pytest.raises(InvariantViolation, match="both kept and dropped: a"):
        Pipeline.of(Undecided())(QUERY, (A, B))


def test_a_stage_may_bring_candidates_if_it_says_so() -> None:
    """What is added counts on its side of the sum."""
    added = Decision("b", Verdict.ADDED, "found elsewhere")

    selection = Pipeline.of(Faulty((A, B), (added,)))(QUERY, (A,))

    assert (selection.recalled, selection.added) == (1, 1)


def test_in_production_a_dropped_near_match_is_put_back(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    """With on_violation=log the candidate returns as spared and it is logged."""
    stage = Faulty((A,), (dropping("p", found=1),))

    with pytest.raises(ProtectedCandidateDropped) as violation:
        Pipeline.of(stage)(QUERY, (A, P))
    selection = Pipeline((stage,), on_violation="log")(QUERY, (A, P))

    assert violation.value.chunk_ids == {"p"}
    assert names(selection.candidates) == {"a", "p"}
    assert [(d.chunk_id, d.verdict) for d in selection.decisions()] == [
        ("p", Verdict.SPARED)
    ]
    said = "".join(capsys.readouterr()) + caplog.text
    assert "protected candidate dropped" in said.replace("_", " ")


def test_any_other_broken_promise_raises_in_production_too() -> None:
    """A candidate that vanishes cannot be explained away."""
    with pytest.raises(InvariantViolation, match="vanished"):
        Pipeline((Faulty((A,)),), on_violation="log")(QUERY, (A, B))
