"""Limits: places, and who gets them."""

import pytest

from kept.errors import SettingsError
from kept.kernel.model import Query
from kept.kernel.pipeline import Pipeline
from kept.kernel.stages import ExcerptCap, OnePerDocument, PerIntentCap, TopK
from kept.kernel.stages.limit import asks_for_a_number
from kept.testing.tables import candidates, decisions_in, ids

QUERY = Query(text="q")


def test_the_protected_have_reserved_places() -> None:
    """A weak protected candidate takes the place of a strong other one."""
    outcome = TopK(2)(QUERY, candidates("a 0.9\nb 0.8\nc 0.1 !"))

    assert ids(outcome) == ["c", "a"]
    assert decisions_in(outcome) == [
        ("b", "dropped", "trim_top_n", {"place": 3, "at_most": 2})
    ]


def test_more_protected_than_places_keeps_the_nearest() -> None:
    """The rest leave as overflow, whatever their score."""
    pool = candidates("""
        a 0.99 ! distance=0.09
        b 0.50 ! distance=0.01
        c 0.40 ! distance=0.05
        d 0.95
    """)

    outcome = TopK(2)(QUERY, pool)

    assert ids(outcome) == ["b", "c"]
    assert decisions_in(outcome) == [
        ("a", "dropped", "protected_overflow", {"place": 3, "at_most": 2}),
        ("d", "dropped", "trim_top_n", {"place": 4, "at_most": 2}),
    ]


def test_by_score_more_protected_than_places_keeps_the_strongest() -> None:
    """Where all are near, the order that reads the words too decides who stays."""
    pool = candidates("""
        a 0.99 ! distance=0.09
        b 0.50 ! distance=0.01
        c 0.60 ! distance=0.05
        d 0.95
    """)

    outcome = TopK(2, by="score")(QUERY, pool)

    assert ids(outcome) == ["a", "c"]
    assert decisions_in(outcome) == [
        ("b", "dropped", "protected_overflow", {"place": 3, "at_most": 2}),
        ("d", "dropped", "trim_top_n", {"place": 4, "at_most": 2}),
    ]


def test_a_pool_that_fits_passes_untouched() -> None:
    """As many candidates as places."""
    pool = candidates("a 0.9\nb 0.8")

    assert TopK(2)(QUERY, pool).pool is pool


@pytest.mark.parametrize("k", [0, -1])
def test_no_places_at_all_is_refused(k: int) -> None:
    """There is at least one."""
    with pytest.raises(SettingsError, match=f"top_k: k is {k}; expected at least 1"):
        TopK(k)


@pytest.mark.parametrize(
    ("intent", "cap"),
    [("educational", 5), ("persuasive", 4), ("story", 6), ("unheard_of", 5)],
)
def test_each_intent_has_its_cap(intent: str, cap: int) -> None:
    """An intent without one has that of other."""
    pool = candidates("\n".join(f"c{n} {0.9 - n / 100}" for n in range(9)))

    outcome = PerIntentCap()(Query(text="q", intent=intent), pool)

    assert len(outcome.kept) == cap
    assert outcome.decisions[0].reason == "per_intent_cap"
    assert outcome.decisions[0].evidence["at_most"] == cap


def test_caps_need_one_for_other_intents() -> None:
    """And each is at least 1."""
    with pytest.raises(SettingsError, match="no 'other'"):
        PerIntentCap({"story": 1})
    with pytest.raises(SettingsError, match=r"caps\['other'\] is 0"):
        PerIntentCap({"other": 0})


def test_excerpts_are_capped_and_others_pass() -> None:
    """The third excerpt goes; what is none is not counted."""
    pool = candidates("""
        a 0.9 excerpt=yes
        b 0.8 excerpt=yes
        c 0.7 excerpt=yes
        d 0.6
    """)

    outcome = ExcerptCap(2)(QUERY, pool)

    assert ids(outcome) == ["a", "b", "d"]
    assert decisions_in(outcome) == [
        (
            "c",
            "dropped",
            "excerpt_cap",
            {"group": "excerpt", "place": 3, "at_most": 2},
        )
    ]


def test_a_protected_excerpt_passes_the_cap() -> None:
    """It is recorded as spared, so that bypasses can be counted."""
    pool = candidates("a 0.9 ! excerpt=yes\nb 0.8 ! excerpt=yes")

    outcome = ExcerptCap(1)(QUERY, pool)

    assert ids(outcome) == ["a", "b"]
    assert [(d.chunk_id, d.verdict) for d in outcome.decisions] == [("b", "spared")]


def test_without_the_bypass_a_protected_excerpt_overflows() -> None:
    """The nearest stay, others than excerpts are not touched, pins pass."""
    pool = candidates("""
        a 0.9 ! excerpt=yes
        b 0.8 ! excerpt=yes
        c 0.7
        d 0.1 * excerpt=yes
    """)

    selection = Pipeline.of(ExcerptCap(1, protected_bypass=False))(QUERY, pool)

    assert [c.id for c in selection.candidates] == ["c", "d"]
    assert {d.chunk_id: d.reason for d in selection.decisions()} == {
        "a": "protected_overflow",
        "b": "protected_overflow",
    }


def test_the_nearest_chunk_stands_for_its_document() -> None:
    """By distance, not by score."""
    pool = candidates("""
        a 0.9 distance=0.3 doc=one
        b 0.8 distance=0.2 doc=one
        c 0.7 doc=two
    """)

    outcome = OnePerDocument()(QUERY, pool)

    assert ids(outcome) == ["b", "c"]
    assert decisions_in(outcome) == [
        (
            "a",
            "dropped",
            "dedupe_ki",
            {
                "distance": 0.3,
                "elected": "b",
                "elected_distance": 0.2,
                "elected_role": None,
                "elected_protected": False,
            },
        )
    ]


def test_further_protected_chunks_of_a_document_are_spared() -> None:
    """Each of them is a near match of its own."""
    pool = candidates("a 0.95 ! doc=one\nb 0.94 ! doc=one\nc 0.99 doc=one")

    outcome = OnePerDocument()(QUERY, pool)

    assert ids(outcome) == ["a", "b"]
    assert [(d.chunk_id, d.verdict) for d in outcome.decisions] == [
        ("b", "spared"),
        ("c", "dropped"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "how much is the premium plan",
        "price of the basic tier",
        "is it more than $5",
        "growth above 20%",
        "at least 15 employees",
        "revenue in 2019",
        "what did it cost",
    ],
)
def test_questions_for_a_number_are_recognised(text: str) -> None:
    """Numbers, prices, shares and counts."""
    assert asks_for_a_number(text)


@pytest.mark.parametrize(
    "text",
    [
        *("what happened in 2019", "who founded the company", ""),
        *("the 1990s in music", "what does EBITDA mean"),
    ],
)
def test_a_bare_year_is_no_price(text: str) -> None:
    """A year names a time, not an amount."""
    assert not asks_for_a_number(text)
