"""Explanations: the story of a candidate, why not, and the least change."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kept.errors import InputError, NotFoundError, SettingsError
from kept.explain import smallest_change
from kept.explain.diff import (
    Answered,
    configuration_named,
    diff_configurations,
    difference,
)
from kept.explain.explanations import WhyNot, why, why_not
from kept.explain.model_answers import asked_once
from kept.explain.render import (
    difference_json,
    difference_lines,
    story_json,
    story_lines,
    why_not_json,
    why_not_lines,
)
from kept.explain.rerun import Rerun
from kept.explain.smallest_change import (
    CHOSEN,
    EITHER_WAY,
    EMPTIED,
    LOWERED,
    RAISED,
    SWITCHED_ON,
)
from kept.kernel.filters import Condition, Filters
from kept.kernel.knobs import NOTHING, Number, Switch
from kept.kernel.model import Candidate, Query
from kept.kernel.ports import Opinion
from kept.kernel.presets import PRESETS
from kept.kernel.presets.plan import Parts
from kept.knowledge_base.base import KnowledgeBase
from kept.search.retrieve import Request
from kept.testing.tables import candidates

Make = Callable[..., KnowledgeBase]
QUESTION = "How many days of leave do employees have after ten years?"
NOTES = [
    f"Note {i}: the {thing} in room {i} is checked every {span}."
    for i, (thing, span) in enumerate(
        (thing, span)
        for thing in ("boiler", "printer", "window", "elevator", "ladder", "alarm")
        for span in ("day", "month", "ten years")
    )
]
LEAVE = [
    "Employees have 28 days of leave, and five more after ten years.",
    "Days of leave that employees do not take by March lapse.",
    "Leave of ten days or more is agreed with the team a month before.",
]


@pytest.fixture
def filled(base: KnowledgeBase) -> KnowledgeBase:
    """Return a knowledge base of notes and rules about leave, with a low floor."""
    for text in (*NOTES, *LEAVE):
        base.add(text, title=text[:20], type="rule" if text in LEAVE else "note")
    base.override({"relevance_floor": 0.0, "near_match_distance": 0.2})
    return base


def asking(question: str = QUESTION, **options: object) -> Request:
    """Return a request for the default tenant."""
    return Request(question=question, **options)  # type: ignore[arg-type]  # any


def chunk_with(base: KnowledgeBase, text: str) -> str:
    """Return the id of the chunk that starts with *text*."""
    [found] = [
        chunk.id
        for stored in base.store.documents("default")
        for chunk in base.store.chunks("default", stored.document.id)
        if chunk.text.startswith(text)
    ]
    return found


def outcome_of(base: KnowledgeBase, **settings_and_k: object) -> list[str]:
    """Return the selected chunks under other settings, by the usual path."""
    request = asking(k=settings_and_k.pop("k", None))
    configured = base.configured().changed(**settings_and_k)
    plan = base.plan(request, configured)
    return [c.id for c in base.retriever(plan)(request).selection.candidates]


def test_the_story_names_every_stage_and_the_final_place(
    filled: KnowledgeBase,
) -> None:
    """A selected candidate passed every stage of the chain."""
    found = filled.search(QUESTION)
    first = found.selection.candidates[0]

    explained = why(found, first.id)

    assert [p.stage for p in explained.steps] == [
        s.stage for s in found.selection.trace
    ]
    assert (explained.place, explained.selected) == (1, len(found.selection.candidates))
    assert list(story_lines(explained))[-1].startswith("selected: place 1 of ")
    assert story_json(explained)["place"] == 1


def test_the_story_of_a_dropped_candidate_ends_where_it_was_dropped(
    filled: KnowledgeBase,
) -> None:
    """The last stage of the story compares the numbers that decided."""
    found = filled.search(QUESTION, k=1)
    beyond = next(
        c
        for c in found.selection.dropped
        if [d.reason for _, d in found.selection.explain(c.id)] == ["trim_top_n"]
    )

    explained = why(found, beyond.id)

    assert explained.place is None
    assert explained.dropped is not None
    assert explained.dropped.stage == "top_k"
    assert "top_k: dropped: trim_top_n (place=2, at_most=1). Below the k best." in (
        list(story_lines(explained))
    )
    assert story_json(explained)["story"][-1]["evidence"] == {"place": 2, "at_most": 1}


def test_a_chunk_that_was_not_recalled_has_no_story(filled: KnowledgeBase) -> None:
    """The error points to the command that explains it."""
    with pytest.raises(NotFoundError, match="why-not"):
        why(filled.search(QUESTION), "nowhere:0000")


def test_what_is_selected_is_said_to_be(filled: KnowledgeBase) -> None:
    """There is nothing to change."""
    explained = why_not(filled, chunk_with(filled, LEAVE[0]), asking())

    assert (explained.outcome, explained.changes) == ("selected", ())
    assert next(iter(why_not_lines(explained))) == "it is in the answer:"


def test_a_floor_is_lowered_to_exactly_the_candidate(make_base: Make) -> None:
    """The least change of the floor is the candidate's own relevance, verified."""
    base = make_base()
    for text in (*NOTES, *LEAVE):
        base.add(text)
    base.override({"relevance_floor": 0.9, "near_match_distance": 0.0})
    target = next(
        c for c in base.search(QUESTION).selection.dropped if c.chunk.text == LEAVE[1]
    )

    explained = why_not(base, target.id, asking())

    assert explained.outcome == "dropped"
    assert explained.story is not None
    assert explained.story.dropped is not None
    assert explained.story.dropped.stage == "relevance_floor"
    [floor] = [
        c for c in explained.changes if c.assignments[0].name == "relevance_floor"
    ]
    [line] = floor.assignments
    assert line.variable == "KEPT_RELEVANCE_FLOOR"
    # Bounds are compared at six places, so the last of nine does not count.
    assert line.before == 0.9
    assert line.after == pytest.approx(target.signals["relevance"], abs=1e-6)
    assert target.id in outcome_of(base, relevance_floor=line.after)
    just_above = round(line.after + 1e-6, 9)
    assert target.id not in outcome_of(base, relevance_floor=just_above)


