"""The cache: answers that are still true, for whoever may read them."""

import threading
import unicodedata
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

V = TypeVar("V")
Key = tuple[Hashable, ...]


def normalised(question: str) -> str:
    """Return a question without what changes no answer: spaces, ways of writing."""
    return " ".join(unicodedata.normalize("NFC", question).split())


class Cached(Generic[V]):
    """Remembers values for *seconds*, the latest *entries* of them.

    A key holds everything that the value depends on, so nothing has to be thrown
    away when something changes: the old key is never asked for again. Its first part
    says whose it is: where room is needed, whoever has the most gives way.
    """

    def __init__(
        self, seconds: float, entries: int, clock: Callable[[], float]
    ) -> None:
        self._seconds = seconds
        self._entries = entries
        self._clock = clock
        self._lock = threading.Lock()
        self._values: dict[Hashable, OrderedDict[Key, tuple[float, V]]] = {}
        self._count = 0

    def get(self, key: Key) -> V | None:
        """Return what is remembered, if it is young enough."""
        with self._lock:
            own = self._values.get(key[0], OrderedDict())
            found = own.get(key)
            if found is None:
                return None
            until, value = found
            if self._clock() >= until:
                self._forget(key[0], key)
                return None
            own.move_to_end(key)
            return value

    def put(self, key: Key, value: V) -> None:
        """Remember a value."""
        if not self._seconds:
            return
        with self._lock:
            own = self._values.setdefault(key[0], OrderedDict())
            self._count += key not in own
            own[key] = (self._clock() + self._seconds, value)
            own.move_to_end(key)
            while self._count > self._entries:
                most = max(self._values, key=lambda owner: len(self._values[owner]))
                self._forget(most, next(iter(self._values[most])))

    def _forget(self, owner: Hashable, key: Key) -> None:
        del self._values[owner][key]
        self._count -= 1
        if not self._values[owner]:
            del self._values[owner]
