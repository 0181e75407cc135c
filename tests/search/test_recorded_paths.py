"""Paths of candidates: kept for those who look later, and not for ever."""

from collections.abc import Callable

import pytest

from kept.errors import NotFoundError
from kept.knowledge_base.base import KnowledgeBase
from kept.search.retrieve import Request
from kept.stores.query_records import Recorder

Make = Callable[..., KnowledgeBase]
QUESTION = "When does the Leeds office open?"


def asked(base: KnowledgeBase, name: str) -> None:
    """Ask under a name, so that the path of every candidate is kept."""
    base.answer(Request(question=QUESTION), trace_id=name)


def test_a_named_query_is_found_by_name_and_number(make_base: Make) -> None:
    """With what happened to every candidate; the counts sum."""
    base = make_base()
    base.add("The Leeds office opens at eight and closes at six.")
    asked(base, "t1")

    query = base.traced("t1")

    assert query == base.traced("1")
    assert query.path is not None
    path = query.path
    assert path["recalled"] + path["added"] == path["selected"] + path["dropped"]
    assert [one["chunk_id"] for one in path["candidates"]] == query.selected


def test_a_query_without_a_name_keeps_no_path(make_base: Make) -> None:
    """The command line pays for nothing that it does not show."""
    base = make_base()
    base.add("The Leeds office opens at eight and closes at six.")
    base.search(QUESTION)

    assert base.traced("1").path is None
    assert base.traced("1").id == ""


def test_only_the_latest_paths_are_kept(make_base: Make) -> None:
    """Older queries keep who was selected; the oldest are let go of."""
    base = make_base()
    base.recorder = Recorder(base.store.database, keep=4, keep_paths=2)
    base.add("The Leeds office opens at eight and closes at six.")
    for number in range(1, 9):
        asked(base, f"t{number}")

    kept = [query.no for query in base.last_queries(10)]

    assert kept == [5, 6, 7, 8]
    assert [base.traced(str(no)).path is not None for no in kept] == [
        *(False, False),
        *(True, True),
    ]
    assert len(base.last_paths(10)) == 2
    assert base.traced("t5").selected


@pytest.mark.parametrize("named", ["", "0", "2", "t", "9" * 30, "-1", "\u0661"])
def test_what_was_never_recorded_is_not_found(make_base: Make, named: str) -> None:
    """Neither by number nor by name, whatever is asked for."""
    base = make_base()
    base.add("The Leeds office opens at eight and closes at six.")
    base.search(QUESTION)

    with pytest.raises(NotFoundError, match="the traces list"):
        base.traced(named)


def test_the_path_holds_no_text(make_base: Make) -> None:
    """Neither of the question nor of the documents, their titles included."""
    base = make_base()
    base.add("The Leeds office opens at eight and closes at six.", title="Hours")
    asked(base, "t1")

    reported = repr(base.traced("t1"))

    for word in ("Leeds", "eight", "Hours"):
        assert word not in reported
