"""Judgements: which passages deserve a citation for which question."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kept.errors import InputError
from kept.evaluation.known_items import known_items
from kept.evaluation.lines import at_line, json_lines, text_field

KINDS = ("chunk_id", "document_id", "text")


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What somebody thinks of one passage for one question.

    The passage is named by *kind*: ``chunk_id``, ``document_id`` or ``text``, which
    is looked for in the chunks.
    """

    question: str
    kind: str
    passage: str
    relevant: bool

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            msg = f"kind is {self.kind!r}; expected one of {', '.join(KINDS)}"
            raise InputError(msg)


def read_judgements(path: Path, *, relevant_from: float = 1.0) -> tuple[Judgement, ...]:
    """Read JSON lines with ``question``, a passage and ``relevant``.

    The passage stands under ``chunk_id``, ``document_id`` or ``text``. ``relevant``
    is true, false or a grade, which counts as relevant from *relevant_from* on.
    """
    found = tuple(
        _judgement(path, number, record, relevant_from)
        for number, record in json_lines(path)
    )
    if not found:
        msg = f"{path}: there are no judgements in it; write one JSON object per line"
        raise InputError(msg)
    return found


def known_item_judgements(
    chunks: Mapping[str, str], *, at_most: int = 200
) -> tuple[Judgement, ...]:
    """Make questions from the texts of *chunks*, by id, each about one of them.

    They are easier than people's questions, which use words of their own: a
    calibration fitted on them alone is too sure of itself.
    """
    ids, texts = list(chunks), list(chunks.values())
    return tuple(
        Judgement(
            question=item.question,
            kind="chunk_id",
            passage=ids[item.passage],
            relevant=True,
        )
        for item in known_items(texts, at_most=at_most)
    )


def by_question(
    judgements: Iterable[Judgement],
) -> dict[str, Sequence[Judgement]]:
    """Group judgements by their question, in the order in which they came."""
    grouped: dict[str, list[Judgement]] = {}
    for judgement in judgements:
        grouped.setdefault(judgement.question, []).append(judgement)
    return dict(grouped)


def _judgement(
    path: Path, number: int, record: Mapping[str, Any], relevant_from: float
) -> Judgement:
    kind = next((name for name in KINDS if record.get(name)), None)
    if kind is None:
        raise at_line(
            path,
            number,
            f"no passage (there is: {', '.join(sorted(record)) or 'nothing'})",
            f"name it under {' or '.join(KINDS)}",
        )
    relevant = record.get("relevant", record.get("grade"))
    if not isinstance(relevant, bool | int | float):
        raise at_line(
            path,
            number,
            f"relevant is {relevant!r}",
            "write true, false or a grade as a number",
        )
    return Judgement(
        question=text_field(path, number, record, "question"),
        kind=kind,
        passage=text_field(path, number, record, kind),
        relevant=relevant
        if isinstance(relevant, bool)
        else float(relevant) >= relevant_from,
    )
