"""Files read line by line, with the line number in every error."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from pydantic import TypeAdapter, ValidationError

from kept.errors import InputError, UnreadableSourceError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Line:
    """Where a line stands, for errors that point at it."""

    path: Path
    number: int

    def error(self, *, problem: str, advice: str) -> UnreadableSourceError:
        """Build the error that points at this line."""
        return UnreadableSourceError(
            f"{self.path}, line {self.number}", problem, advice
        )

    def invalid(self, fault: ValidationError) -> UnreadableSourceError:
        """Build the error for the first field that is not valid."""
        first = fault.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        if first["type"] == "missing":
            there = ", ".join(sorted({*first["input"]} - {"line"})) or "nothing"
            problem = f"{where} is missing (there is: {there})"
            return self.error(problem=problem, advice="add it")
        problem = f"{where} is {first['input']!r}"
        return self.error(problem=problem, advice=first["msg"])

    def text(self, record: Mapping[str, Any], *names: str) -> str:
        """Return the first of *names* that *record* has, as text."""
        for name in names:
            value = record.get(name)
            if isinstance(value, str):
                return value
            if isinstance(value, int) and not isinstance(value, bool):
                return str(value)
        wanted = " or ".join(map(repr, names))
        there = ", ".join(sorted(record)) or "nothing"
        raise self.error(
            problem=f"no text under {wanted} (there is: {there})", advice="add it"
        )


def json_lines(path: Path) -> Iterator[tuple[Line, dict[str, Any]]]:
    """Yield every line of *path* that is not blank, as a JSON object."""
    for line, text in text_lines(path):
        try:
            # Python would accept NaN, which is no JSON and breaks every mean.
            value = json.loads(text, parse_constant=_not_a_number)
        except ValueError as error:
            problem = f"not valid JSON ({error})"
            raise line.error(
                problem=problem, advice="repair or remove the line"
            ) from error
        if not isinstance(value, dict):
            problem = f"expected a JSON object, met {type(value).__name__}"
            raise line.error(problem=problem, advice='write one {"_id": …} per line')
        yield line, value


def records(path: Path, adapter: TypeAdapter[T], what: str) -> tuple[T, ...]:
    """Read every line as what *adapter* validates; a field ``line`` is its number."""
    found = []
    for line, fields in json_lines(path):
        try:
            found.append(adapter.validate_python({"line": line.number, **fields}))
        except ValidationError as error:
            raise line.invalid(error) from error
    if not found:
        msg = f"{path}: there are no {what} in it; write one JSON object per line"
        raise InputError(msg)
    return tuple(found)


def text_lines(path: Path) -> Iterator[tuple[Line, str]]:
    """Yield every line of *path* that is not blank."""
    line = Line(path, 0)
    try:
        with path.open("rb") as stream:
            for number, raw in enumerate(stream, start=1):
                line = Line(path, number)
                text = raw.decode("utf-8-sig" if number == 1 else "utf-8").strip("\r\n")
                if text.strip():
                    yield line, text
    except UnicodeDecodeError as error:
        problem = f"not UTF-8 ({error.reason})"
        raise line.error(problem=problem, advice="convert the file to UTF-8") from error
    except OSError as error:
        problem = error.strerror or "cannot be opened"
        advice = "check the path and its permissions"
        raise UnreadableSourceError(str(path), problem, advice) from error


def _not_a_number(word: str) -> NoReturn:
    msg = f"{word} is not a number that JSON knows"
    raise ValueError(msg)
