"""Shared SQL and texts, translated for PostgreSQL.

Statements that more than one database understands have question marks for values
(``?``, or ``?1`` where one is used twice). Texts may hold the character NUL, which
PostgreSQL cannot, so it is written in two others.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, Self

import psycopg
from psycopg.types.string import (
    StrBinaryDumper,
    StrDumper,
    TextBinaryLoader,
    TextLoader,
)

from kept.stores.postgres.values import register_values
from kept.stores.sql import Row

Raw = psycopg.Connection[tuple[Any, ...]]
Cursor = psycopg.Cursor[tuple[Any, ...]]

# PostgreSQL's text cannot hold NUL. SUB marks an escape, and is escaped itself.
ESCAPE = "\x1a"
_MARK = re.compile(r"\?(\d*)")
_ANSWERS = re.compile(r"^\s*SELECT|\bRETURNING\b")
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


def register(connection: Raw) -> None:
    """Teach a connection texts, vectors and lists of numbers."""
    for dumper in (_BinaryText, _Text):
        connection.adapters.register_dumper(str, dumper)
    for loader in (_ShownText, _ShownBinaryText):
        connection.adapters.register_loader("text", loader)
    register_values(connection)


class Gathered:
    """The rows of one statement that was run several times."""

    def __init__(self, rows: list[Row]) -> None:
        self._rows = iter(rows)

    def fetchall(self) -> list[Row]:
        """Return all rows that are left."""
        return list(self._rows)

    def fetchone(self) -> Row | None:
        """Return the next row, if there is one."""
        return next(self._rows, None)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Row:
        return next(self._rows)


class PostgresConnection:
    """A connection that takes the SQL that stores share; *raw* takes the driver's."""

    def __init__(self, raw: Raw) -> None:
        self.raw = raw

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close it; only for a connection of one's own."""
        self.raw.close()

    @contextmanager
    def settled(self) -> Iterator[None]:
        """Hold a transaction in which names mean what the server says they mean."""
        with self.raw.transaction():
            self.execute("SET LOCAL search_path = pg_catalog, pg_temp")
            yield

    def execute(self, sql: str, values: Sequence[Any] = (), /) -> Cursor:
        """Run one statement."""
        return self.raw.execute(*_asked(sql, values), binary=True)

    def executemany(self, sql: str, values: Iterable[Sequence[Any]], /) -> Gathered:
        """Run one statement for each of *values*, in order, without waiting between."""
        asked = [_asked(sql, one) for one in values]
        if not asked:
            return Gathered([])
        answers = bool(_ANSWERS.search(sql))
        with self.raw.cursor(binary=True) as cursor:
            given = [one[1] for one in asked]
            cursor.executemany(asked[0][0], given, returning=answers)
            return Gathered(_all_rows(cursor) if answers else [])


def _all_rows(cursor: Cursor) -> list[Row]:
    rows: list[Row] = []
    while True:
        if cursor.description is not None:
            rows += cursor.fetchall()
        if not cursor.nextset():
            return rows


def _asked(sql: str, values: Sequence[Any]) -> tuple[Any, Any]:
    """Return a statement and its values as the driver takes them."""
    spelled, named = _spelled(sql)
    if not named:
        return spelled, tuple(values)
    return spelled, {f"v{place}": value for place, value in enumerate(values, 1)}


@lru_cache(maxsize=1_000)
def _spelled(sql: str) -> tuple[str, bool]:
    """Return a statement in the driver's spelling, and whether its marks are named."""
    # The driver reads a percent sign as a placeholder.
    escaped = sql.replace("%", "%%")
    named = any(match[1] for match in _MARK.finditer(sql))
    return _MARK.sub(
        lambda match: f"%(v{match[1]})s" if match[1] else "%s", escaped
    ), named
