"""Budgets: characters and tokens."""

import pytest

from kept.errors import SettingsError
from kept.kernel.model import Query
from kept.kernel.pipeline import Pipeline
from kept.kernel.stages import CharBudget, ReservedTokenBudget, TokenBudget
from kept.testing.tables import candidates, decisions_in, ids

QUERY = Query(text="q")


def test_first_that_does_not_fit_ends_the_list() -> None:
    """A short candidate below a long one does not slip in."""
    pool = candidates("""
        a 0.9 text=12345
        b 0.8 text=1234567
        c 0.7 text=1
    """)

    outcome = CharBudget(at_most=6)(QUERY, pool)

    assert ids(outcome) == ["a"]
    assert decisions_in(outcome) == [
        ("b", "dropped", "char_budget", {"cost": 7, "used": 5, "at_most": 6}),
        (
            "c",
            "dropped",
            "char_budget",
            {"cost": 1, "used": 5, "at_most": 6, "ended_by": "b"},
        ),
    ]
    assert outcome.facts == {"used": 5}


def test_in_skip_mode_a_later_shorter_one_gets_in() -> None:
    """What does not fit is passed over."""
    pool = candidates("a 0.9 text=12345\nb 0.8 text=1234567\nc 0.7 text=1")

    outcome = CharBudget(at_most=6, mode="skip")(QUERY, pool)

    assert ids(outcome) == ["a", "c"]
    assert outcome.facts == {"used": 6}


def test_a_budget_can_be_spent_to_the_last_character() -> None:
    """Exactly full is not over."""
    pool = candidates("a 0.9 text=123\nb 0.8 text=456")

    assert CharBudget(at_most=6)(QUERY, pool).pool is pool


def test_the_cost_is_the_length_of_the_text_in_characters() -> None:
    """Not in bytes."""
    assert CharBudget(2)(QUERY, candidates("a 0.9 text=日本")).facts == {"used": 2}


def test_the_protected_are_served_first() -> None:
    """A weak protected candidate is bought before a strong other one."""
    pool = candidates("a 0.9 text=1234\nb 0.1 ! text=1234")

    assert ids(CharBudget(at_most=6)(QUERY, pool)) == ["b"]


def test_by_score_the_strongest_of_the_protected_is_served_first() -> None:
    """Not the nearest, as otherwise."""
    pool = candidates("""
        a 0.9 ! distance=0.09 text=1234
        b 0.5 ! distance=0.01 text=1234
    """)

    assert ids(CharBudget(at_most=6)(QUERY, pool)) == ["b"]
    assert ids(CharBudget(at_most=6, by="score")(QUERY, pool)) == ["a"]


def test_a_protected_candidate_that_does_not_fit_overflows() -> None:
    """In skip mode the unprotected may still use what is left."""
    pool = candidates("""
        a 0.9 ! text=1234567
        b 0.8 text=123
    """)

    selection = Pipeline.of(CharBudget(5, "skip"))(QUERY, pool)

    assert [c.id for c in selection.candidates] == ["b"]
    assert [d.reason for d in selection.decisions()] == ["protected_overflow"]


def test_in_stop_mode_a_protected_overflow_ends_the_list_for_all() -> None:
    """The exact few-shot rule knows no exception."""
    pool = candidates("a 0.9 ! text=1234567\nb 0.8 text=123")

    selection = Pipeline.of(CharBudget(5))(QUERY, pool)

    assert selection.candidates == ()
    assert {d.chunk_id: d.reason for d in selection.decisions()} == {
        "a": "protected_overflow",
        "b": "char_budget",
    }


def test_tokens_are_counted_like_characters() -> None:
    """The budget is on token_len."""
    pool = candidates("a 0.9 tokens=60\nb 0.8 tokens=50\nc 0.7 tokens=40")

    assert ids(TokenBudget(100)(QUERY, pool)) == ["a"]
    assert ids(TokenBudget(100, "skip")(QUERY, pool)) == ["a", "c"]