def test_k_grows_to_exactly_the_place(filled: KnowledgeBase) -> None:
    """Beyond the top k, k is the setting, and one less does not do it."""
    request = asking(k=1)
    second = next(
        c
        for c in filled.search(QUESTION, k=1).selection.dropped
        if c.chunk.text == LEAVE[1]
    )

    explained = why_not(filled, second.id, request)

    [by_k] = [c for c in explained.changes if c.assignments[0].name == "k"]
    k = by_k.assignments[0].after
    assert by_k.assignments[0].variable == "--top"
    assert second.id in outcome_of(filled, k=k)
    assert second.id not in outcome_of(filled, k=k - 1)
    assert by_k.place == k


def test_every_reported_change_admits_and_is_ordered_by_size(
    filled: KnowledgeBase,
) -> None:
    """What is said to let a passage in does so when it is run."""
    target = next(
        c
        for c in filled.search(QUESTION, k=1).selection.dropped
        if "lapse" in c.chunk.text
    )

    explained = why_not(filled, target.id, asking(k=1))

    sizes = [change.size for change in explained.changes]
    assert sizes == sorted(sizes)
    for change in explained.changes:
        given = {a.name: a.after for a in change.assignments}
        assert target.id in outcome_of(filled, **{"k": 1, **given})


def test_a_chunk_beyond_recall_has_its_places_and_the_depth_it_needs(
    make_base: Make,
) -> None:
    """Both legs are ranked anyway; one less depth would not recall it."""
    base = make_base()
    for text in (*NOTES, *LEAVE):
        base.add(text)
    base.override({"depth": 2, "top_k": 1, "gate_enable": False})
    target = chunk_with(base, "Note 17")

    explained = why_not(base, target, asking())

    assert explained.outcome == "not_recalled"
    places = {rank.leg: rank.place for rank in explained.ranks}
    assert [rank.depth for rank in explained.ranks] == [2, 2]
    assert explained.needed_depth == min(p for p in places.values() if p)
    shallow, deep = (
        {c.id for c in _pool(base, depth)}
        for depth in (explained.needed_depth - 1, explained.needed_depth)
    )
    assert target in deep - shallow
    assert any("would recall it" in line for line in why_not_lines(explained))


