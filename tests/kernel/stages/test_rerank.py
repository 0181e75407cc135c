"""Rerank: when it runs, and what it does to the order."""

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from kept.errors import BackendError, SettingsError
from kept.kernel.model import Candidate, Query
from kept.kernel.pipeline import Pipeline
from kept.kernel.stages import OpportunisticRerank, RelevanceReranker
from kept.testing.tables import candidates

QUERY = Query(text="q")


@dataclass(frozen=True)
class FixedReranker:
    """Returns the scores it was given, whatever is asked."""

    given: tuple[float, ...]
    id: str = "fixed"

    def scores(self, query: Query, candidates: Sequence[Candidate]) -> Sequence[float]:
        """Return the given scores."""
        return self.given


@pytest.mark.parametrize(
    ("best", "ran", "why_not"),
    [
        (0.4499, False, "below the band"),
        (0.45, True, None),
        (0.59, True, None),
        (0.60, False, "above the band"),
    ],
)
def test_it_runs_only_in_the_band(
    best: float,
    ran: bool,  # noqa: FBT001 -- a column of the table
    why_not: str | None,
) -> None:
    """The band is [0.45, 0.60): the lower end belongs to it, the upper does not."""
    pool = candidates(f"a {best} fused={best}\nb 0.1 fused=0.1")

    facts = OpportunisticRerank(RelevanceReranker())(QUERY, pool).facts

    assert facts["ran"] is ran
    assert facts.get("why_not") == why_not
    assert (facts["best"], facts["at_least"], facts["below"]) == (best, 0.45, 0.60)


def test_an_empty_pool_is_not_reranked() -> None:
    """The reranker is not called without candidates."""
    facts = OpportunisticRerank(RelevanceReranker())(QUERY, candidates("")).facts

    assert (facts["ran"], facts["why_not"]) == (False, "no candidates")


def test_the_window_gets_new_scores_and_the_rest_follows_in_its_old_order() -> None:
    """Candidates beyond the window follow it; none is lost."""
    pool = candidates("""
        a 0.5 fused=0.50
        b 0.4 fused=0.40
        d 0.3 fused=0.30
        c 0.2 fused=0.20
    """)
    stage = OpportunisticRerank(FixedReranker((0.1, 0.9)), window=2)

    selection = Pipeline.of(stage)(QUERY, pool)

    assert [c.id for c in selection.candidates] == ["b", "a", "d", "c"]
    assert selection.candidates[0].signal("rerank") == 0.9
    assert "rerank" not in selection.candidates[2].signals
    assert selection.trace[0].facts["reranked"] == 2
    assert selection.trace[0].facts["reranker"] == "fixed"


def test_a_reranker_that_returns_too_few_scores_is_an_error() -> None:
    """A wrong length is not the old order."""
    stage = OpportunisticRerank(FixedReranker((0.5,)))

    with pytest.raises(BackendError, match="returned 1 scores for 2 candidates"):
        stage(QUERY, candidates("a 0.5 fused=0.5\nb 0.4 fused=0.4"))


def test_a_reranker_that_returns_no_number_is_an_error() -> None:
    """NaN has no place in an order."""
    stage = OpportunisticRerank(FixedReranker((float("nan"),)))

    with pytest.raises(BackendError, match="returned nan"):
        stage(QUERY, candidates("a 0.5 fused=0.5"))


def test_a_band_upside_down_is_refused() -> None:
    """The upper end cannot be less than the lower."""
    with pytest.raises(SettingsError, match=r"below is 0\.3; expected 0\.45 to 1"):
        OpportunisticRerank(RelevanceReranker(), below=0.3)


def test_the_offline_reranker_ranks_by_relevance() -> None:
    """It needs no model and has a name for the record."""
    reranker = RelevanceReranker()

    assert reranker.id == "relevance"
    assert reranker.scores(QUERY, candidates("a 0.5 relevance=0.7")) == [0.7]
