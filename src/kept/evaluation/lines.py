"""JSON lines and tab-separated rows, read with the line number of any fault."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

from kept.errors import UnreadableSourceError


def json_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (line number, object) for every line of *path* that is not blank."""
    for number, line in text_lines(path):
        try:
            value = json.loads(line, parse_constant=_not_a_number)
        except ValueError as error:
            raise at_line(
                path, number, f"not valid JSON ({error})", "repair or remove the line"
            ) from error
        if not isinstance(value, dict):
            raise at_line(
                path,
                number,
                f"expected a JSON object, met {type(value).__name__}",
                'write one {"_id": …} per line',
            )
        yield number, value


def text_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (line number, line) for every line that is not blank."""
    number = 0
    try:
        with path.open("rb") as stream:
            for number, raw in enumerate(stream, start=1):
                line = raw.decode("utf-8-sig" if number == 1 else "utf-8").strip("\r\n")
                if line.strip():
                    yield number, line
    except UnicodeDecodeError as error:
        raise at_line(
            path, number, f"not UTF-8 ({error.reason})", "convert the file to UTF-8"
        ) from error
    except OSError as error:
        raise UnreadableSourceError(
            str(path),
            error.strerror or "cannot be opened",
            "check the path and its permissions",
        ) from error


def at_line(
    path: Path, number: int, problem: str, advice: str
) -> UnreadableSourceError:
    """Build the error that points at one line of a file."""
    return UnreadableSourceError(f"{path}, line {number}", problem, advice)


def text_field(path: Path, number: int, record: Mapping[str, Any], *names: str) -> str:
    """Return the first of *names* that *record* has, as text, or point at the line."""
    for name in names:
        value = record.get(name)
        if isinstance(value, str):
            return value
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
    raise at_line(
        path,
        number,
        f"no text under {' or '.join(map(repr, names))} (there is: "
        f"{', '.join(sorted(record)) or 'nothing'})",
        "add it",
    )


def _not_a_number(word: str) -> NoReturn:
    msg = f"{word} is not a number that JSON knows"
    raise ValueError(msg)
