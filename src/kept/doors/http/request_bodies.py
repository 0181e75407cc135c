"""Unpacking: bodies that came compressed by gzip, bounded while they are unpacked."""

import asyncio
import zlib

from starlette.types import Message, Receive

from kept.http.problems import Problem

GZIP = "gzip"
NAMES = frozenset({GZIP, "x-gzip"})
PIECE_BYTES = 1_000_000
_GZIP_BITS = 16 + zlib.MAX_WBITS


def is_packed(encoding: str) -> bool:
    """Tell whether a body is to be unpacked; refuse what cannot be."""
    name = encoding.strip().lower()
    if name in NAMES:
        return True
    if name in ("", "identity"):
        return False
    raise Problem(
        "unsupported_encoding",
        f"Content-Encoding is {encoding[:40]!r}; expected gzip, or none",
        headers={"Accept-Encoding": GZIP, "Connection": "close"},
    )


class Unpacked:
    """The body of a request, a piece at a time, of at most *most_bytes* in all."""

    def __init__(self, receive: Receive, most_bytes: int) -> None:
        self._receive = receive
        self._most_bytes = most_bytes
        self._gzip = zlib.decompressobj(_GZIP_BITS)
        self._rest = b""
        self._size = 0
        self._read = 0
        self._more = True

    async def __call__(self) -> Message:
        """Return the next piece; others are served between two of them."""
        if not self._rest:
            message = await self._receive()
            if message["type"] != "http.request" or not self._more:
                return message
            self._rest = message.get("body", b"")
            self._more = message.get("more_body", False)
            self._read += len(self._rest)
        piece = self._next()
        more = bool(self._rest) or self._more
        if self._read and not more and not self._gzip.eof:
            raise Problem("invalid_encoding", "the body ends before its gzip does")
        await asyncio.sleep(0)
        return {"type": "http.request", "body": piece, "more_body": more}

    def _next(self) -> bytes:
        """Unpack a piece of what came; a body may have several parts."""
        if self._rest and self._gzip.eof:
            self._gzip = zlib.decompressobj(_GZIP_BITS)
        try:
            piece = self._gzip.decompress(self._rest, PIECE_BYTES)
        except zlib.error:
            raise Problem(
                "invalid_encoding", "the body is said to be gzip, and is not"
            ) from None
        ended = self._gzip.eof
        self._rest = self._gzip.unused_data if ended else self._gzip.unconsumed_tail
        self._size += len(piece)
        if self._size > self._most_bytes:
            raise Problem(
                "body_too_large",
                f"at most {self._most_bytes:,} bytes are taken, also when unpacked",
                headers={"Connection": "close"},
            )
        return piece
