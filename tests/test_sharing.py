"""Parts of a work, on all cores."""

import threading
from functools import partial

import pytest

from kept.sharing import all_cores, shared


def test_results_come_in_the_order_of_the_parts() -> None:
    """Whoever did a part, its result stands in its place."""
    assert shared([partial(pow, 2, place) for place in range(9)]) == [
        2**place for place in range(9)
    ]


def test_nothing_is_nothing() -> None:
    """Without parts there are no results."""
    assert shared([]) == []


def test_a_part_is_done_once() -> None:
    """Taking a part back and having it done never both happen."""
    done: list[int] = []

    for _ in range(50):
        done.clear()
        shared([partial(done.append, place) for place in range(7)])
        assert sorted(done) == list(range(7))


def test_nobody_waits_for_helpers_that_are_busy() -> None:
    """Helpers are held up until the work is done: it is done in the asking thread."""
    asking = threading.current_thread()
    let_go = threading.Event()
    held = [
        threading.Thread(target=shared, args=([_nothing, let_go.wait],))
        for _ in range(all_cores())
    ]
    for thread in held:
        thread.start()
    try:
        workers = [threading.current_thread for _ in range(all_cores() + 3)]
        found = shared(workers)
    finally:
        let_go.set()
        for thread in held:
            thread.join()

    assert asking in found


def test_what_goes_wrong_in_a_part_is_told() -> None:
    """An error is raised, not lost."""
    with pytest.raises(ZeroDivisionError):
        shared([_nothing, partial(divmod, 1, 0), _nothing])


def _nothing() -> None:
    return None
