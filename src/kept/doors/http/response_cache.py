"""The cache of answers, shared by tenants."""

import threading
import unicodedata
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

V = TypeVar("V")
CacheKey = tuple[Hashable, ...]


def normalised(question: str) -> str:
    """Return a question without differences that change no answer, such as spaces."""
    return " ".join(unicodedata.normalize("NFC", question).split())


class ResponseCache(Generic[V]):
    """Keeps the latest *entries* values for *seconds* each.

    A key holds everything that its value depends on, so nothing is invalidated. Its
    first part is the tenant: a full cache drops the oldest value of the tenant with
    the most, so that a busy tenant cannot push out the others.
    """

    def __init__(
        self, seconds: float, entries: int, clock: Callable[[], float]
    ) -> None:
        self._seconds = seconds
        self._entries = entries
        self._clock = clock
        self._lock = threading.Lock()
        self._values: dict[Hashable, OrderedDict[CacheKey, tuple[float, V]]] = {}
        self._count = 0

    def get(self, key: CacheKey) -> V | None:
        """Return the value of a key, unless it has expired."""
        with self._lock:
            own = self._values.get(key[0], OrderedDict())
            if key not in own:
                return None
            until, value = own[key]
            if self._clock() >= until:
                self._drop(key)
                return None
            own.move_to_end(key)
            return value

    def put(self, key: CacheKey, value: V) -> None:
        """Keep a value."""
        if not self._seconds:
            return
        with self._lock:
            own = self._values.setdefault(key[0], OrderedDict())
            self._count += key not in own
            own[key] = (self._clock() + self._seconds, value)
            own.move_to_end(key)
            while self._count > self._entries:
                largest = max(self._values.values(), key=len)
                self._drop(next(iter(largest)))

    def _drop(self, key: CacheKey) -> None:
        own = self._values[key[0]]
        del own[key]
        self._count -= 1
        if not own:
            del self._values[key[0]]