def _pool(base: KnowledgeBase, depth: int) -> tuple[Candidate, ...]:
    request = asking(k=1)
    plan = replace(base.plan(request), depth=depth)
    with base.store.shelf("default") as shelf:
        rerun = Rerun(shelf, request, base.embedder, base.calibration)
        return rerun.candidates(plan)


@pytest.mark.parametrize("filters", [Filters(), Filters(types=("note",))])
def test_ranks_are_places_in_the_exact_order(
    filled: KnowledgeBase, filters: Filters
) -> None:
    """A rank is where a leg that brings everything has the chunk."""
    filled.search(QUESTION)
    filled.delete(chunk_with(filled, "Note 5").split(":")[0])
    request = asking(filters=filters)
    with filled.store.shelf("default") as shelf:
        rerun = Rerun(shelf, request, filled.embedder, filled.calibration)
        dense, keyword = (
            [c.id for c in _in_order(rerun, leg)] for leg in ("dense", "keyword")
        )
        for chunk in dense:
            ranks = shelf.ranks(rerun.vector, rerun.terms, chunk, rerun.allowed)

            assert ranks == {
                "dense": dense.index(chunk) + 1,
                "keyword": keyword.index(chunk) + 1 if chunk in keyword else None,
            }


def _in_order(rerun: Rerun, leg: str) -> Iterator[Candidate]:
    whole = rerun.leg(leg, rerun.shelf.chunks)
    for key in whole.keys:
        one = replace(whole, keys=np.array([key]))  # type: ignore[type-var]  # a Cut
        yield from rerun.shelf.candidates(rerun.vector, rerun.terms, {leg: one}, ())


def test_several_settings_are_named_where_one_is_not_enough(make_base: Make) -> None:
    """The first takes it past the floor, the next into k, the last into the budget."""
    base = make_base()
    for text in (*NOTES, *LEAVE):
        base.add(text)
    base.override(
        {
            "relevance_floor": 1.0,
            "top_k": 1,
            "max_chars": 1,
            "near_match_distance": 0.0,
            "keyword_protection": "none",
            "guardrails_enable": True,
        }
    )
    target = chunk_with(base, LEAVE[2])

    explained = why_not(base, target, asking())

    assert explained.changes == ()
    assert explained.pairs
    assert any("together these do" in line for line in why_not_lines(explained))
    for change in explained.pairs:
        given = {a.name: a.after for a in change.assignments}
        assert len(given) == 3
        assert target in outcome_of(base, **given)


def test_of_a_document_the_chunk_that_came_farthest_is_explained(
    base: KnowledgeBase,
) -> None:
    """A document is named, one of its chunks answers for it."""
    for text in NOTES:
        base.add(text)
    long = "\n\n".join(
        f"{note} {'Nothing else happens here. ' * 25}" for note in NOTES[:4]
    )
    [receipt] = base.add(f"{long}\n\n{LEAVE[0]} {'It is agreed early. ' * 30}")
    base.override({"top_k": 1, "relevance_floor": 0.999, "near_match_distance": 0.0})

    explained = why_not(base, str(receipt.document_id), asking())

    assert explained.chunk_id is not None
    assert explained.chunk_id.startswith(str(receipt.document_id))
    assert (
        "leave"
        in {
            c.id: c.text for c in base.store.chunks("default", str(receipt.document_id))
        }[explained.chunk_id]
    )


def test_filters_that_exclude_are_named(filled: KnowledgeBase) -> None:
    """Only the excluding condition is named; the rest is explained without filters."""
    target = chunk_with(filled, LEAVE[0])
    filters = Filters(types=("note",), documents=(target.split(":")[0],))

    explained = why_not(filled, target, asking(filters=filters))

    assert (explained.outcome, explained.filters) == ("filtered", {"types": ["note"]})
    assert explained.unfiltered is not None
    assert explained.unfiltered.outcome == "selected"
    lines = list(why_not_lines(explained))
    assert "types=['note']" in lines[0]
    assert lines[2] == "  it is in the answer:"


