"""Refitting: one's own judgements move the calibration as far as they can carry."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kept.errors import InputError, UnreadableSourceError
from kept.evaluation.calibrate.fit import Prior, fitted, probability
from kept.evaluation.calibrate.pairs import (
    SIGNALS,
    Judgement,
    Pairs,
    judged_pairs,
    known_item_judgements,
    read_judgements,
)
from kept.evaluation.calibrate.refit import fit, plot, refitted
from kept.kernel.calibration import Calibration, load, save, shipped
from kept.kernel.calibration.curves import basis, climbed, steps_of
from kept.knowledge_base.base import KnowledgeBase

TOWNS = (
    "Leeds",
    "Porto",
    "Kyoto",
    "Graz",
    "Lima",
    "Oslo",
    "Turin",
    "Accra",
    "Quito",
    "Hanoi",
    "Basel",
    "Malmo",
    "Cork",
    "Perth",
    "Nantes",
    "Bergen",
    "Izmir",
    "Lagos",
    "Tampa",
    "Brno",
    "Fes",
    "Gent",
    "Zadar",
    "Pune",
)
KNOTS = {"cosine": (0.0, 0.5, 1.0), "coverage": (0.0, 1.0)}
HASH = "hash-v1:512"


@pytest.fixture
def towns(make_base: Callable[..., KnowledgeBase]) -> KnowledgeBase:
    """Return a knowledge base with a short text about each town."""
    base = make_base()
    for number, town in enumerate(TOWNS):
        base.add(
            f"The {town} office opens at {number + 1} o'clock and has {number + 7} "
            f"desks. Its canteen in {town} serves soup on every second day."
        )
    return base


def judged(base: KnowledgeBase) -> Iterator[Judgement]:
    """Yield one relevant document for a question about each town."""
    for stored in base.store.documents(base.tenant):
        text = base.store.document(base.tenant, stored.document.id)[1]
        town = next(town for town in TOWNS if f"The {town} office" in text)
        yield Judgement(
            question=f"When does the office in {town} open?",
            kind="document_id",
            passage=stored.document.id,
            relevant=True,
        )


def synthetic(count: int, intercept: float, slope: float) -> Pairs:
    """Return pairs whose relevance follows the cosine by a known law."""
    dice = np.random.default_rng(7)
    signals = {name: dice.uniform(size=count) for name in SIGNALS}
    chance = probability(intercept + slope * signals["cosine"])
    return Pairs(
        signals=signals,
        truths=(dice.uniform(size=count) < chance).astype(float),
        question=np.arange(count) // 10,
        questions=tuple(f"question {i}" for i in range(count // 10)),
    )


def test_a_known_law_is_found() -> None:
    """Enough data give the curve they were drawn from."""
    pairs = synthetic(40_000, -3.0, 4.0)

    intercept, steps = fitted(
        basis(KNOTS, pairs.signals),
        pairs.truths,
        np.ones(len(pairs)),
        Prior(0.0, np.zeros(3), 1e-6),
    )

    assert intercept == pytest.approx(-3.0, abs=0.15)
    assert steps[:2].sum() == pytest.approx(4.0, abs=0.2)
    assert steps[2] < 0.15


@settings(max_examples=30)
@given(seed=st.integers(0, 1000), strength=st.sampled_from([1e-6, 0.1, 10.0]))
def test_steps_never_fall(seed: int, strength: float) -> None:
    """Even where the data say the opposite, more evidence never lowers relevance."""
    dice = np.random.default_rng(seed)
    signals = {name: dice.uniform(size=200) for name in KNOTS}
    truths = (dice.uniform(size=200) < 1 - signals["cosine"]).astype(float)

    _, steps = fitted(
        basis(KNOTS, signals), truths, np.ones(200), Prior(0.0, np.ones(3), strength)
    )

    assert (steps >= 0).all()


def test_a_strong_prior_stays_and_a_weak_one_yields() -> None:
    """The strength decides between what was known and what is met."""
    pairs = synthetic(500, -1.0, 2.0)
    design, weights = basis(KNOTS, pairs.signals), np.ones(500)
    before = np.array([0.0, 0.0, 3.0])

    _, held = fitted(design, pairs.truths, weights, Prior(0.0, before, 1e6))
    _, moved = fitted(design, pairs.truths, weights, Prior(0.0, before, 1e-6))

    assert held == pytest.approx(before, abs=1e-3)
    assert moved[2] < 1.0


@pytest.mark.parametrize("truth", [0.0, 1.0])
def test_one_kind_of_judgement_teaches_nothing(truth: float) -> None:
    """Only relevant, or only irrelevant, is refused."""
    with pytest.raises(InputError, match="of 4 judged pairs are relevant"):
        fitted(
            np.ones((4, 1)), np.full(4, truth), np.ones(4), Prior(0, np.ones(1), 1.0)
        )


def test_steps_and_curves_are_two_writings_of_one_thing() -> None:
    """Climbing and reading the steps back gives them again."""
    steps = [0.5, 1.25, 2.0]

    assert steps_of(climbed(KNOTS, steps)).tolist() == steps


def test_a_fit_through_a_knowledge_base(towns: KnowledgeBase) -> None:
    """It names its embedder and sources, and is held to account on what it left out."""
    with towns.store.shelf(towns.tenant) as shelf:
        found = fit(judged(towns), shelf, towns.embedder, date="2026-11-16")

    provenance = found.calibration.provenance
    assert found.calibration.embedder == towns.embedder.id
    assert provenance["fitted_on"][0]["questions"] == len(TOWNS)
    assert provenance["fitted_on"][0]["relevant"] == len(TOWNS)
    assert provenance["date"] == "2026-11-16"
    assert provenance["started_from"] == shipped(HASH).id
    assert found.after.brier is not None
    assert found.before.brier is not None
    assert found.after.brier < found.before.brier
    assert len(found.best) == len(found.deserved) == len(TOWNS)


def test_the_file_of_a_fit_is_used_by_a_search(
    towns: KnowledgeBase, make_base: Callable[..., KnowledgeBase], tmp_path: Path
) -> None:
    """The setting changes relevance and the fingerprint of the configuration."""
    path = tmp_path / "own.json"
    with towns.store.shelf(towns.tenant) as shelf:
        own = fit(judged(towns), shelf, towns.embedder, date="2026-11-16").calibration
    save(own, path)
    question = "When does the office in Graz open?"

    before = towns.search(question)
    after = make_base(calibration=str(path)).search(question)

    assert load(path, HASH) == own
    assert before.fingerprints.knowledge_base == after.fingerprints.knowledge_base
    assert before.fingerprints.configuration != after.fingerprints.configuration
    best = after.selection.candidates[0]
    assert [best.signal("relevance")] == own.probabilities(
        {name: np.array([best.signal(name)]) for name in own.signals}
    ).tolist()


def test_a_fit_is_the_same_every_time(towns: KnowledgeBase) -> None:
    """Folds and numbers follow from the judgements alone."""
    with towns.store.shelf(towns.tenant) as shelf:
        one = fit(judged(towns), shelf, towns.embedder, date="2026-11-16")
        two = fit(judged(towns), shelf, towns.embedder, date="2026-11-16")

    assert one.calibration == two.calibration
    assert one.best == two.best


def test_few_questions_are_not_enough() -> None:
    """Below twenty questions nothing is fitted."""
    with pytest.raises(InputError, match="3 questions are judged"):
        refitted(
            synthetic(30, -1.0, 2.0),
            shipped(HASH),
            HASH,
            date="2026-11-16",
            name="own",
            source="test",
        )


def test_an_unknown_embedder_learns_its_cosine() -> None:
    """From words alone, a fit adds a curve for the cosine of the model at hand."""
    found = refitted(
        synthetic(3000, -3.0, 5.0),
        shipped("openai:new:768"),
        "openai:new:768",
        date="2026-11-16",
        name="own",
        source="test",
    )

    assert "cosine" in found.calibration.signals
    assert found.after.auroc is not None
    assert found.before.auroc is not None
    assert found.after.auroc > found.before.auroc
    assert (found.after.calibration_error or 0) < 0.05


def test_a_fit_brings_the_floor_of_a_promise() -> None:
    """The floor is chosen on questions left out of the fit that scores them."""
    found = refitted(
        synthetic(3000, -3.0, 5.0),
        shipped("openai:new:768"),
        "openai:new:768",
        date="2026-11-16",
        name="own",
        source="test",
    )

    floor = found.floor(0.3)

    assert floor is not None
    assert floor.bound <= 0.3
    assert floor.questions == 300


def test_unjudged_passages_count_unless_there_are_rejections(
    towns: KnowledgeBase,
) -> None:
    """Only relevant ones named: the rest are not. Both named: the rest is unknown."""
    [first, second, *_] = judged(towns)
    rejected = Judgement(
        question=first.question,
        kind="document_id",
        passage=second.passage,
        relevant=False,
    )

    with towns.store.shelf(towns.tenant) as shelf:
        named = judged_pairs([first], shelf, towns.embedder)
        both = judged_pairs([first, rejected], shelf, towns.embedder)

    assert (len(named), named.truths.sum()) == (len(TOWNS), 1)
    assert sorted(both.truths.tolist()) == [0.0, 1.0]


def test_a_relevant_passage_out_of_reach_is_counted(towns: KnowledgeBase) -> None:
    """What recall does not bring teaches nothing, and is reported."""
    nowhere = Judgement(
        question="When does the office in Graz open?",
        kind="chunk_id",
        passage="gone:0",
        relevant=True,
    )

    with towns.store.shelf(towns.tenant) as shelf:
        pairs = judged_pairs([nowhere], shelf, towns.embedder)

    assert pairs.unfound == 1
    assert pairs.truths.sum() == 0


def test_passages_can_be_named_by_text_and_chunk(towns: KnowledgeBase) -> None:
    """A quotation finds its chunk, and a chunk id is one."""
    question = "When does the office in Oslo open?"
    quoted = Judgement(
        question=question, kind="text", passage="The Oslo office opens", relevant=True
    )

    with towns.store.shelf(towns.tenant) as shelf:
        pairs = judged_pairs([quoted], shelf, towns.embedder)

    assert pairs.truths.sum() == 1
    assert pairs.unfound == 0


def test_questions_of_known_answer_are_made_from_chunks(towns: KnowledgeBase) -> None:
    """Each asks about one chunk, which is its relevant one."""
    chunks = {
        chunk.id: chunk.text
        for stored in towns.store.documents(towns.tenant)
        for chunk in towns.store.chunks(towns.tenant, stored.document.id)
    }

    made = known_item_judgements(chunks, at_most=5)

    assert len(made) == 5
    assert all(j.relevant and j.passage in chunks for j in made)


def test_judgements_are_read_from_lines(tmp_path: Path) -> None:
    """True, false and grades; chunk, document and text."""
    path = tmp_path / "judged.jsonl"
    rows = [
        {"question": "a", "chunk_id": "d:0", "relevant": True},
        {"question": "a", "document_id": "e", "relevant": 1},
        {"question": "b", "text": "some words", "grade": 2},
    ]
    path.write_text("\n".join(map(json.dumps, rows)), "utf-8")

    found = read_judgements(path, relevant_from=2.0)

    assert [(j.kind, j.passage, j.relevant) for j in found] == [
        ("chunk_id", "d:0", True),
        ("document_id", "e", False),
        ("text", "some words", True),
    ]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('{"question": "a", "relevant": true}', "no passage"),
        ('{"question": "a", "chunk_id": "d:0"}', "relevant is None"),
        (
            '{"question": "a", "chunk_id": "d:0", "relevant": "yes"}',
            "relevant is 'yes'",
        ),
        ('{"chunk_id": "d:0", "relevant": true}', "no text under 'question'"),
        ("[]", "expected a JSON object"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: str, problem: str) -> None:
    """The error says which line, what is wrong and what to write."""
    path = tmp_path / "judged.jsonl"
    path.write_text(f'{{"question":"q","text":"t","relevant":true}}\n{line}\n', "utf-8")

    with pytest.raises(UnreadableSourceError, match=rf"line 2: .*{problem}"):
        read_judgements(path)


def test_no_judgements_are_refused(tmp_path: Path) -> None:
    """An empty file fits nothing."""
    path = tmp_path / "judged.jsonl"
    path.write_text("\n", "utf-8")

    with pytest.raises(InputError, match="no judgements"):
        read_judgements(path)


def test_an_unknown_kind_of_passage_is_refused() -> None:
    """A passage is named in one of three ways."""
    with pytest.raises(InputError, match="kind is 'url'"):
        Judgement(question="q", kind="url", passage="x", relevant=True)


def test_the_plot_shows_promise_and_truth() -> None:
    """A line for each bin: counts, numbers, a bar for what came true, a mark."""
    figures = refitted(
        synthetic(3000, -3.0, 5.0),
        shipped(HASH),
        HASH,
        date="2026-11-16",
        name="own",
        source="test",
    ).after

    heading, *lines = plot(figures.table)

    assert heading.split() == ["relevance", "pairs", "promised", "observed"]
    assert len(lines) == len(figures.table)
    assert all("|" in line for line in lines)
    assert lines[0].startswith("0.0 to 0.1")


def test_a_calibration_of_one_embedder_is_no_start_for_its_id() -> None:
    """What was fitted belongs to the embedder it was fitted with, exactly."""
    own = Calibration("own", HASH, 0.0, shipped(HASH).curves)

    assert own.suits(HASH)
    assert not own.suits("hash-v2:512")
