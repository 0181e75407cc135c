"""The near-match document's case with real embeddings: 0.09, and lost no more."""

from collections.abc import Callable

import pytest

from kept.knowledge_base.base import KnowledgeBase
from kept.search.retrieve import Found

pytestmark = pytest.mark.model

Make = Callable[..., KnowledgeBase]
TARGET = "Harbor Foods acquired Alder Bakery on 14 March 2024 for 62 million euro."
QUESTION = "Harbor Foods acquired Alder Bakery on which date in March 2024?"
OTHERS = [
    "Harbor Foods acquired two bakeries in the north and closed a third.",
    "Alder Bakery opened its first shop in March and sold rye bread.",
    "Harbor Foods reported sales of 410 million euro for the year 2024.",
    "The acquisition of a bakery takes about three months to close.",
    "Bakeries were acquired in every region that Harbor Foods serves.",
    "In March 2024 the price of wheat rose by two per cent.",
]
UNPROTECTED = {
    "PROTECTION_ENABLE": "false",
    "SPARSE_RECALL_ENABLE": "false",
    "SOFT_SCORE_LIMIT": "0.15",
}


@pytest.fixture
def base(make_base: Make) -> KnowledgeBase:
    """Return a knowledge base where the right chunk has every attribute against it."""
    base = make_base("near", preset="near_match", embedder="minilm")
    base.add(TARGET, authority="low", confidence=0.0, time_horizon="long_term")
    for text in OTHERS:
        base.add(text, authority="high", confidence=1.0, time_horizon="current")
    return base


def asked(base: KnowledgeBase, monkeypatch: pytest.MonkeyPatch, **flags: str) -> Found:
    """Search with the retriever's own variables set."""
    for name, value in flags.items():
        monkeypatch.setenv(f"AI_RETRIEVER_{name}", value)
    return base.search(QUESTION, k=3)


def test_without_protection_the_near_match_is_lost(
    base: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Problem: a distance of about 0.09 is dropped by penalties and the soft limit."""
    found = asked(base, monkeypatch, **UNPROTECTED)

    assert TARGET not in [c.chunk.text for c in found.selection.candidates]
    [lost] = [c for c in found.selection.dropped if c.chunk.text == TARGET]
    [(stage, decision)] = found.selection.explain(lost.id)
    assert lost.signals["distance"] == pytest.approx(0.0937, abs=0.005)
    assert (stage, decision.reason) == ("soft_score_limit", "soft_score_limit")


def test_the_previously_missed_chunk_appears_in_the_retrieved_set(
    base: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Done: the previously missed 0.0937 chunk appears in the retrieved set."""
    found = asked(base, monkeypatch, SOFT_SCORE_LIMIT="0.15")

    best = found.selection.candidates[0]
    assert best.chunk.text == TARGET
    assert best.protected
    assert ("protect_near_matches", "near_match") in [
        (stage, decision.reason) for stage, decision in found.selection.explain(best.id)
    ]


def test_the_trace_shows_exactly_why_it_was_lost(
    base: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Deliverable: a trace shows exactly why the 0.0937 candidate was not retrieved.

    A low authority costs 0.012, no confidence in the document 0.0975 and a long
    horizon 0.005: with the distance, more than the soft limit.
    """
    found = asked(base, monkeypatch, **UNPROTECTED)

    [lost] = [c for c in found.selection.dropped if c.chunk.text == TARGET]
    [(_, decision)] = found.selection.explain(lost.id)
    composite = round(0.60 * lost.signals["distance"] + 0.1145, 9)
    assert lost.signals["penalty"] == pytest.approx(0.1145)
    assert decision.evidence == {"composite": composite, "at_most": 0.15}
    assert composite > 0.15


def test_without_near_matches_the_ranking_is_unchanged(
    base: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regression safety: queries with no near match keep their behaviour."""
    question = "how long does it take to buy a company"
    with_protection = base.search(question).selection.candidates

    monkeypatch.setenv("AI_RETRIEVER_PROTECTION_ENABLE", "false")

    assert base.search(question).selection.candidates == with_protection
