"""The nouns: values that never change in place."""

import pytest

from kept.errors import MissingSignalError
from kept.kernel.model import Query, rescored
from kept.testing.tables import candidates


def test_a_missing_signal_names_those_that_are_there() -> None:
    """A missing measurement is an error, not 0."""
    [candidate] = candidates("a 0.9")

    with pytest.raises(MissingSignalError, match=r"no signal 'fused'.*it has: bm25, "):
        candidate.signal("fused")


def test_scoring_adds_signals_to_a_copy() -> None:
    """The original keeps its score and its signals."""
    [candidate] = candidates("a 0.9")

    scored = candidate.scored(0.5, fused=0.5)

    assert (scored.score, scored.signal("fused")) == (0.5, 0.5)
    assert candidate.score == 0.9
    assert "fused" not in candidate.signals


def test_a_signal_is_set_once() -> None:
    """The measurement that brought a chunk in is still there when it is explained."""
    [candidate] = candidates("a 0.9")

    with pytest.raises(ValueError, match="signals are set once"):
        candidate.scored(0.5, cosine=0.1)


def test_the_fast_copy_equals_the_plain_one() -> None:
    """Filling the slots directly gives the very same value."""
    [candidate] = candidates("a 0.9 ! vector=1,0 doc=d tags=x")

    fast = rescored(candidate, 0.5, {**candidate.signals, "fused": 0.5})

    assert fast == candidate.scored(0.5, fused=0.5)
    assert fast.vector is candidate.vector
    assert candidate.score == 0.9


def test_shielding_and_forcing_return_copies() -> None:
    """The forced are protected too."""
    [candidate] = candidates("a 0.9")

    assert candidate.shielded().protected
    assert candidate.forced().pinned
    assert candidate.forced().protected
    assert not candidate.protected


def test_a_query_names_no_item_and_pins_nothing_by_itself() -> None:
    """The plain question is the common one."""
    query = Query(text="q")

    assert (query.intent, query.item, query.pinned) == ("other", None, frozenset())
