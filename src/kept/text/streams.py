"""Streams: files as text, a block at a time."""

import codecs
import io
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import BinaryIO

BLOCK_BYTES = 1 << 16
# The encodings with two byte orders, which a byte order mark distinguishes.
_MARKS: Mapping[str, tuple[bytes, bytes]] = {
    "utf-16": (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE),
    "utf-32": (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE),
}


def rewindable(file: BinaryIO) -> BinaryIO:
    """Return *file*, or what it holds where it can be read only once."""
    return file if file.seekable() else io.BytesIO(file.read())


def blank(file: BinaryIO) -> bool:
    """Return whether *file* holds nothing but white space."""
    file.seek(0)
    return not any(map(bytes.strip, iter(partial(file.read, BLOCK_BYTES), b"")))


def opening_of(file: BinaryIO, encoding: str, chars: int) -> str:
    """Return how the text of *file* begins, once all of it was decoded."""
    with as_text(file, encoding, newline="") as text:
        opening = text.read(chars)
        while text.read(BLOCK_BYTES):
            pass
    return opening


@contextmanager
def as_text(
    file: BinaryIO, encoding: str, *, newline: str | None = None
) -> Iterator[io.TextIOWrapper]:
    """Read *file* from its beginning as text, and leave it open.

    A `UnicodeError` says where in the file the byte is that does not fit.
    """
    file.seek(0)
    codec = _ordered(encoding, file.read(4))
    file.seek(0)
    text = io.TextIOWrapper(file, codec, newline=newline)
    try:
        yield text
    except UnicodeDecodeError as error:
        place = file.tell() - len(error.object) + error.start
        met = error.object[error.start : error.end].hex(" ")
        msg = f"bytes {met} in position {place}: {error.reason}"
        raise UnicodeError(msg) from None
    finally:
        if not file.closed:
            text.detach()


def _ordered(encoding: str, head: bytes) -> str:
    """Return the codec for blocks: without a mark, bytes are in this machine's order.

    Where all bytes are decoded at once, Python does so by itself.
    """
    name = codecs.lookup(encoding).name
    if name in _MARKS and not head.startswith(_MARKS[name]):
        return f"{name}-{sys.byteorder[0]}e"
    return encoding
