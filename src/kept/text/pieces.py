"""Pieces of text between spaces, analysed once and cached."""

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class Pieces(dict[str, T]):
    """What *look* finds in each piece; the shorter ones met last are remembered.

    Only for a *look* whose findings in a text are those in its pieces, in order.
    """

    def __init__(
        self, look: Callable[[str], T], *, most: int = 200_000, chars: int = 48
    ) -> None:
        super().__init__()
        self._look = look
        self._most = most
        self._chars = chars

    def __missing__(self, piece: str) -> T:
        found = self._look(piece)
        if len(piece) <= self._chars:
            if len(self) >= self._most:
                self.clear()
            self[piece] = found
        return found
