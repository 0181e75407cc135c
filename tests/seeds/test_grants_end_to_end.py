"""The grants document's own tests, through the whole product."""

import os
from collections.abc import Callable

import pytest

from kept.knowledge_base.base import KnowledgeBase
from kept.knowledge_base.wiring import embedder_of
from kept.models.embedders.hash import HashEmbedder

Make = Callable[..., KnowledgeBase]
CALL = (
    "The regional water fund supports small utilities that replace lead pipes. "
    "Applicants describe the network, the number of households and the schedule. "
    "The fund pays up to sixty per cent of the eligible costs.\n\n"
) * 6


@pytest.fixture
def grants(make_base: Make) -> KnowledgeBase:
    return make_base("grants", preset="grants")


def test_embeddings_are_persisted_and_retrievable(make_base: Make) -> None:
    """Test group 1: embeddings persisted & retrievable."""
    make_base("grants", preset="grants").add(CALL, type="template", title="Water")

    again = make_base("grants", preset="grants")

    found = again.search("eligible costs of lead pipes")
    assert found.selection.candidates
    [vector] = HashEmbedder().embed(["x"])
    assert found.selection.candidates[0].vector.shape == vector.shape


def test_an_exact_duplicate_is_skipped(grants: KnowledgeBase) -> None:
    """Test group 2: exact duplicate skipped."""
    [first] = grants.add(CALL, source_uri="a")

    [second] = grants.add(CALL, source_uri="b")

    assert (second.status, second.rule) == ("reused", "exact")
    assert second.canonical_id == first.document_id
    assert len(grants.store.documents("default")) == 1


def test_the_order_is_cosine_then_chunk_id(grants: KnowledgeBase) -> None:
    """Test group 2: deterministic order, score descending, then chunk id."""
    for number in range(6):
        text = "Lead pipes are replaced with copper."
        grants.add(text, type=f"t{number}", source_uri=str(number))

    found = grants.search("copper pipes for lead", k=6).selection.candidates

    keys = [(-c.signals["cosine"], c.id) for c in found]
    assert keys == sorted(keys)
    assert len({c.signals["cosine"] for c in found}) == 1
    assert [
        c.id for c in grants.search("copper pipes for lead", k=6).selection.candidates
    ] == [c.id for c in found]


def test_a_near_duplicate_with_minor_text_appended_is_reused(
    grants: KnowledgeBase,
) -> None:
    """Test group 3: near duplicate reuse (append minor text)."""
    grants.add(CALL, source_uri="a")

    [receipt] = grants.add(CALL + " Impact.", source_uri="b")

    assert (receipt.status, receipt.rule) == ("reused", "prefix")


def test_a_dissimilar_text_creates_a_new_document(grants: KnowledgeBase) -> None:
    """Test group 3: dissimilar creates new."""
    grants.add(CALL, source_uri="a")

    [receipt] = grants.add(
        "Museums lend paintings to schools for a year.", source_uri="b"
    )

    assert receipt.status == "created"


def test_a_threshold_of_one_leaves_only_the_exact_check(
    make_base: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RAG_SIMILARITY_THRESHOLD=1.0 disables similarity dedupe, under hash too.

    In the original the hash backend lowered the threshold to 0.90 afterwards, so
    1.0 did not switch it off.
    """
    monkeypatch.setenv("RAG_SIMILARITY_THRESHOLD", "1.0")
    base = make_base("off", preset="grants")
    base.add(CALL, source_uri="a")

    near = base.add(CALL + " Impact.", source_uri="b")[0]
    exact = base.add(CALL, source_uri="c")[0]

    assert (near.status, exact.rule) == ("created", "exact")


def test_only_the_200_newest_of_a_type_are_compared(make_base: Make) -> None:
    """The document's scan is the preset's; the default finds candidates anywhere."""
    text = "The oldest note tells of a bridge over the river Aire near Leeds."
    statuses = {}
    for name in ("grants", "default"):
        base = make_base(name, preset=name)
        base.add(text, source_uri="first")
        for number in range(200):
            base.add(
                f"w{number} x{number * 7} y{number * 13} z{number * 29}",
                source_uri=f"{number}",
            )
        statuses[name] = base.add(text + " So.", source_uri="again")[0].status

    assert statuses == {"grants": "created", "default": "reused"}


def test_a_shared_first_chunk_is_not_a_shared_document(grants: KnowledgeBase) -> None:
    """The original reused on the first chunk alone and lost the second remainder."""
    one = CALL + "Annex on wells. " * 80
    two = CALL + "Annex on harbours. " * 80

    receipts = [grants.add(one, source_uri="a")[0], grants.add(two, source_uri="b")[0]]

    assert [r.status for r in receipts] == ["created", "created"]
    assert receipts[1].evidence["near_misses"][0]["rule"] == "prefix"
    found = grants.search("annex on harbours", k=1).selection.candidates
    assert "harbours" in found[0].chunk.text


def test_the_backend_is_chosen_by_the_documents_own_variable(
    make_base: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """EMBEDDINGS_BACKEND (hash|minilm) works for the grants preset."""
    monkeypatch.setitem(os.environ, "EMBEDDINGS_BACKEND", "hash")

    grants = make_base("a", preset="grants", embedder="minilm")
    default = make_base("b", preset="default", embedder="minilm")

    assert embedder_of(grants.settings).id.startswith("hash")
    assert embedder_of(default.settings).id.startswith("minilm")


def test_the_token_budget_holds(
    make_base: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cumulative token_len of the chunks stays within the requested limit."""
    monkeypatch.setenv("RAG_TOKEN_BUDGET", "120")
    base = make_base("budget", preset="grants")
    for number in range(8):
        base.add(f"Lead pipes in district {number}. " * 8, source_uri=str(number))

    chosen = base.search("lead pipes in the district").selection.candidates

    assert chosen
    assert sum(c.chunk.token_len for c in chosen) <= 120