def test_a_reserved_share_is_kept_for_its_tag() -> None:
    """A better untagged chunk cannot spend what is set aside."""
    pool = candidates("""
        a 0.9 tokens=60
        b 0.8 tokens=20
        c 0.1 tokens=30 tags=budget
    """)

    outcome = ReservedTokenBudget(100, {"budget": 0.3})(QUERY, pool)

    assert ids(outcome) == ["a", "c"]
    assert decisions_in(outcome) == [
        (
            "b",
            "dropped",
            "token_budget",
            {"cost": 20, "used": 90, "at_most": 100, "open_to_it": 10},
        )
    ]


def test_a_tagged_chunk_draws_on_its_share_and_then_on_the_rest() -> None:
    """The share is a guarantee, not a ceiling."""
    pool = candidates("a 0.9 tokens=50 tags=budget\nb 0.8 tokens=50")

    assert ids(ReservedTokenBudget(100, {"budget": 0.3})(QUERY, pool)) == ["a", "b"]


def test_an_unused_share_is_released() -> None:
    """The best that was passed over gets it."""
    pool = candidates("a 0.9 tokens=60\nb 0.8 tokens=40")

    outcome = ReservedTokenBudget(100, {"budget": 0.5})(QUERY, pool)

    assert ids(outcome) == ["a", "b"]
    assert outcome.facts == {"used": 100}


def test_the_protected_may_spend_what_is_reserved() -> None:
    """A near match comes before a share; one too large overflows; pins stay."""
    pool = candidates("""
        a 0.95 ! tokens=90
        b 0.94 ! tokens=90
        c 0.90 tokens=10 tags=budget
        d 0.10 * tokens=1
    """)

    selection = Pipeline.of(ReservedTokenBudget(101, {"budget": 0.3}))(QUERY, pool)

    assert {c.id for c in selection.candidates} == {"a", "c", "d"}
    assert [d.reason for d in selection.decisions()] == ["protected_overflow"]


def test_a_share_is_not_kept_from_a_near_match_for_its_tag() -> None:
    """Where both do not fit, the near match is bought and the tag goes without."""
    pool = candidates("""
        near   0.95 ! tokens=60
        tagged 0.90 tokens=50 tags=budget
    """)

    outcome = ReservedTokenBudget(100, {"budget": 0.5})(QUERY, pool)

    assert ids(outcome) == ["near"]
    assert decisions_in(outcome)[0][:3] == ("tagged", "dropped", "token_budget")


def test_a_pin_beyond_the_reserved_budget_stays_and_is_recorded() -> None:
    """Pinned is pinned."""
    pool = candidates("a 0.9 * tokens=200")

    outcome = ReservedTokenBudget(100, {"budget": 0.3})(QUERY, pool)

    assert ids(outcome) == ["a"]
    assert decisions_in(outcome)[0][:3] == ("a", "spared", "token_budget")


def test_impossible_budgets_are_refused() -> None:
    """A budget is at least 1, and shares add up to at most 1."""
    for budget in (0, -5):
        with pytest.raises(SettingsError, match=f"at_most is {budget}"):
            CharBudget(budget)
        with pytest.raises(SettingsError, match=f"at_most is {budget}"):
            TokenBudget(budget)
    with pytest.raises(SettingsError, match=r"shares\['a'\] is 1\.5"):
        ReservedTokenBudget(10, {"a": 1.5})
    with pytest.raises(SettingsError, match=r"add up to 1\.2"):
        ReservedTokenBudget(10, {"a": 0.6, "b": 0.6})


def test_a_reserved_share_is_not_rounded_away() -> None:
    """57 % of 100 tokens are 57, though the product of floats is a hair less."""
    pool = candidates("""
        a 0.9 tokens=44
        b 0.8 tokens=57 tags=budget
    """)

    outcome = ReservedTokenBudget(100, {"budget": 0.57})(QUERY, pool)

    assert ids(outcome) == ["b"]