@pytest.mark.parametrize(
    ("conditions", "named"),
    [
        ({"tags": ("hr",)}, ["tags"]),
        ({"metadata": {"city": "Kiel"}}, ["metadata.city"]),
        ({"since": "2026-05-01", "until": "2026-06-01"}, ["since"]),
        ({"documents": ("another",)}, ["documents"]),
        ({"where": (Condition("city", "contains", "ie"),)}, ["where.city.contains"]),
        ({"any_of": (Filters(tags=("hr",)), Filters(types=("a",)))}, ["any_of"]),
        ({"all_of": (Filters(tags=("law",)), Filters(tags=("hr",)))}, ["all_of.1"]),
        ({"none_of": (Filters(tags=("hr",)), Filters(tags=("law",)))}, ["none_of.1"]),
    ],
)
def test_each_kind_of_filter_is_named(
    base: KnowledgeBase, conditions: dict[str, object], named: list[str]
) -> None:
    """Tags, metadata, dates and documents exclude alike."""
    [receipt] = base.add(
        LEAVE[0], tags=("law",), metadata={"city": "Leeds", "date": "2026-01-01"}
    )

    filters = Filters(**conditions)  # type: ignore[arg-type]  # any condition
    explained = why_not(base, str(receipt.document_id), asking(filters=filters))

    assert list(explained.filters) == named


def test_a_gated_question_is_said_to_be_gated(filled: KnowledgeBase) -> None:
    """The gate's numbers are named, and what would open it."""
    explained = why_not(filled, chunk_with(filled, LEAVE[0]), asking("hello there"))

    assert explained.outcome == "gated"
    assert next(iter(why_not_lines(explained))).startswith(
        "the gate refused the question (content_words="
    )


def test_superseded_deleted_and_unknown_names_are_said_plainly(
    make_base: Make,
) -> None:
    """A document that cannot be found is not weighed."""
    base = make_base()
    [old] = base.add(LEAVE[0], source_uri="rules.md")
    [new] = base.add(LEAVE[1], source_uri="rules.md")
    [gone] = base.add(LEAVE[2])
    base.delete(str(gone.document_id))

    superseded = why_not(base, str(old.document_id), asking())
    deleted = why_not(base, f"{gone.document_id}:0000", asking())
    source = why_not(base, "rules.md", asking())

    assert (superseded.outcome, deleted.outcome) == ("superseded", "deleted")
    [line] = why_not_lines(superseded)
    assert line.endswith(f"was superseded by document {new.document_id}")
    [line] = why_not_lines(deleted)
    assert "was deleted at 2" in line
    assert source.fate.document_id == new.document_id
    with pytest.raises(NotFoundError, match="kept documents"):
        why_not(base, "unheard-of", asking())
    with pytest.raises(NotFoundError, match="its document has 1 chunks"):
        why_not(base, f"{new.document_id}:0007", asking())


def test_a_document_goes_by_its_file_name_or_its_title(make_base: Make) -> None:
    """People name a file as they see it; a name that two have is not guessed at."""
    base = make_base()
    [one] = base.add(LEAVE[0], source_uri="/home/a/rules_1.md", title="Leave")
    base.add(LEAVE[1], source_uri="/home/a/rulesX1.md", title="Twice")
    base.add(LEAVE[2], source_uri="/home/b/rulesX1.md", title="Twice")

    for name in ("rules_1.md", "a/rules_1.md", "Leave"):
        assert why_not(base, name, asking()).fate.document_id == one.document_id
    for name in ("rulesX1.md", "Twice"):
        with pytest.raises(NotFoundError, match="2 documents are called so"):
            why_not(base, name, asking())


def test_an_alias_stands_for_its_document(base: KnowledgeBase) -> None:
    """The document that an alias was merged into is explained."""
    base.add(LEAVE[0], source_uri="one")
    [copy] = base.add(LEAVE[0], source_uri="two", title="copy")

    explained = why_not(base, str(copy.alias_id), asking())

    assert explained.outcome == "selected"
    assert " is document " in next(iter(why_not_lines(explained)))


def test_an_empty_question_is_refused(filled: KnowledgeBase) -> None:
    """There is nothing to explain."""
    with pytest.raises(InputError, match="empty"):
        why_not(filled, "x", asking(" "))


