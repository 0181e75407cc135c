"""The cache: what is remembered, for how long, and who gives way."""

from house import Hands

from kept.doors.http.response_cache import ResponseCache


def test_what_is_too_old_is_forgotten() -> None:
    """A value is there until its seconds are over."""
    hands = Hands()
    cache: ResponseCache[int] = ResponseCache(180, 10, hands)
    cache.put(("a", "question"), 1)

    hands.now += 179
    young = cache.get(("a", "question"))
    hands.now += 1
    old = cache.get(("a", "question"))

    assert (young, old) == (1, None)


def test_one_who_asks_much_does_not_drive_out_the_others() -> None:
    """A full cache evicts the oldest entry of the tenant with the most entries."""
    cache: ResponseCache[int] = ResponseCache(180, 10, Hands())
    cache.put(("quiet", "question"), 0)
    for number in range(50):
        cache.put(("busy", number), number)

    assert cache.get(("quiet", "question")) == 0
    assert [n for n in range(50) if cache.get(("busy", n)) is not None] == [
        *range(41, 50)
    ]


def test_all_room_is_used_and_never_more() -> None:
    """A value that is put again takes no second place."""
    cache: ResponseCache[int] = ResponseCache(180, 3, Hands())
    for _ in range(2):
        for number in range(3):
            cache.put(("a", number), number)
    cache.put(("b", 0), 0)

    assert [cache.get(("a", number)) for number in range(3)] == [None, 1, 2]
    assert cache.get(("b", 0)) == 0


def test_without_seconds_nothing_is_remembered() -> None:
    """Zero seconds switch it off."""
    cache: ResponseCache[int] = ResponseCache(0, 3, Hands())

    cache.put(("a", 0), 0)

    assert cache.get(("a", 0)) is None
