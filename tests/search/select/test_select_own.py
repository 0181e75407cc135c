"""Own candidates: passages from elsewhere, through the same pipeline."""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kept
from kept import KnowledgeBase, Passage, Selecting
from kept.errors import InputError, NotFoundError
from kept.search.render import found_json

QUESTION = "When does the Leeds office open?"
LEEDS = "The Leeds office opens at eight and closes at six."
KIEL = "The Kiel office opens at nine."
PUMP = "The pump of model TW-C235 costs 410 euro without tax."
OFF_TOPIC = "how do I bake sourdough bread at home"

Make = Callable[..., KnowledgeBase]


@pytest.fixture(scope="module")
def guard() -> Selecting:
    """Return what selects with the hash embedder, without a knowledge base."""
    return Selecting(embedder="hash")


def handed(*scores: float | None) -> list[Passage]:
    """Return three passages, of which the first answers, with these scores."""
    texts = {"leeds": LEEDS, "kiel": KIEL, "pump": PUMP}
    pairs = zip(texts.items(), scores or (None,) * 3, strict=True)
    return [Passage(id=name, text=text, score=score) for (name, text), score in pairs]


def chosen(found: kept.Found) -> list[str]:
    """Return what was selected."""
    return [c.id for c in found.selection.candidates]


def shown(found: kept.Found) -> dict[str, Any]:
    """Return the JSON of a result without the clock."""
    return {**found_json(found), "timings": None}


def decided(found: kept.Found, chunk_id: str) -> list[tuple[str, str]]:
    """Return the stages and reasons that touched a candidate."""
    return [(stage, str(d.reason)) for stage, d in found.selection.explain(chunk_id)]


@pytest.mark.parametrize(
    ("scores", "values", "order"),
    [
        ("similarity", (7.0, 9.0, 8.0), ["kiel", "leeds"]),
        ("distance", (7.0, 9.0, 8.0), ["leeds", "kiel"]),
        ("cosine", (0.2, 0.4, 0.9), ["kiel", "leeds"]),
        ("cosine_distance", (0.2, 0.4, 0.9), ["leeds", "kiel"]),
        ("bm25", (0.0, 11.5, 3.0), ["kiel", "leeds"]),
        ("rerank", (-3.0, 4.5, 5.0), ["kiel", "leeds"]),
        ("order", (None, None, None), ["leeds", "kiel"]),
        ("none", (None, None, None), ["leeds", "kiel"]),
    ],
)
def test_their_scores_order_and_ours_refuse(
    guard: Selecting,
    scores: str,
    values: tuple[float | None, ...],
    order: list[str],
) -> None:
    """Whatever the pump was scored, it does not answer the question."""
    found = guard.select(QUESTION, handed(*values), scores=scores)

    assert chosen(found) == order
    assert decided(found, "pump") == [("relevance_floor", "relevance_floor")]


def test_the_order_of_the_preset_can_be_had_instead(guard: Selecting) -> None:
    """With order='kept' the passage that answers stands first, whatever its score."""
    found = guard.select(
        QUESTION, handed(0.1, 0.9, 0.5), scores="similarity", order="kept"
    )

    assert chosen(found) == ["leeds", "kiel"]
    assert "order_as_given" not in [step.stage for step in found.selection.trace]


def test_an_off_topic_question_is_refused_however_high_the_scores(
    guard: Selecting,
) -> None:
    """A min-max top of 1.0 does not make an answer."""
    found = guard.select(OFF_TOPIC, handed(1.0, 0.9, 0.8), scores="similarity")

    assert chosen(found) == []
    assert found.refused is not None
    assert found.refused.reason == "nothing_relevant"
    assert found.refused.evidence["best_relevance"] < 0.03


def test_the_record_accounts_for_every_passage(guard: Selecting) -> None:
    """Handed in is selected plus dropped, and the raw score is kept as a signal."""
    found = guard.select(QUESTION, handed(7.0, 9.0, 8.0), scores="distance")

    record = found_json(found)["record"]
    assert record["recalled"] == record["selected"] + record["dropped"] == 3
    assert {c["chunk_id"]: c["signals"]["given"] for c in record["candidates"]} == {
        "leeds": 7.0,
        "kiel": 9.0,
        "pump": 8.0,
    }


