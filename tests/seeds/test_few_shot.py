"""Few-shot references: the guardrails of Specs 33 to 36, as stages."""

import pytest

from kept.kernel.model import Query
from kept.kernel.pipeline import Pipeline
from kept.kernel.presets import Parts, preset
from kept.kernel.stages import AcceptedCap, AskJudge, CharBudget, TopK
from kept.testing.tables import ScriptedJudge, candidates

SLEEP = Query(text="evidence", item="Sleep")


def chosen(
    pool: str, judge: ScriptedJudge | None = None, **settings: object
) -> list[str]:
    """Return the ids of the references chosen for Sleep, in order."""
    few_shot = preset("few_shot")
    plan = few_shot.plan(few_shot.configure(settings), Parts(0.1, judge=judge))
    return [c.id for c in plan.pipeline(SLEEP, candidates(pool)).candidates]


def test_reference_threshold_filters_low_similarity() -> None:
    """Given two matches at 0.9 and 0.1, threshold 0.5 keeps only 0.9.

    The document's similarity is (1 + cosine) / 2: cosines of 0.8 and -0.8.
    """
    pool = """
        good  0.8 label.Sleep=1 text=good
        bad  -0.8 label.Sleep=1 text=bad
    """

    kept = chosen(
        pool,
        top_k_references=2,
        min_reference_similarity=0.5,
        max_reference_chars_per_item=0,
    )

    assert kept == ["good"]


def test_reference_budget_limits_included_matches() -> None:
    """A small budget includes only the first N matches: 5 keeps one of length 5."""
    pool = """
        first  0.9 label.Sleep=1 text=12345
        second 0.8 label.Sleep=1 text=12345
    """

    kept = chosen(
        pool,
        top_k_references=3,
        min_reference_similarity=0.0,
        max_reference_chars_per_item=5,
    )

    assert kept == ["first"]


def test_defaults_preserve_existing_selection() -> None:
    """Threshold 0.0 and budget 0 behave exactly as before: sort and take top_k.

    The pool is deliberately unsorted.
    """
    pool = """
        low  0.2 label.Sleep=1
        high 0.9 label.Sleep=1
        mid  0.5 label.Sleep=1
    """

    kept = chosen(
        pool,
        top_k_references=2,
        min_reference_similarity=0.0,
        max_reference_chars_per_item=0,
    )

    assert kept == ["high", "mid"]


def test_the_threshold_is_inclusive() -> None:
    """Drop matches with similarity < min_reference_similarity; equal stays."""
    pool = "a 0.2 label.Sleep=1\nb 0.1999 label.Sleep=1"

    assert chosen(pool, min_reference_similarity=0.6) == ["a"]


def test_the_first_that_exceeds_the_budget_ends_the_list() -> None:
    """The exact algorithm breaks, so that a shorter, worse match does not slip in."""
    pool = """
        a 0.9 label.Sleep=1 text=123
        b 0.8 label.Sleep=1 text=123456
        c 0.7 label.Sleep=1 text=1
    """

    kept = chosen(pool, top_k_references=3, max_reference_chars_per_item=6)

    assert kept == ["a"]


def test_the_budget_comes_after_the_top_k() -> None:
    """Take up to top_k in order, then accumulate: the third never counts."""
    pool = """
        a 0.9 label.Sleep=1 text=12345
        b 0.8 label.Sleep=1 text=123456
        c 0.7 label.Sleep=1 text=1
    """

    kept = chosen(pool, top_k_references=2, max_reference_chars_per_item=11)

    assert kept == ["a", "b"]


def test_only_chunks_tagged_for_the_item_are_weighed_if_enabled() -> None:
    """Filter candidates to chunks tagged for that item (Spec 34)."""
    pool = """
        a 0.9 label.Sleep=1 tags=Tired
        b 0.8 label.Sleep=1 tags=Sleep
    """

    assert chosen(pool, top_k_references=1) == ["a"]
    assert chosen(pool, top_k_references=1, enable_item_tag_filter=True) == ["b"]


def test_only_accepted_references_go_on() -> None:
    """Include only accept references in the few-shot prompt (Spec 36)."""
    pool = "a 0.9 label.Sleep=1\nb 0.8 label.Sleep=2"
    judge = ScriptedJudge(frozenset({"b"}))

    assert chosen(pool, judge, enable_reference_validation=True) == ["b"]


def test_a_null_label_takes_no_place() -> None:
    """References with reference_score=None are omitted, here before the top k.

    In the original they took a slot and budget and vanished only when formatted:
    the old order leaves one reference where the new one has two.
    """
    pool = """
        none 0.9 label.Sleep=null
        a    0.8 label.Sleep=0
        b    0.7 label.Sleep=3
    """

    old = Pipeline.of(TopK(2))(SLEEP, candidates(pool)).candidates
    formatted = [c.id for c in old if c.chunk.labels["Sleep"] is not None]

    assert formatted == ["a"]
    assert chosen(pool, top_k_references=2) == ["a", "b"]


def test_top_k_above_two_works_without_validation() -> None:
    """EMBEDDING_VALIDATION_MAX_REFS_PER_ITEM caps what was validated.

    In the original the cap held without validation too: a top k of 4 gave 2.
    """
    pool = "\n".join(f"c{n} {0.9 - n / 10} label.Sleep=1" for n in range(4))
    old = Pipeline.of(TopK(4), AcceptedCap(2))(SLEEP, candidates(pool))

    assert len(old.candidates) == 2
    assert len(chosen(pool, top_k_references=4)) == 4


def test_at_most_two_accepted_references_per_item() -> None:
    """The cap applies when validation is on (default: 2)."""
    pool = "\n".join(f"c{n} {0.9 - n / 10} label.Sleep=1" for n in range(4))
    judge = ScriptedJudge(frozenset({"c1", "c2", "c3"}))

    kept = chosen(pool, judge, top_k_references=4, enable_reference_validation=True)

    assert kept == ["c1", "c2"]


def test_rejected_references_do_not_waste_the_budget_in_default() -> None:
    """The documented order judges last; the default preset judges first.

    With a budget for one reference, the documented order ends with nothing.
    """
    pool = candidates("a 0.9 text=12345\nb 0.8 text=12345")
    judge = ScriptedJudge(frozenset({"b"}))

    documented = Pipeline.of(CharBudget(5), AskJudge(judge))(SLEEP, pool)
    default = preset("default")
    plan = default.plan(
        default.configure({"validation_enable": True, "max_chars": 5}),
        Parts(0.05, judge=judge),
    )

    assert documented.candidates == ()
    assert [c.id for c in plan.pipeline(SLEEP, pool).candidates] == ["b"]


@pytest.mark.parametrize("participant_order", ["abc", "cab", "bca"])
def test_ordering_is_deterministic(participant_order: str) -> None:
    """Within an item, references are in retrieval order, not in order of arrival."""
    rows = {"a": "a 0.5 label.Sleep=1", "b": "b 0.5 label.Sleep=1"}
    rows["c"] = "c 0.9 label.Sleep=1"
    pool = "\n".join(rows[name] for name in participant_order)

    assert chosen(pool, top_k_references=3) == ["c", "a", "b"]
