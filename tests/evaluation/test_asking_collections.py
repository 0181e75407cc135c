"""What is measured is what a search returns."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from kept.evaluation.collection import load_collection
from kept.evaluation.corpus import corpus_of
from kept.evaluation.system import DEPTH, SystemUnderTest, asking
from kept.knowledge_base.settings import Settings

ASKED = "How does a colony of honey bees survive the winter?"


@contextmanager
def put(
    folder: Path, settings: Settings, preset: str = "default", **overrides: object
) -> Iterator[SystemUnderTest]:
    """Put a collection under a preset."""
    collection = load_collection(folder)
    with corpus_of(collection, settings, on_step=lambda *_: None) as corpus:
        yield asking(corpus, preset, overrides)


@pytest.mark.parametrize("preset", ["default", "tenant_kb", "grants", "near_match"])
def test_a_selection_is_what_the_knowledge_base_returns(
    folder: Path, settings: Settings, preset: str
) -> None:
    """Recall once and stages afterwards give the very selection of a search."""
    with put(folder, settings, preset) as asked:
        base = asked.corpus.base
        base.settings = base.settings.model_copy(update={"preset": preset})
        found = base.search(ASKED, k=DEPTH)

        refused, selection = asked.selected(asked.recall(ASKED))

    assert selection == found.selection
    assert refused == found.refused


def test_plain_order_holds_nothing_back(folder: Path, settings: Settings) -> None:
    """Floors drop from the guarded list only."""
    with put(folder, settings, relevance_floor=0.99) as asked:
        recall = asked.recall(ASKED)
        guarded, plain = asked.guarded(recall), asked.plain(recall)

    assert len(guarded.ranking) <= 1 < len(plain.ranking)
    assert plain.ranking[0][0] == "bees"
    assert plain.refusal is None


def test_a_question_that_the_gate_refuses_has_no_confidence(
    folder: Path, settings: Settings
) -> None:
    """Nothing was scored, so there is nothing to hold a floor against."""
    with put(folder, settings) as asked:
        guarded = asked.guarded(asked.recall("hey this is a test message"))

    assert (guarded.refusal, guarded.confidence) == ("query_quality", None)
    assert guarded.ranking == ()


def test_an_empty_selection_keeps_its_confidence(
    folder: Path, settings: Settings
) -> None:
    """A floor that refuses was held against the best relevance."""
    with put(
        folder,
        settings,
        relevance_floor=1.0,
        near_match_distance=0.0,
        keyword_protection=None,
    ) as asked:
        recall = asked.recall(ASKED)
        guarded = asked.guarded(recall)

    assert guarded.refusal == "nothing_relevant"
    assert guarded.confidence == recall.confidence is not None


def test_every_id_of_a_repeated_text_is_ranked(
    write: Callable[..., Path], settings: Settings
) -> None:
    """A judgement that names the copy counts like one that names the original."""
    text = "The depot is closed on public holidays and on the last Friday of June."
    twice = [{"_id": name, "title": "", "text": text} for name in ("first", "again")]
    with put(write(passages=twice), settings) as asked:
        recall = asked.recall("When is the depot closed on public holidays?")
        ranked = asked.guarded(recall)

    assert [name for name, _ in ranked.ranking[:2]] == ["again", "first"]
    touched = {touch.document_id for touch in ranked.touches}
    assert {"first", "again"} & touched in (set(), {"first", "again"})


def test_a_ranking_has_so_many_documents_at_most(
    write: Callable[..., Path], settings: Settings
) -> None:
    """A hundred are enough for every measure that is usual."""
    many = [
        {"_id": f"n{i}", "title": "", "text": f"Note {i} on the winter of bees."}
        for i in range(DEPTH + 20)
    ]
    with put(write(passages=many), settings) as asked:
        plain = asked.plain(asked.recall(ASKED))

    assert len(plain.ranking) == DEPTH


def test_the_configuration_is_fingerprinted(folder: Path, settings: Settings) -> None:
    """Another floor is another configuration, another question is not."""
    with put(folder, settings) as asked:
        deeper = replace(asked, plan=replace(asked.plan, depth=7))

        assert asked.configuration != deeper.configuration