@pytest.mark.parametrize("scores", ["cosine", "none"])
def test_the_order_of_arrival_does_not_matter(guard: Selecting, scores: str) -> None:
    """Shuffled passages give the very same JSON."""
    pool = [*handed(0.5, 0.5, 0.4), Passage(text=LEEDS, score=0.5)]
    straight = shown(guard.select(QUESTION, pool, scores=scores))

    for seed in range(5):
        mixed = Random(seed).sample(pool, len(pool))  # noqa: S311 -- a shuffle

        assert shown(guard.select(QUESTION, mixed, scores=scores)) == straight


def test_the_relevance_of_a_passage_does_not_depend_on_scores(
    guard: Selecting,
) -> None:
    """The absolute channel reads texts, never what came with them."""

    def relevance(found: kept.Found) -> float:
        return found.selection.candidates[0].signal("relevance")

    low = guard.select(QUESTION, handed(0.1, 0.0, 0.0), scores="cosine")
    high = guard.select(QUESTION, handed(1e9, 0.0, 0.0), scores="similarity")

    assert relevance(low) == relevance(high)


def test_repeats_are_dropped_with_the_one_they_repeat(guard: Selecting) -> None:
    """White space apart the same text, under the same id or another, stays once."""
    again = Passage(id="copy", text=LEEDS.replace(" ", "  "), score=0.1)
    pool = [*handed(0.9, 0.8, 0.7), *handed(0.9, 0.8, 0.7)[:1], again]

    found = guard.select(QUESTION, pool, scores="similarity")

    assert chosen(found) == ["leeds", "kiel"]
    for copy in ("leeds#2", "copy"):
        [(stage, decision)] = found.selection.explain(copy)
        assert (stage, decision.reason) == ("drop_repeats", "repeated")
        assert decision.evidence == {"same_as": "leeds"}


def test_a_repeat_is_the_worse_placed_in_whatever_order_they_came(
    guard: Selecting,
) -> None:
    """The better score keeps the id; a name that is taken is not given again."""
    pool = [
        Passage(id="a", text=LEEDS, score=0.3),
        Passage(id="a", text=LEEDS, score=0.9),
        Passage(id="a#2", text=KIEL, score=0.5),
    ]

    one = guard.select(QUESTION, pool, scores="similarity")
    other = guard.select(QUESTION, pool[::-1], scores="similarity")

    assert shown(one) == shown(other)
    assert chosen(one) == ["a", "a#2"]
    assert one.selection.candidates[0].signal("given") == 0.9
    assert decided(one, "a#3") == [("drop_repeats", "repeated")]


def test_what_the_gate_turns_away_is_in_the_record(guard: Selecting) -> None:
    """Small talk is no question, and nothing that was handed in vanishes."""
    found = guard.select("hey there", handed(0.9, 0.8, 0.7), scores="similarity")

    assert found.refused is not None
    assert found.refused.reason == "query_quality"
    assert found_json(found)["record"]["recalled"] == 3
    [(stage, decision)] = found.selection.explain("pump")
    assert (stage, decision.reason) == ("gate", "query_quality")
    assert decision.evidence == {"content_words": 0, "at_least": 3}


@given(
    st.lists(
        st.tuples(
            st.sampled_from([LEEDS, KIEL, PUMP, "x"]),
            st.one_of(st.none(), st.sampled_from("abc")),
            st.floats(-1e15, 1e15),
        ),
        max_size=8,
    ),
    st.sampled_from(["similarity", "rerank", "none"]),
    st.randoms(use_true_random=False),
)
def test_nothing_vanishes_and_arrival_does_not_matter(
    guard: Selecting,
    rows: list[tuple[str, str | None, float]],
    scores: str,
    random: Random,
) -> None:
    """Whatever is handed in is selected or dropped, and shuffling changes nothing."""
    names: dict[str, str] = {}
    pool = [
        Passage(id=id_, text=names.setdefault(id_ or text, text), score=score)
        for text, id_, score in rows
    ]

    found = guard.select(QUESTION, pool, scores=scores)

    selection = found.selection
    assert len(selection.candidates) + len(selection.dropped) == len(pool)
    mixed = random.sample(pool, len(pool))
    assert shown(guard.select(QUESTION, mixed, scores=scores)) == shown(found)