@pytest.mark.parametrize("preset", ["tenant_kb", "grants", "near_match", "few_shot"])
def test_every_preset_is_explained_and_deterministic(
    make_base: Make, preset: str
) -> None:
    """Two runs give the same, and it is JSON."""
    base = make_base(preset=preset)
    for text in (*NOTES, *LEAVE):
        base.add(text)
    target = chunk_with(base, "Note 3")

    request = asking(item="Sleep")
    one, two = (why_not_json(why_not(base, target, request)) for _ in range(2))

    assert json.dumps(one) == json.dumps(two)
    assert one["outcome"] in {"dropped", "not_recalled", "selected"}
    assert all(why_not_lines(why_not(base, target, request)))


def test_what_no_setting_lets_in_is_said_plainly(make_base: Make) -> None:
    """A reference without a label is none, whatever the settings; a pin is left."""
    base = make_base(preset="few_shot")
    for text in LEAVE:
        base.add(text)
    target = chunk_with(base, LEAVE[0])

    explained = why_not(base, target, asking(item="Sleep"))

    assert (explained.changes, explained.pairs) == ((), ())
    *_, nothing, pin = why_not_lines(explained)
    assert nothing == "no change of up to 3 settings selects it"
    assert pin == f"to select it regardless: --pin {target}"


def test_a_table_of_shares_can_be_emptied(make_base: Make) -> None:
    """What reserves the budget for others is a switch as well."""
    base = make_base(preset="grants")
    [receipt] = base.add(LEAVE[0])
    base.add(LEAVE[1], tags=("budget",))
    [near] = base.store.chunks("default", str(receipt.document_id))
    base.override({"token_budget": near.token_len, "reserved_shares": {"budget": 1.0}})

    explained = why_not(base, near.id, asking())

    assert explained.story is not None
    assert explained.story.dropped is not None
    assert explained.story.dropped.stage == "reserved_token_budget"
    turned = {a.name: a.after for c in explained.changes for a in c.assignments}
    assert turned["reserved_shares"] == {}


def test_a_change_lists_the_passages_it_displaces(filled: KnowledgeBase) -> None:
    """A few by name, the rest by number."""
    target = next(
        c
        for c in filled.search(QUESTION, k=1).selection.dropped
        if "lapse" in c.chunk.text
    )
    explained = why_not(filled, target.id, asking(k=1))
    crowd = tuple(f"c{i}" for i in range(7))
    change = replace(explained.changes[0], displaced=crowd, admitted=("d",))

    lines = list(why_not_lines(replace(explained, changes=(change, change))))

    assert "  it removes c0, c1, c2, c3, c4 and 2 more" in lines
    assert "  it also adds d" in lines
    assert "other settings that select it:" in lines


NEVER_TURNED = {
    *("guardrails_enable", "gate_enable", "validation_enable", "score_floor_enable"),
    *("near_match_distance", "enable_item_tag_filter", "enable_reference_validation"),
    "validation_model",
    *("on_violation", "without_stages", "fusion", "low_relevance", "dimension"),
    "cite",  # a name for a floor, which is turned itself
    *("min_evidence_chars", "enable_batch_query_embedding"),
    *("query_embed_timeout_seconds", "similarity_threshold", "embeddings_backend"),
}


def test_each_setting_is_turned_one_way_or_never() -> None:
    """A setting that is added to a preset has to be put into one of the groups."""
    known = {name for each in PRESETS.values() for name in each.settings.model_fields}
    groups = (RAISED, LOWERED, EITHER_WAY, SWITCHED_ON, CHOSEN, EMPTIED, NEVER_TURNED)

    assert Counter(name for group in groups for name in group) == Counter(known)


def check_advisable(explained: WhyNot) -> int:
    """Count the assignments of a why-not, each of which a person would make."""
    turned = [a for c in (*explained.changes, *explained.pairs) for a in c.assignments]
    for each in turned:
        if each.name == "k" or each.name in RAISED:
            assert each.after > each.before, each
        elif each.name in LOWERED and each.before is not None:
            assert each.after < each.before, each
        else:
            assert each.name not in NEVER_TURNED, each
            assert each.after is not False, each
    return len(turned)


