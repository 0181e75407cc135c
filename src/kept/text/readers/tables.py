"""Rows: tables and JSON lines, a document in each."""

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeVar

from kept.errors import UnreadableSourceError
from kept.text.draft import Draft, DraftPiece

T = TypeVar("T", str, bytes)
Row = tuple[int, Mapping[str, Any]]
Rows = Iterator[Row | UnreadableSourceError]
TEXT_FIELDS = ("text", "body", "content")
ID_FIELDS = ("_id", "id")
MAX_CELL_CHARS = 100_000_000
_DELIMITERS = ",;\t|"


@dataclass(frozen=True, slots=True, kw_only=True)
class RowText:
    """One row: its text, its place in the source, and the fields beside the text."""

    text: str
    place: str
    source_uri: str
    declared: Mapping[str, Any]
    pieces: tuple[DraftPiece, ...] | None


def nobody(size: int) -> None:
    """Hear how much was read, and do nothing about it."""


def json_rows(lines: Iterable[bytes], source: str, encoding: str | None) -> Rows:
    """Yield the objects of JSON lines with their line numbers, or what is wrong."""
    for number, line in enumerate(lines, start=1):
        place = f"{source}:{number}"
        try:
            text = line.decode(encoding or "utf-8").strip().removeprefix("\ufeff")
            row = json.loads(text) if text else None
        except UnicodeDecodeError as error:
            yield UnreadableSourceError(
                place, f"not UTF-8 ({error})", "state the encoding, or save it as UTF-8"
            )
        except (ValueError, RecursionError) as error:
            yield UnreadableSourceError(
                place, f"not JSON ({error})", "expected one object a line"
            )
        else:
            if isinstance(row, dict):
                yield number, row
            elif text:
                kind = type(row).__name__
                yield UnreadableSourceError(
                    place, f"a {kind}", "expected one object a line"
                )


def heard(lines: Iterable[T], hear: Callable[[int], None]) -> Iterator[T]:
    """Yield *lines*; *hear* is told how long each is, before it is handed on."""
    for line in lines:
        hear(len(line))
        yield line


def table_rows(lines: Iterable[str], source: str) -> Rows:
    """Yield the rows of a table with their line numbers, or what is wrong.

    Where no column holds a text, a row's text is what stands in its cells. No more
    lines are asked for than the next row needs.
    """
    csv.field_size_limit(MAX_CELL_CHARS)
    rest = iter(lines)
    head = _head(rest)
    reader = csv.reader(chain(head, rest), delimiter=_delimiter("".join(head)))
    try:
        header = [name.strip() for name in next(reader, [])]
        written = {*TEXT_FIELDS, "chunks"} & {name.casefold() for name in header}
        for cells in reader:
            if len(cells) > len(header):
                yield UnreadableSourceError(
                    f"{source}:{reader.line_num}",
                    f"{len(cells)} cells under {len(header)} headings",
                    "put texts that hold the delimiter in quotes",
                )
            elif any(cells):
                row = dict(zip(header, cells, strict=False))
                yield reader.line_num, row if written else {**row, "text": _told(row)}
    except csv.Error as error:
        yield UnreadableSourceError(
            f"{source}:{reader.line_num}", f"not CSV ({error})", "mend the line"
        )


def _told(row: Mapping[str, str]) -> str:
    """Return a row that has no text of its own as a line for each of its cells."""
    return "\n".join(f"{name}: {cell}" for name, cell in row.items() if cell.strip())


def _head(lines: Iterator[str]) -> list[str]:
    """Return the lines up to the first that is not blank."""
    head = []
    for line in lines:
        head.append(line)
        if line.strip():
            break
    return head


def _delimiter(head: str) -> str:
    """Return the delimiter that the header has most of."""
    return max(_DELIMITERS, key=head.lstrip().count)


def drafts_of(
    rows: Rows, source: str, draft: Callable[[RowText], Draft]
) -> Iterator[Draft | UnreadableSourceError]:
    """Yield a draft for each row; errors pass through in their place."""
    for row in rows:
        if isinstance(row, UnreadableSourceError):
            yield row
            continue
        try:
            yield draft(_text_of(source, *row))
        except UnreadableSourceError as error:
            yield error


def _text_of(source: str, number: int, given: Mapping[str, Any]) -> RowText:
    """Return the text of a row, or say that it has none."""
    fields = {str(name).strip(): value for name, value in given.items()}
    place = f"{source}:{number}"
    key = _taken(fields, ID_FIELDS)
    pieces = _pieces(_taken(fields, ("chunks",)), place)
    text = _taken(fields, TEXT_FIELDS)
    if text is None and pieces:
        text = "\n\n".join(piece.text for piece in pieces)
    if not isinstance(text, str):
        raise UnreadableSourceError(
            place, "no text", f"expected a field {', '.join(TEXT_FIELDS)} or chunks"
        )
    name = number if key is None else key
    return RowText(
        text=text,
        place=place,
        source_uri=f"{source}#{name}",
        declared=fields,
        pieces=pieces,
    )


def _taken(fields: dict[str, Any], names: Iterable[str]) -> Any:  # noqa: ANN401 -- a JSON value
    """Take the first field that is there and not empty."""
    for name in names:
        for given in list(fields):
            if given.casefold() == name and fields[given] not in (None, ""):
                return fields.pop(given)
    return None


def _pieces(value: object, place: str) -> tuple[DraftPiece, ...] | None:
    """Return the chunks of a row that came already cut."""
    if isinstance(value, str):
        value = _listed(value)
    if value is None:
        return None
    if not isinstance(value, list):
        raise UnreadableSourceError(
            place, "its chunks are no texts", "expected a list of texts"
        )
    pieces = [DraftPiece.of(piece, place) for piece in value]
    return tuple(piece for piece in pieces if piece.text.strip()) or None


def _listed(value: str) -> object:
    """Return the list that a table's cell stands for, or the cell as one piece."""
    try:
        return json.loads(value) if value.startswith("[") else [value]
    except (ValueError, RecursionError):
        return [value]