def test_a_missing_id_is_derived_from_the_text(guard: Selecting) -> None:
    """The same text gets the same id in every pool; ids='required' refuses instead."""
    alone = guard.select(QUESTION, [Passage(text=LEEDS)], scores="none")
    beside = guard.select(
        QUESTION, [Passage(text=PUMP), Passage(text=LEEDS)], scores="none"
    )

    assert chosen(alone) == chosen(beside) == ["text:" + chosen(alone)[0][5:]]
    with pytest.raises(InputError, match=r"passage 1 \('The Leeds.*has no id"):
        guard.select(QUESTION, [Passage(text=LEEDS)], scores="none", ids="required")


def test_a_near_match_is_protected_whatever_its_score(guard: Selecting) -> None:
    """The question's own words, placed last by their retriever, are not lost."""
    pool = [
        Passage(id=f"p{n}", text=f"{KIEL} Door {n}.", score=0.9 - n / 100)
        for n in range(9)
    ]
    pool.append(Passage(id="twin", text=QUESTION, score=0.0))

    found = guard.select(QUESTION, pool, scores="similarity", k=2)

    assert "twin" in chosen(found)
    assert ("protect_near_matches", "near_match") in decided(found, "twin")


def test_a_pinned_passage_stays(guard: Selecting) -> None:
    """What the caller forces in is never pruned; what is not there is refused."""
    found = guard.select(OFF_TOPIC, handed(), scores="none", pinned=["pump"])

    assert chosen(found) == ["pump"]
    with pytest.raises(NotFoundError, match="there is no passage 'nobody' here"):
        guard.select(OFF_TOPIC, handed(), scores="none", pinned=["nobody"])


@pytest.mark.parametrize(
    ("scores", "values"),
    [("cosine_distance", (0.3, 0.4, 0.7)), ("cosine", (0.7, 0.6, 0.3))],
)
def test_given_cosines_need_no_embedder(scores: str, values: tuple[float, ...]) -> None:
    """No model is asked, and relevance comes from the words alone."""
    guard = Selecting(embedder="openai")

    found = guard.select(QUESTION, handed(*values), scores=scores, cosines="given")

    assert chosen(found)[0] == "leeds"
    assert found.selection.candidates[0].signal("cosine") == 0.7


def test_metadata_may_hold_anything(guard: Selecting) -> None:
    """What is not JSON takes part in the fingerprint by its kind alone."""

    def asked(value: object) -> str:
        passage = Passage(text=LEEDS, metadata={"own": value, 3: "three"})
        found = guard.select(QUESTION, [passage], scores="none")
        return found.fingerprints.knowledge_base

    assert asked(object()) == asked(object()) != asked("text")


def test_an_empty_pool_is_a_refusal(guard: Selecting) -> None:
    """A retriever that found nothing gets the conservative text."""
    found = guard.select(QUESTION, [], scores="order")

    assert found.refused is not None
    assert found.refused.reason == "nothing_relevant"


def test_a_knowledge_base_lends_the_weights_of_its_words(make_base: Make) -> None:
    """The state that the weights come from is part of the fingerprint."""
    base = make_base()
    alone = base.select(QUESTION, handed(), scores="none")
    base.add(LEEDS)
    weighed = base.select(QUESTION, handed(), scores="none")

    assert chosen(weighed) == ["leeds", "kiel"]
    with base.store.shelf("default") as shelf:
        state = shelf.state
    assert weighed.fingerprints.knowledge_base.startswith(f"{state}+")
    assert weighed.fingerprints.knowledge_base.endswith(
        alone.fingerprints.knowledge_base
    )


def test_the_overrides_of_a_tenant_count(make_base: Make) -> None:
    """A base's own floor is the floor of its selections."""
    base = make_base()
    base.override({"relevance_floor": 0.99})

    assert base.select(QUESTION, handed(), scores="none").refused is not None


@pytest.mark.parametrize("preset", ["default", "tenant_kb", "near_match", "grants"])
def test_every_preset_can_be_asked(preset: str) -> None:
    """The stages find the signals that they need."""
    found = kept.select(
        QUESTION,
        handed(0.3, 0.2, 0.1),
        scores="similarity",
        embedder="hash",
        preset=preset,
    )

    assert "order_as_given" in [step.stage for step in found.selection.trace]


