"""Windows: the next texts are embedded while the previous ones are stored."""

from collections import deque
from collections.abc import (
    Callable,
    Collection,
    Generator,
    Iterable,
    Iterator,
    Sequence,
)
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from typing import Generic, TypeVar

from kept._runtime import Closing
from kept.kernel.ports import Vectors

AT_ONCE = 3
MOST_CHARS = 4_000_000

T = TypeVar("T")
Work = Generator[Sequence[str], Vectors, Iterable[T]]


@dataclass
class _Begun(Generic[T]):
    """Work that waits for the vectors of what it asked for."""

    work: Work[T]
    names: Collection[str]
    chars: int
    vectors: "Future[Vectors]"


class Ahead(Closing, Generic[T]):
    """Does work in order whose embedding a thread does in advance.

    Work is a generator: it asks for vectors by yielding texts, and returns what it
    made. Its first texts are embedded as soon as it is begun. It is given their
    vectors when all work before it is done, so from there on it sees what it would
    see without anything done ahead. One thread embeds, what was asked for first
    first: while the first in line is decided on, stored and reported, the vectors of
    those behind it are made.
    """

    def __init__(self, embed: Callable[[Sequence[str]], Vectors]) -> None:
        self._embed = embed
        self._line: deque[_Begun[T]] = deque()
        self._thread = ThreadPoolExecutor(1, "kept-ahead")

    def close(self) -> None:
        """Let the thread go; what it has not begun is left."""
        self._thread.shutdown(cancel_futures=True)

    def __contains__(self, name: object) -> bool:
        return any(name in begun.names for begun in self._line)

    def begin(self, work: Work[T], names: Collection[str], chars: int) -> None:
        """Queue work of so many *chars*; *names* are what it is about.

        If it fails to begin, that is raised in its turn.
        """
        try:
            vectors = self._asked(next(work))
        except Exception as error:  # noqa: BLE001 -- raised in its turn
            vectors = Future()
            vectors.set_exception(error)
        self._line.append(_Begun(work, names, chars, vectors))

    def done(self) -> Iterator[T]:
        """Yield what is made by now, and wait for it while there is no more room."""
        while self._line and (self._line[0].vectors.done() or self._full):
            yield from self._further()

    def rest(self) -> Iterator[T]:
        """Yield all that is still to be made; nothing, once something has failed."""
        while self._line:
            yield from self._further()

    @property
    def _full(self) -> bool:
        chars = sum(begun.chars for begun in self._line)
        return len(self._line) >= AT_ONCE or chars > MOST_CHARS

    def _further(self) -> Iterator[T]:
        """Take the first in line as far as it gets without waiting once more."""
        first = self._line[0]
        try:
            try:
                first.vectors = self._asked(first.work.send(first.vectors.result()))
            except StopIteration as ended:
                self._line.popleft()
                yield from ended.value
        except Exception:
            self._line.clear()
            raise

    def _asked(self, texts: Sequence[str]) -> "Future[Vectors]":
        if texts:
            return self._thread.submit(copy_context().run, self._embed, texts)
        nothing: Future[Vectors] = Future()
        nothing.set_result(self._embed(texts))
        return nothing
