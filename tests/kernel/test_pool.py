"""The pool: columns instead of candidates, with the same results."""

import pickle
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest

from kept.errors import InvariantViolation, MissingSignalError
from kept.kernel.model import Candidate, Query
from kept.kernel.outcome import NO_ROWS, Outcome
from kept.kernel.pipeline import Pipeline
from kept.kernel.pool import Pool, Roll
from kept.kernel.presets import PRESETS, Parts
from kept.kernel.record import Decision, Selection, Step, Verdict
from kept.kernel.stages import Fuse, OpportunisticRerank, RelevanceReranker, TopK
from kept.testing.tables import candidates

QUERY = Query(text="how much is it", item="Sleep")
ROWS = candidates(
    "\n".join(
        f"c{n:02} {n % 7 / 8} bm25={n % 5} relevance={n % 9 / 9} doc=d{n % 4} "
        f"ord={n % 3} label.Sleep={n % 4} tags=Sleep chunks={n % 4 + 1}"
        for n in range(40)
    )
).candidates


def recalled(pool: tuple[Candidate, ...]) -> Pool:
    """Return candidates as a shelf does: columns, with no object built yet."""
    names = tuple(pool[0].signals)
    columns = {name: np.array([c.signals[name] for c in pool]) for name in names}
    return Pool.on(Roll(pool, np.array([c.score for c in pool]), columns, [None] * 40))


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_what_a_shelf_recalls_is_chosen_from_like_any_candidates(name: str) -> None:
    """Columns that were handed over are as good as columns that were read."""
    preset = PRESETS[name]
    chain = preset.plan(preset.configure(), Parts(0.2, known_cosines=True)).pipeline

    assert chain(QUERY, recalled(ROWS)) == chain(QUERY, ROWS)


def test_what_is_made_later_is_a_tuple_like_any_other() -> None:
    """Equality, hashing of steps, pickling and replacing see no difference."""
    selection = Pipeline.of(Fuse(), TopK(3))(QUERY, ROWS)
    copy = pickle.loads(pickle.dumps(selection))  # noqa: S301 -- our own bytes

    assert type(selection.dropped) is tuple
    assert type(selection.trace[1].decisions) is tuple
    assert len(selection.dropped) == 37
    assert selection.dropped is selection.dropped
    assert (
        copy
        == selection
        == Selection(selection.candidates, selection.dropped, selection.trace)
    )
    assert replace(selection.trace[1], before=1).decisions[0].reason == "trim_top_n"


def test_a_record_has_no_other_attributes() -> None:
    """Only what is put off is made on demand."""
    step = Step("top_k", 2, 1)

    assert step.decisions == ()
    assert not hasattr(step, "evidence")
    with pytest.raises(AttributeError, match="'Step' object has no attribute 'x'"):
        step.x  # type: ignore[attr-defined]  # noqa: B018 -- it is not there


def test_a_stage_that_overrides_another_is_called() -> None:
    """A subclass that replaces `__call__` is called, and checked in full."""

    @dataclass(frozen=True)
    class Loud(TopK):
        def __call__(self, query: Query, pool: Pool) -> Outcome:
            return Outcome(pool, facts={"heard": True})

    selection = Pipeline.of(Loud(1))(QUERY, ROWS)

    assert selection.trace[0].facts == {"heard": True}
    assert len(selection.candidates) == 40


@dataclass(frozen=True)
class Forgetful:
    """A stage that loses *count* rows on the way."""

    name: ClassVar[str] = "forgetful"

    count: int
    decided: bool = False

    def __call__(self, query: Query, pool: Pool) -> Outcome:
        """Keep fewer than there were."""
        gone = pool.rows[: self.count]
        ids = [pool.roll.ids[row] for row in gone.tolist()]
        return Outcome(
            pool.keeping(pool.rows[self.count :]),
            gone if self.decided else NO_ROWS,
            lambda: [
                Decision(id_, Verdict.DROPPED, "why") for id_ in ids * self.decided
            ],
        )


def test_a_stage_that_weighs_is_checked_too() -> None:
    """No candidate vanishes without a reason, and no protected one at all."""
    shielded = tuple(replace(c, protected=c.id == "c13") for c in ROWS)

    assert len(Pipeline.of(Forgetful(2, decided=True))(QUERY, ROWS).dropped) == 2
    with pytest.raises(InvariantViolation, match="vanished without a reason"):
        Pipeline.of(Forgetful(2))(QUERY, ROWS)
    with pytest.raises(InvariantViolation, match="protected but dropped: c13"):
        Pipeline.of(Forgetful(9, decided=True))(QUERY, shielded)


def test_a_signal_that_some_lack_is_read_of_those_who_have_it() -> None:
    """The first who lacks it is named, with what it has."""
    rerank = OpportunisticRerank(RelevanceReranker(), 0.0, 1.0, 2, "relevance")
    pool = rerank(QUERY, Fuse()(QUERY, Pool.of(ROWS)).pool).pool

    assert pool[:2].readings("rerank").tolist() == [
        c.signals["rerank"] for c in pool[:2]
    ]
    assert pool.reading(int(pool.rows[2]), "rerank", -1.0) == -1.0
    with pytest.raises(MissingSignalError, match="chunk c02 has no signal 'rerank'"):
        pool.readings("rerank")
    with pytest.raises(MissingSignalError, match="chunk c00 has no signal 'mood'"):
        pool.readings("mood")
    assert not pool.holds("mood")


def test_a_pool_is_a_sequence_of_its_candidates() -> None:
    """It has their length, order and equality."""
    pool = Pool.of(ROWS)

    assert pool.candidates is ROWS
    assert (len(pool), pool[1], tuple(pool[1:3])) == (40, ROWS[1], ROWS[1:3])
    assert pool == ROWS
    assert pool == recalled(ROWS)
    assert pool != ROWS[1:]