def bad(passages: Sequence[Passage], **how: Any) -> tuple[Sequence[Passage], Any]:  # noqa: ANN401 -- options
    """Return a call that must be refused."""
    return passages, how


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (bad(handed()), "what the scores mean is not said; expected one of: cosine"),
        (bad(handed(), scores="loss"), "what the scores mean is 'loss'"),
        (bad(handed(), scores="distance"), "passage 'leeds' has no score"),
        (
            bad(handed(1.0, math.nan, 0.0), scores="rerank"),
            "passage 'kiel' has the score nan; expected a finite number",
        ),
        (
            bad(handed(1.0, 0.0, -math.inf), scores="rerank"),
            "passage 'pump' has the score -inf",
        ),
        (
            bad(handed(0.0, 12.5, 0.0), scores="cosine"),
            r"passage 'kiel' has the score 12.5, which is no cosine .*from -1 to 1",
        ),
        (bad(handed(-1.0, 0.0, 0.0), scores="bm25"), "at least 0"),
        (
            bad([Passage(text=KIEL, score=True)], scores="rerank"),
            "True; expected a num",
        ),
        (
            bad(handed(), scores="none", order="given"),
            "there is no order to keep",
        ),
        (bad(handed(), scores="order", order="best"), "expected 'given' or 'kept'"),
        (
            bad(handed(1.0, 1.0, 1.0), scores="bm25", cosines="given"),
            "cosines is 'given', but the scores are 'bm25'",
        ),
        (bad([Passage(text=" ")], scores="none"), "passage 1 has no text"),
        (bad([KIEL], scores="none"), "passage 1 is .*; expected a Passage"),
        (bad([{"text": KIEL}], scores="none"), "passage 1 is .*; expected a Passage"),
        (bad([Passage(text=b"x")], scores="none"), "expected a Passage with a text"),
        (bad(handed(1.0, 10**400, 0.0), scores="rerank"), "'kiel' has the score inf"),
        (
            bad([*handed(), Passage(id="pump", text=KIEL)], scores="none"),
            "two passages have the id 'pump' and different texts",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused(
    guard: Selecting, call: tuple[Sequence[Passage], Any], message: str
) -> None:
    """The message names the passage, the score and what to say instead."""
    passages, how = call

    with pytest.raises(InputError, match=message):
        guard.select(QUESTION, passages, **how)


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, np.int64])
def test_scores_may_be_numbers_of_numpy(
    guard: Selecting, kind: Callable[[float], Any]
) -> None:
    """What an index of vectors answers with is taken as it comes."""
    plain = guard.select(QUESTION, handed(3.0, 2.0, 1.0), scores="similarity")

    found = guard.select(
        QUESTION, handed(kind(3), kind(2), kind(1)), scores="similarity"
    )

    assert found == plain
    assert json.dumps(found_json(found))


def test_passages_that_filters_exclude_do_not_count(guard: Selecting) -> None:
    """It is not weighed and not in the record, as in a search; a pin is stronger."""
    leeds, kiel, pump = (
        replace(one, tags=tags, metadata={"year": year}, type="memo")
        for one, tags, year in zip(
            handed(), (("draft",), (), ()), (2026, 2019, 2026), strict=True
        )
    )
    drafts = kept.Filters(tags=("draft",))
    recent = kept.Filters(where=(kept.Condition("year", "gt", 2020),))
    passages = [leeds, kiel, pump]

    def found(filters: kept.Filters, *pinned: str) -> kept.Found:
        return guard.select(
            QUESTION, passages, scores="order", filters=filters, pinned=pinned
        )

    undrafted = found(kept.Filters(none_of=(drafts,)))
    alone = guard.select(QUESTION, [kiel, pump], scores="order")

    assert chosen(undrafted) == chosen(alone)
    assert undrafted.selection.recalled == 2
    assert "leeds" in chosen(found(recent))
    assert found(recent).selection.recalled == 2
    assert "kiel" in chosen(found(recent, "kiel"))
    assert shown(found(kept.Filters())) == shown(
        guard.select(QUESTION, passages, scores="order")
    )
