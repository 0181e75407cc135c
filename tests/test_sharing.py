"""Parts of a work, on all cores."""

import threading
from functools import partial

import pytest

from kept._runtime import all_cores, shared


def test_results_are_in_the_order_of_the_parts() -> None:
    """Results are in order, whichever thread computed them."""
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


def test_busy_helper_threads_are_not_waited_for() -> None:
    """Every helper is held up, so all of the work is done in the asking thread."""
    let_go = threading.Event()
    held = [_holding_a_helper(let_go) for _ in range(all_cores() - 1)]
    try:
        found = shared([threading.current_thread] * (all_cores() + 3))
    finally:
        let_go.set()
        for thread in held:
            thread.join()

    assert set(found) == {threading.current_thread()}


def _holding_a_helper(let_go: threading.Event) -> threading.Thread:
    """Return once a helper has begun to wait until it is *let_go*."""
    begun = threading.Event()

    def hold() -> None:
        begun.set()
        let_go.wait()

    thread = threading.Thread(target=shared, args=([begun.wait, hold],))
    thread.start()
    begun.wait()
    return thread


def test_an_error_in_a_part_is_raised() -> None:
    """An error is raised, not lost."""
    with pytest.raises(ZeroDivisionError):
        shared([_nothing, partial(divmod, 1, 0), _nothing])


def _nothing() -> None:
    return None
