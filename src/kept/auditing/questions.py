"""Questions: a line each, or JSON lines that hold one."""

import json
from pathlib import Path

from kept.errors import InputError, UnreadableSourceError

FIELDS = ("question", "query", "text")


def questions_in(path: Path) -> list[str]:
    """Read the questions of a file, in their order, each once."""
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableSourceError(
            str(path),
            f"it cannot be read ({error})",
            "give a file with a question a line",
        ) from error
    lines = enumerate(text.splitlines(), start=1)
    found = [
        _question(line, f"{path}:{number}") for number, line in lines if line.strip()
    ]
    if not found:
        msg = f"{path} holds no questions; write one a line"
        raise InputError(msg)
    return list(dict.fromkeys(found))


def _question(line: str, place: str) -> str:
    """Return the question of a line, which may be JSON as in BEIR's queries."""
    plain = line.strip()
    if not plain.startswith("{"):
        return plain
    try:
        row = json.loads(plain)
    except (ValueError, RecursionError) as error:
        raise UnreadableSourceError(
            place, f"not JSON ({error})", "write a question, or an object with one"
        ) from error
    for name in FIELDS:
        if isinstance(row.get(name), str) and row[name].strip():
            return str(row[name]).strip()
    raise UnreadableSourceError(
        place, "no question in it", f"expected one of: {', '.join(FIELDS)}"
    )
