"""Closing: what holds something open lets go of it at the end of a ``with``."""

import os
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self

from kept.errors import StoreError


class Closing(ABC):
    """Something to be closed, also by leaving the block that it was opened for."""

    @abstractmethod
    def close(self) -> None:
        """Let go of what is held."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


class Opener:
    """The process that opened *what*, which is of no use to a fork of it.

    Threads do not come along, and two processes on one connection disturb each other.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._process = os.getpid()

    @property
    def gone(self) -> bool:
        """Whether this process is another one."""
        return os.getpid() != self._process

    def demand(self) -> None:
        """Refuse to use it in a fork."""
        if self.gone:
            msg = (
                f"{self._what} was opened in process {self._process}, from which this "
                f"one, {os.getpid()}, was forked; open it again here, or fork before"
            )
            raise StoreError(msg)
