"""Keyword matches: what a passage holds of a question, whatever is stored beside it."""

from collections.abc import Callable
from itertools import count

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kept.knowledge_base.base import KnowledgeBase
from kept.stores.sqlite.doctor import rebuild

Make = Callable[..., KnowledgeBase]
PASSAGE = "Warranty policies inquiries: Ulla Berg"
QUESTION = "who answers inquiries about warranty policies"
ENGLISH = "The warranty of the pump covers two years of use and all of its parts."
SHORT = ("Warranties", "Policies inquiry Garantie")

names = count()
WORDS = """
    policy policies policed warranty warranties inquiry café cafe résumé the of und der
    les Garantien Häuser Haus KeywordIndex keyword index
"""
words = st.sampled_from(WORDS.split())
texts = st.lists(words, min_size=1, max_size=8).map(" ".join)


def signal(base: KnowledgeBase, question: str, text: str, name: str) -> float:
    """Return one signal of the passage with a text, 0.0 where it was not recalled."""
    selection = base.search(question, k=5).selection
    found = (*selection.candidates, *selection.dropped)
    return next((c.signal(name) for c in found if c.chunk.text == text), 0.0)


def test_a_passage_of_names_and_nouns_is_found_by_its_words(
    base: KnowledgeBase,
) -> None:
    """A line without a function word has no language, and is found all the same."""
    base.add(PASSAGE)

    assert signal(base, QUESTION, PASSAGE, "bm25") > 0
    assert signal(base, "inquiry about a warranty policy", PASSAGE, "coverage") == 1.0


@pytest.mark.parametrize("question", ["warranty policy", "pump warranties"])
def test_short_documents_take_no_match_from_an_english_passage(
    base: KnowledgeBase, question: str
) -> None:
    """The English passage has the stem, the short ones have the words as written."""
    base.add(ENGLISH)
    before = signal(base, question, ENGLISH, "bm25")
    for short in SHORT:
        base.add(short)

    assert before > 0
    assert signal(base, question, ENGLISH, "bm25") > 0


@settings(
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(texts, texts, st.lists(texts, max_size=4))
def test_adding_documents_never_takes_a_match_away(
    make_base: Make, question: str, text: str, others: list[str]
) -> None:
    """A word that a passage covers is covered whatever else comes in."""
    base = make_base(f"more-{next(names)}", preset="near_match")
    base.add(text)
    before = signal(base, question, text, "coverage") > 0
    for other in others:
        base.add(other)

    assert not before or signal(base, question, text, "coverage") > 0


def test_an_exact_form_counts_for_more_than_a_folded_one(base: KnowledgeBase) -> None:
    """The word "cafe" finds "café", after the text that says "cafe"."""
    exact = "The cafe of the harbour opens at eight."
    folded = "Visitors of the café leave before seven."
    base.add(exact)
    base.add(folded)

    strengths = [signal(base, "cafe", text, "bm25") for text in (exact, folded)]

    assert strengths[0] > strengths[1] > 0
    assert signal(base, "cafe", folded, "coverage") == 1.0


def test_terms_of_an_older_analysis_are_made_again_when_a_store_opens(
    make_base: Make,
) -> None:
    """An index from before is rebuilt without a command, and gives the same bytes."""
    base = make_base("old")
    base.add(PASSAGE)
    base.add(ENGLISH)
    expected = base.search(QUESTION).selection
    with base.store.database.writing() as connection:
        connection.execute("UPDATE meta SET value = '1-0' WHERE key = 'analysis'")
        connection.execute("UPDATE chunks SET terms = x'', length = 0")
    rebuild(base.store)
    assert signal(base, QUESTION, PASSAGE, "bm25") == 0.0
    base.close()

    again = make_base("old")

    assert again.search(QUESTION).selection == expected
    assert again.store.examine(repair=False) == []
