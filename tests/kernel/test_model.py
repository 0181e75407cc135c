"""The nouns: values that never change in place."""

import pytest

from kept.errors import MissingSignalError
from kept.kernel.model import Query, candidate_of
from kept.testing.tables import candidates


def test_a_missing_signal_names_those_that_are_there() -> None:
    """A missing measurement is an error, not 0."""
    [candidate] = candidates("a 0.9")

    with pytest.raises(MissingSignalError, match=r"no signal 'fused'.*it has: bm25, "):
        candidate.signal("fused")


def test_the_fast_candidate_equals_the_plain_one() -> None:
    """Filling the slots directly gives the very same value."""
    [candidate] = candidates("a 0.9 ! vector=1,0 doc=d tags=x")

    fast = candidate_of(
        candidate.chunk,
        candidate.document,
        0.9,
        candidate.signals,
        candidate.vector,
        protected=True,
    )

    assert fast == candidate
    assert fast.vector is candidate.vector


def test_a_query_names_no_item_and_pins_nothing_by_itself() -> None:
    """The plain question is the common one."""
    query = Query(text="q")

    assert (query.intent, query.item, query.pinned) == ("other", None, frozenset())
