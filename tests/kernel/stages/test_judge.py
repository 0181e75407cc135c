"""Judgement: only what is accepted goes on, and nothing fails open."""

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from kept.errors import BackendError, LLMResponseParseError, SettingsError
from kept.kernel.model import Candidate, Query
from kept.kernel.pipeline import Pipeline
from kept.kernel.ports import Opinion
from kept.kernel.stages import AcceptedCap, AskJudge
from kept.testing.tables import ScriptedJudge, candidates, decisions_in, ids

QUERY = Query(text="q")


@dataclass(frozen=True)
class FixedJudge:
    """Returns the opinions it was given, whatever is asked."""

    opinions: tuple[Opinion, ...]

    def review(
        self, query: Query, candidates: Sequence[Candidate]
    ) -> Sequence[Opinion]:
        """Return the given opinions."""
        return self.opinions


@dataclass(frozen=True)
class BrokenJudge:
    """Cannot be reached."""

    def review(
        self, query: Query, candidates: Sequence[Candidate]
    ) -> Sequence[Opinion]:
        """Fail."""
        msg = "no route to the judge"
        raise ConnectionError(msg)


def test_only_the_accepted_go_on() -> None:
    """Spec 36: "Include only `accept` references in the few-shot prompt".

    "`unsure` is a first-class validator output and is treated like reject (filtered
    out)." Protection is no way around the judge; only a pinned candidate stays.
    """
    reject, unsure = Opinion.REJECT, Opinion.UNSURE
    judge = FixedJudge((Opinion.ACCEPT, reject, unsure, reject, unsure, reject))
    pool = candidates("a 0.9\nb 0.8\nc 0.7\nd 0.6 !\ne 0.5 !\nf 0.4 *")
    rejected = {"opinion": "reject", "needed": "accept"}
    unknown = {"opinion": "unsure", "needed": "accept"}

    outcome = AskJudge(judge)(QUERY, pool)
    selection = Pipeline.of(AskJudge(judge))(QUERY, pool)

    assert sorted(ids(outcome)) == ["a", "f"]
    assert {c.id for c in selection.candidates} == {"a", "f"}
    assert sorted(decisions_in(outcome)) == [
        ("b", "dropped", "judge_rejected", rejected),
        ("c", "dropped", "judge_unsure", unknown),
        ("d", "dropped", "judge_rejected", {**rejected, "protected": True}),
        ("e", "dropped", "judge_unsure", {**unknown, "protected": True}),
        ("f", "spared", "judge_rejected", {**rejected, "protected": True}),
    ]


def test_an_empty_pool_is_not_judged() -> None:
    """A judge that would fail is not asked."""
    assert AskJudge(BrokenJudge())(QUERY, candidates("")).kept == ()


def test_a_judge_that_fails_fails_the_query() -> None:
    """The error keeps its type."""
    with pytest.raises(ConnectionError, match="no route"):
        AskJudge(BrokenJudge())(QUERY, candidates("a 0.9"))


def test_too_few_opinions_are_an_error() -> None:
    """No candidate goes on because the judge forgot it."""
    with pytest.raises(BackendError, match="returned 1 opinions for 2 candidates"):
        AskJudge(FixedJudge((Opinion.ACCEPT,)))(QUERY, candidates("a 0.9\nb 0.8"))


def test_an_unknown_opinion_is_an_error() -> None:
    """Neither accept nor reject is no opinion."""
    judge = FixedJudge(("perhaps",))  # type: ignore[arg-type]  # what a careless adapter returns

    with pytest.raises(LLMResponseParseError, match="perhaps"):
        AskJudge(judge)(QUERY, candidates("a 0.9"))


def test_at_most_so_many_accepted_go_on() -> None:
    """The best of them, in order."""
    accepted = AskJudge(ScriptedJudge(frozenset("abc")))(
        QUERY, candidates("a 0.9\nb 0.8\nc 0.7")
    ).pool

    outcome = AcceptedCap(2)(QUERY, accepted)

    assert ids(outcome) == ["a", "b"]
    assert decisions_in(outcome) == [
        ("c", "dropped", "accepted_cap", {"place": 3, "at_most": 2})
    ]


def test_a_cap_of_none_is_refused() -> None:
    """At least one."""
    with pytest.raises(SettingsError, match="accepted_cap: at_most is 0"):
        AcceptedCap(0)
