"""The cache: answers that are still true, for whoever may read them."""

import threading
import unicodedata
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

V = TypeVar("V")


def normalised(question: str) -> str:
    """Return a question without what changes no answer: spaces, ways of writing."""
    return " ".join(unicodedata.normalize("NFC", question).split())


class Cached(Generic[V]):
    """Remembers values for *seconds*, the latest *entries* of them.

    A key holds everything that the value depends on, so nothing has to be thrown
    away when something changes: the old key is never asked for again.
    """

    def __init__(
        self, seconds: float, entries: int, clock: Callable[[], float]
    ) -> None:
        self._seconds = seconds
        self._entries = entries
        self._clock = clock
        self._lock = threading.Lock()
        self._values: OrderedDict[Hashable, tuple[float, V]] = OrderedDict()

    def get(self, key: Hashable) -> V | None:
        """Return what is remembered, if it is young enough."""
        with self._lock:
            found = self._values.get(key)
            if found is None:
                return None
            until, value = found
            if self._clock() >= until:
                del self._values[key]
                return None
            self._values.move_to_end(key)
            return value

    def put(self, key: Hashable, value: V) -> None:
        """Remember a value."""
        if not self._seconds:
            return
        with self._lock:
            self._values[key] = (self._clock() + self._seconds, value)
            self._values.move_to_end(key)
            while len(self._values) > self._entries:
                self._values.popitem(last=False)
