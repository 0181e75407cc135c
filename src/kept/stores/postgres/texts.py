"""Texts on their way to PostgreSQL, which cannot hold the character NUL."""

from typing import Any

import psycopg
from psycopg.types.string import (
    StrBinaryDumper,
    StrDumper,
    TextBinaryLoader,
    TextLoader,
)

ESCAPE = "\x1a"
_AS_STORED = str.maketrans({"\0": f"{ESCAPE}0", ESCAPE: f"{ESCAPE}1"})


def stored(text: str) -> str:
    """Return *text* as the server can hold it."""
    if "\0" in text or ESCAPE in text:
        return text.translate(_AS_STORED)
    return text


def shown(text: str) -> str:
    """Return what `stored` was given."""
    if ESCAPE not in text:
        return text
    return text.replace(f"{ESCAPE}0", "\0").replace(f"{ESCAPE}1", ESCAPE)


class _Text(StrDumper):
    def dump(self, obj: str) -> Any:  # noqa: ANN401 -- the driver's buffers
        return super().dump(stored(obj))


class _BinaryText(StrBinaryDumper):
    def dump(self, obj: str) -> Any:  # noqa: ANN401 -- the driver's buffers
        return super().dump(stored(obj))


class _ShownText(TextLoader):
    def load(self, data: Any) -> Any:  # noqa: ANN401 -- the driver's buffers
        text = super().load(data)
        return shown(text) if isinstance(text, str) else text


class _ShownBinaryText(TextBinaryLoader):
    def load(self, data: Any) -> Any:  # noqa: ANN401 -- the driver's buffers
        text = super().load(data)
        return shown(text) if isinstance(text, str) else text


def register_texts(connection: "psycopg.Connection[Any]") -> None:
    """Let every text of a connection go both ways unharmed."""
    for dumper in (_BinaryText, _Text):
        connection.adapters.register_dumper(str, dumper)
    for loader in (_ShownText, _ShownBinaryText):
        connection.adapters.register_loader("text", loader)
