"""Request bodies: gzip, decompressed within a limit, and forms that are complete."""

import asyncio
import zlib

from python_multipart.multipart import parse_options_header
from starlette.types import Message, Receive

from kept.doors.http.problems import Problem

MULTIPART = "multipart/form-data"
GZIP = "gzip"
PIECE_BYTES = 1_000_000
_GZIP_NAMES = frozenset({GZIP, "x-gzip"})
_GZIP_BITS = 16 + zlib.MAX_WBITS


def is_form(content_type: str) -> bool:
    """Return whether a body is declared to be a form with files."""
    return content_type.lower().startswith(MULTIPART)


def is_gzip(encoding: str) -> bool:
    """Return whether a body has to be decompressed; refuse other encodings."""
    name = encoding.strip().lower()
    if name in _GZIP_NAMES:
        return True
    if name in ("", "identity"):
        return False
    raise Problem(
        "unsupported_encoding",
        f"Content-Encoding is {encoding[:40]!r}; expected gzip, or none",
        headers={"Accept-Encoding": GZIP, "Connection": "close"},
    )


class GzipBody:
    """Receives a gzip body piece by piece, of at most *most_bytes* decompressed."""

    def __init__(self, receive: Receive, most_bytes: int) -> None:
        self._receive = receive
        self._most_bytes = most_bytes
        self._gzip = zlib.decompressobj(_GZIP_BITS)
        self._rest = b""
        self._size = 0
        self._read = 0
        self._more = True

    async def __call__(self) -> Message:
        """Return the next piece."""
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
        # A small message may hold gigabytes: let other requests run in between.
        await asyncio.sleep(0)
        return {"type": "http.request", "body": piece, "more_body": more}

    def _next(self) -> bytes:
        """Decompress one piece; a gzip body may have several members."""
        if self._rest and self._gzip.eof:
            self._gzip = zlib.decompressobj(_GZIP_BITS)
        try:
            piece = self._gzip.decompress(self._rest, PIECE_BYTES)
        except zlib.error:
            msg = "the body is said to be gzip, and is not"
            raise Problem("invalid_encoding", msg) from None
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


class FormBody:
    """Receives a form, and refuses one that ends before its last boundary.

    The multipart parser would accept the complete files and drop the last one.
    """

    def __init__(self, receive: Receive, content_type: str) -> None:
        self._receive = receive
        _, options = parse_options_header(content_type)
        self._end = b"--" + options.get(b"boundary", b"") + b"--"
        self._tail = b""
        self._ended = False

    async def __call__(self) -> Message:
        """Return the next piece."""
        message = await self._receive()
        if message["type"] == "http.request" and not self._ended:
            seen = self._tail + message.get("body", b"")
            self._tail = seen[-len(self._end) :]
            self._ended = self._end in seen
            if not self._ended and seen and not message.get("more_body", False):
                msg = "the multipart body ends before its last boundary"
                raise Problem("invalid_form", msg)
        return message