def test_guardrails_are_not_switched_off_to_let_something_in(
    make_base: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What three settings keep out comes in by all three; by two, nothing does."""
    base = make_base()
    for text in (*NOTES, *LEAVE):
        base.add(text)
    base.override({"relevance_floor": 1.0, "top_k": 1, "max_chars": 1})
    base.override({"near_match_distance": 0.0, "keyword_protection": "none"})
    target = chunk_with(base, "Note 17")
    request = asking("How is the ladder checked every ten years?")

    three = why_not(base, target, request)
    monkeypatch.setattr(smallest_change, "MOST_SETTINGS", 2)
    two = why_not(base, target, request)

    assert three.changes == two.changes == two.pairs == ()
    assert check_advisable(three) >= 3
    assert [a.name for a in three.pairs[0].assignments] == [
        *("relevance_floor", "top_k", "max_chars")
    ]
    assert any("no change of up to" in line for line in why_not_lines(two))


def test_the_gate_is_not_switched_off_to_let_something_in(
    filled: KnowledgeBase,
) -> None:
    """Fewer words may be asked for; small talk stays small talk."""
    explained = why_not(filled, chunk_with(filled, LEAVE[0]), asking("hello there"))

    assert explained.outcome == "gated"
    check_advisable(explained)


def test_nothing_better_is_lost_to_let_something_in(filled: KnowledgeBase) -> None:
    """A shallower recall or a higher floor would only remove what is better."""
    filled.override({"diversity": "off", "document_limit": 100})
    for place in (2, 3, 4):
        second = filled.search(QUESTION, k=place).selection.candidates[-1]

        explained = why_not(filled, second.id, asking(k=place - 1))

        assert check_advisable(explained)
        assert not any(change.displaced for change in explained.changes[:1])


@pytest.mark.parametrize("preset", sorted(PRESETS))
def test_whatever_is_proposed_is_what_a_person_would_do(
    make_base: Make, preset: str
) -> None:
    """Limits and depths grow, floors fall, protections are switched on."""
    base = make_base(preset=preset)
    for text in (*NOTES, *LEAVE):
        base.add(text)

    for text in (NOTES[3], *LEAVE[1:]):
        for question in (QUESTION, "hello there"):
            for k in (None, 1):
                request = asking(question, k=k, item="Sleep")
                check_advisable(why_not(base, chunk_with(base, text), request))


def test_a_protection_that_is_off_is_switched_on(make_base: Make) -> None:
    """The strongest keyword hit comes in by the switch that protects it."""
    base = make_base(preset="tenant_kb")
    for text in (*NOTES, *LEAVE):
        base.add(text)
    base.override(
        {"keyword_include_enable": False, "score_floor": 1.0, "rerank_trigger_max": 1.0}
    )
    question = "Employees window ladder in room 10 of years"

    explained = why_not(base, chunk_with(base, "Note 10"), asking(question))

    turned = {a.name: a.after for c in explained.changes for a in c.assignments}
    assert turned["keyword_include_enable"] is True


def test_a_k_of_the_request_is_not_taken_for_a_setting(make_base: Make) -> None:
    """The setting of a preset that is called k as well has no effect beside it."""
    base = make_base(preset="tenant_kb")
    for text in (*NOTES, *LEAVE):
        base.add(text)
    base.override({"score_floor_enable": False, "max_per_document": 9})
    found = base.search(QUESTION, k=3)
    target = found.selection.candidates[-1].id

    given = why_not(base, target, asking(k=1))
    base.override({"k": 1})
    stored = why_not(base, target, asking())

    def variables(explained: WhyNot) -> set[str]:
        return {a.variable for c in explained.changes for a in c.assignments}

    assert "--top" in variables(given)
    assert "RETRIEVAL_K" not in variables(given)
    assert "RETRIEVAL_K" in variables(stored)


@settings(max_examples=200)
@given(
    start=st.integers(-1000, 1000),
    edge=st.integers(-1000, 1000),
    above=st.booleans(),
)
def test_the_least_change_of_a_monotone_test_is_found(
    start: int,
    edge: int,
    above: bool,  # noqa: FBT001 -- drawn by hypothesis
) -> None:
    """For a test that holds from an edge on, the edge is found to nine places."""
    number = Number("x", "X", start / 1000, (-1.0, 1.0), whole=False)
    limit = edge / 1000

    def good(value: float) -> bool:
        return value >= limit if above else value <= limit

    if good(start / 1000):
        return
    assert number.least(good) == limit


@settings(max_examples=100)
@given(start=st.integers(1, 500), step=st.integers(1, 100_000))
def test_the_least_whole_number_is_found_however_far(start: int, step: int) -> None:
    """Without an upper bound the search goes on."""
    number = Number("x", "X", start, (1, float("inf")))

    found = number.least(lambda value: value >= start + step)

    assert found == start + step


def test_a_number_that_is_none_is_turned_on_mildly() -> None:
    """From none, the least that does it is taken from the milder end."""
    number = Number("x", "X", None, (0.0, 1.0), whole=False)

    assert number.least(lambda v: v is not None and v <= 0.4) == 0.4
    assert number.size(0.4) == 1.0


def test_a_number_without_a_good_value_is_not_turned() -> None:
    """A failed search is no value."""
    number = Number("x", "X", 0.5, (0.0, 1.0), whole=False)

    assert number.least(lambda _: False) is NOTHING


def test_a_switch_has_only_its_other_values() -> None:
    """The first other value that does it is taken."""
    switch = Switch("x", "X", "gap", ("mmr", "off"))

    assert switch.least(lambda v: v == "off") == "off"
    assert switch.least(lambda _: False) is NOTHING
    assert switch.size("off") == 1.0


class CountingJudge:
    """Accepts everything, and counts what it is asked about."""

    id = "counting"

    def __init__(self) -> None:
        self.asked: list[str] = []

    def review(self, query: Query, candidates: tuple[Candidate, ...]) -> list[Opinion]:
        """Accept all."""
        self.asked += [c.id for c in candidates]
        return [Opinion.ACCEPT for _ in candidates]

    def scores(self, query: Query, candidates: tuple[Candidate, ...]) -> list[float]:
        """Score all alike."""
        self.asked += [c.id for c in candidates]
        return [0.5 for _ in candidates]


def test_judge_and_reranker_are_asked_once_about_each_candidate() -> None:
    """Hundreds of runs do not become hundreds of calls."""
    counting = CountingJudge()
    parts = asked_once(Parts(0.1, judge=counting, reranker=counting))
    pool = candidates("a 0.9\nb 0.8")
    query = Query(text="q")

    assert parts.judge is not None
    assert parts.reranker is not None
    for _ in range(3):
        assert parts.judge.review(query, pool) == [Opinion.ACCEPT] * 2
        assert parts.reranker.scores(query, pool) == [0.5, 0.5]

    assert parts.reranker.id == "counting"
    assert counting.asked == ["a", "b"] * 2


def test_a_rerun_gives_the_bytes_of_the_query_path(filled: KnowledgeBase) -> None:
    """A shallower depth after a deeper one is cut from it, and equal."""
    request = asking()
    with filled.store.shelf("default") as shelf:
        rerun = Rerun(shelf, request, filled.embedder, filled.calibration)
        for depth in (40, 7, 3, 12):
            configured = filled.configured().changed(depth=depth, top_k=2)
            plan = filled.plan(request, configured)

            retriever = filled.retriever(plan)
            found = retriever.chosen(retriever.drawn(shelf, request))

            assert rerun.run(plan) == (found.refused, found.selection)


@settings(
    max_examples=10,
    deadline=None,
    suppress_health_check=[
        HealthCheck.function_scoped_fixture,
        HealthCheck.too_slow,
    ],
)
@given(
    k=st.integers(1, 4),
    floor=st.sampled_from([0.1, 0.4, 0.9]),
    place=st.integers(0, len(NOTES) - 1),
)
def test_any_verified_change_is_true(
    filled: KnowledgeBase, k: int, floor: float, place: int
) -> None:
    """Whatever is dropped for whatever reason, what is reported holds."""
    base = filled
    base.override({"relevance_floor": floor, "top_k": k})
    target = chunk_with(base, NOTES[place])

    explained: WhyNot = why_not(base, target, asking())

    for change in (*explained.changes, *explained.pairs):
        given_values = {a.name: a.after for a in change.assignments}
        selected = outcome_of(base, **given_values)
        assert selected[change.place - 1] == target
        assert not set(change.displaced) & set(selected)
        assert set(change.admitted) <= set(selected)


def test_configurations_are_compared_question_by_question(
    filled: KnowledgeBase,
) -> None:
    """Who comes, who leaves and which stage made the difference."""
    before = filled.configured()
    after = before.changed(top_k=1)

    [explained] = diff_configurations(filled, before, after, [asking()])

    assert not explained.same
    assert {m.kind for m in explained.moved} == {"lost"}
    assert {(m.stage, m.reason) for m in explained.moved} == {("top_k", "trim_top_n")}
    shown = difference_json(explained)
    assert shown["after"]["selected"] == shown["before"]["selected"][:1]
    [back] = diff_configurations(filled, after, before, [asking()])
    assert {m.kind for m in back.moved} == {"added"}
    assert next(iter(difference_lines(back))).startswith("≠ How many")


def test_the_same_configuration_makes_no_difference(filled: KnowledgeBase) -> None:
    """Equal settings, equal answers."""
    configured = filled.configured()

    [explained] = diff_configurations(filled, configured, configured, [asking()])

    assert explained.same
    assert list(difference_lines(explained)) == [f"= {QUESTION}"]


def test_refusals_and_answers_are_different(filled: KnowledgeBase) -> None:
    """A question that one configuration refuses is marked."""
    open_gate = filled.configured().changed(gate_enable=False, relevance_floor=0.0)

    [explained] = diff_configurations(
        filled, filled.configured(), open_gate, [asking("hello there")]
    )
    [back] = diff_configurations(
        filled, open_gate, filled.configured(), [asking("hello there")]
    )

    assert (explained.now_answered, explained.now_refused) == (True, False)
    assert (back.now_answered, back.now_refused) == (False, True)
    assert {m.stage for m in back.moved} == {"gate"}


def test_depth_and_order_are_named_as_what_made_the_difference(
    filled: KnowledgeBase,
) -> None:
    """A chunk that was not recalled was kept out by recall."""
    wide = filled.configured().changed(guardrails_enable=False, top_k=4)
    shallow = filled.configured().changed(
        guardrails_enable=False, top_k=4, depth=4, keyword_weight=1.0
    )

    [explained] = diff_configurations(filled, wide, shallow, [asking()])

    assert {m.stage for m in explained.moved} <= {"recall", "order", "top_k"}
    swapped = difference(
        "q",
        explained.before,
        replace(explained.before, selection=_reversed(explained.before)),
    )
    assert {m.kind for m in swapped.moved} == {"moved"}
    assert {m.stage for m in swapped.moved} == {"order"}
    assert any("place 1, now 4" in line for line in difference_lines(swapped))


def _reversed(answered: Answered) -> object:
    selection = answered.selection
    return replace(selection, candidates=selection.candidates[::-1])


def test_configurations_are_named(filled: KnowledgeBase, tmp_path: object) -> None:
    """Current, a preset, or a file with fields or variables; wrong ones are refused."""
    folder = filled.store.folder.parent
    good = folder / "good.yaml"
    good.write_text("KEPT_TOP_K: 3\nrelevance_floor: 0.5\n")
    other = folder / "other.json"
    other.write_text('{"preset": "tenant_kb", "k": 2}')
    bad = folder / "bad.yaml"
    bad.write_text("top_k: 0\n")
    listed = folder / "list.yaml"
    listed.write_text("- 1\n")

    assert configuration_named(filled, "current") == filled.configured()
    assert configuration_named(filled, "preset:grants").preset.name == "grants"
    chosen = configuration_named(filled, str(good)).settings
    assert chosen == filled.configured().settings.changed(top_k=3, relevance_floor=0.5)
    assert configuration_named(filled, str(other)).preset.name == "tenant_kb"
    with pytest.raises(SettingsError, match=r"bad.yaml: KEPT_TOP_K is 0; expected a"):
        configuration_named(filled, str(bad))
    with pytest.raises(InputError, match="holds no settings"):
        configuration_named(filled, str(listed))
    with pytest.raises(InputError, match="expected 'current'"):
        configuration_named(filled, str(folder / "missing.yaml"))
