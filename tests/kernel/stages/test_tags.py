"""Tags and labels."""

import pytest

from kept.errors import InputError
from kept.kernel.model import Query
from kept.kernel.stages import LabelRequired, TagFilter
from kept.testing.tables import candidates, decisions_in, ids

SLEEP = Query(text="q", item="Sleep")


def test_only_candidates_tagged_for_the_item_stay() -> None:
    """Without tags of its own, the filter asks for the query's item."""
    pool = candidates("a 0.9 tags=Tired,Sleep\nb 0.8 tags=Tired\nc 0.7\nd 0.6 !")

    outcome = TagFilter()(SLEEP, pool)

    assert sorted(ids(outcome)) == ["a", "d"]
    assert decisions_in(outcome)[1:] == [
        ("b", "dropped", "tag_filter", {"tags": "Tired", "any_of": "Sleep"}),
        ("c", "dropped", "tag_filter", {"tags": "", "any_of": "Sleep"}),
    ]


def test_any_of_the_given_tags_will_do() -> None:
    """The tags given come before the item."""
    pool = candidates("a 0.9 tags=budget\nb 0.8 tags=Sleep")

    assert ids(TagFilter(("budget", "eligibility"))(SLEEP, pool)) == ["a"]


def test_a_label_of_zero_is_a_label() -> None:
    """Null and absent labels go; 0 is the lowest score, not a missing one."""
    pool = candidates(
        "a 0.9 label.Sleep=0\nb 0.8 label.Sleep=null\nc 0.7 label.Tired=2"
    )

    outcome = LabelRequired()(SLEEP, pool)

    assert ids(outcome) == ["a"]
    assert decisions_in(outcome) == [
        ("b", "dropped", "label_required", {"item": "Sleep", "label": None}),
        ("c", "dropped", "label_required", {"item": "Sleep", "label": None}),
    ]


@pytest.mark.parametrize("stage", [TagFilter(), LabelRequired()])
def test_a_query_without_an_item_is_refused(stage: TagFilter | LabelRequired) -> None:
    """The message says what to add."""
    with pytest.raises(InputError, match="names no item"):
        stage(Query(text="q"), candidates("a 0.9"))
