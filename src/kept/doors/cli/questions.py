"""Questions to ask: recorded ones, or those of a file."""

import json
from pathlib import Path
from typing import Any

from kept.errors import InputError
from kept.knowledge_base.base import KnowledgeBase

QUESTION_KEYS = ("question", "text", "query")


def recorded_questions(base: KnowledgeBase, last: int) -> list[str]:
    """Return the latest recorded questions, as far as their text was recorded."""
    recorded = (query.question for query in base.last_queries(last))
    asked = [question for question in recorded if question is not None]
    if not asked:
        msg = (
            "no question is recorded with its text, so there is nothing to ask; "
            "KEPT_RECORD_QUERIES=text records them, or give --queries FILE"
        )
        raise InputError(msg)
    return asked


def questions_in(path: Path) -> list[str]:
    """Return the questions in a file; a line is a text, or an object with one."""
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        msg = f"{path} cannot be read ({error}); expected a question on each line"
        raise InputError(msg) from error
    asked = [
        _question(path, no, line) for no, line in enumerate(lines, 1) if line.strip()
    ]
    if not asked:
        msg = f"{path} holds no questions; write one a line"
        raise InputError(msg)
    return asked


def _question(path: Path, no: int, line: str) -> str:
    if not line.lstrip().startswith("{"):
        return line.strip()
    try:
        found: dict[str, Any] = json.loads(line)
    except ValueError:
        found = {}
    for key in QUESTION_KEYS:
        if isinstance(found.get(key), str):
            return str(found[key])
    msg = (
        f"{path}, line {no}: expected an object with one of: {', '.join(QUESTION_KEYS)}"
    )
    raise InputError(msg)
