"""Loaders: judged collections of several shapes, as one.

A collection is a folder:

* ``corpus.jsonl``: ``{"_id", "title", "text", "metadata"}`` a line;
* ``queries.jsonl``: ``{"_id", "text", "metadata"}`` a line, and optionally
  ``"answerable": false`` (or true), ``"kind": "far" | "near" | "on_topic"`` and
  ``"answers": [...]``, all of which may also stand under ``metadata``;
* ``qrels/test.tsv`` (or ``dev``, ``train``): ``query-id corpus-id score`` with a
  header, or TREC's four columns without one.

``metadata.is_impossible`` (SQuAD 2) and ``metadata.in_scope`` (CLINC) say the same
as ``answerable``. Without judgements, a passage whose ``metadata.intent`` is the
question's is relevant to it. A ``.json`` file is read as SQuAD 2.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kept.errors import InputError, UnreadableSourceError
from kept.evaluation.collection import (
    Collection,
    Passage,
    Qrels,
    Question,
    assembled,
)
from kept.evaluation.lines import at_line, json_lines, text_field
from kept.evaluation.ordinal import Rating
from kept.evaluation.trec import read_qrels


@dataclass(frozen=True, slots=True, kw_only=True)
class TextPair:
    """Two texts, and whether or how much they are the same.

    Give *duplicate*, or a *similarity* that a threshold turns into one.
    """

    id: str
    first: str
    second: str
    duplicate: bool | None = None
    similarity: float | None = None


def load_collection(
    path: Path, *, split: str = "test", strict: bool = False
) -> Collection:
    """Load a folder in the convention above, or a SQuAD 2 file."""
    if path.is_file():
        return load_squad(path)
    for name in ("corpus.jsonl", "queries.jsonl"):
        if not (path / name).is_file():
            raise UnreadableSourceError(
                str(path),
                f"there is no {name} in it",
                "give a folder with corpus.jsonl, queries.jsonl and qrels/test.tsv",
            )
    passages = tuple(_passages(path / "corpus.jsonl"))
    questions = tuple(load_questions(path / "queries.jsonl"))
    return assembled(
        path.resolve().name,
        passages,
        questions,
        _folder_qrels(path, split, passages, questions),
        strict=strict,
    )


def load_questions(path: Path) -> Iterator[Question]:
    """Yield the questions of a JSON-lines file, numbering those without an id."""
    for number, record in json_lines(path):
        nested = record.get("metadata") or {}
        answers = record.get("answers", record.get("answer", nested.get("answers", ())))
        answerable, kind = _answerable(path, number, {**nested, **record})
        yield Question(
            id=text_field(path, number, {"_id": str(number), **record}, "_id"),
            text=text_field(path, number, record, "text", "question"),
            answerable=answerable,
            kind=kind,
            answers=tuple(dict.fromkeys(map(str, answers))),
            metadata=nested,
        )


def load_squad(path: Path) -> Collection:
    """Load a SQuAD 2 file; its impossible questions are on-topic unanswerable."""
    try:
        articles = json.loads(path.read_text("utf-8-sig"))["data"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UnreadableSourceError(
            str(path), f"not a SQuAD 2 file ({error})", 'expected {"data": [...]}'
        ) from error
    passages: list[Passage] = []
    questions: list[Question] = []
    qrels: dict[str, dict[str, int]] = {}
    for article in articles:
        for paragraph in article["paragraphs"]:
            passage = Passage(
                id=f"p{len(passages)}",
                title=article["title"],
                text=paragraph["context"],
            )
            passages.append(passage)
            for qa in paragraph["qas"]:
                question = _squad_question(qa)
                questions.append(question)
                if question.answerable:
                    qrels[question.id] = {passage.id: 1}
    return assembled(path.stem, passages, questions, qrels)


def load_text_pairs(path: Path) -> tuple[TextPair, ...]:
    """Load pairs of texts from JSON lines.

    The texts stand under ``first`` and ``second`` (or ``old_text`` and
    ``new_text``), the truth under ``duplicate`` (true or false) or ``similarity``
    (or ``jaccard5``), 0 to 1.
    """
    pairs = []
    for number, record in json_lines(path):
        duplicate = record.get("duplicate")
        similarity = record.get("similarity", record.get("jaccard5"))
        if not isinstance(duplicate, bool | None):
            raise at_line(path, number, f"duplicate is {duplicate!r}", "true or false")
        if not isinstance(similarity, int | float | None):
            raise at_line(path, number, f"similarity is {similarity!r}", "a number")
        pairs.append(
            TextPair(
                id=str(record.get("id", record.get("path", number))),
                first=text_field(path, number, record, "first", "old_text"),
                second=text_field(path, number, record, "second", "new_text"),
                duplicate=duplicate,
                similarity=None if similarity is None else float(similarity),
            )
        )
    if not pairs:
        msg = f"{path}: there are no pairs in it; write one JSON object per line"
        raise InputError(msg)
    return tuple(pairs)


def load_ratings(path: Path) -> tuple[Rating, ...]:
    """Load ordinal ratings from JSON lines.

    Each has ``participant``, ``item``, ``prediction`` (a whole number, or null where
    the system abstained), ``truth`` and, if there is one, ``confidence``.
    """
    ratings = []
    for number, record in json_lines(path):
        for name, allowed in (
            ("prediction", (int, type(None))),
            ("truth", (int,)),
            ("confidence", (int, float)),
        ):
            value = record.get(name, 0.0 if name == "confidence" else None)
            if isinstance(value, bool) or not isinstance(value, allowed):
                raise at_line(path, number, f"{name} is {value!r}", "a number")
        ratings.append(
            Rating(
                participant=text_field(path, number, record, "participant"),
                item=text_field(path, number, record, "item"),
                prediction=record["prediction"],
                truth=record["truth"],
                confidence=float(record.get("confidence", 0.0)),
            )
        )
    if not ratings:
        msg = f"{path}: there are no ratings in it; write one JSON object per line"
        raise InputError(msg)
    return tuple(ratings)


def _passages(path: Path) -> Iterator[Passage]:
    for number, record in json_lines(path):
        yield Passage(
            id=text_field(path, number, record, "_id"),
            title=str(record.get("title") or ""),
            text=text_field(path, number, record, "text"),
            metadata=record.get("metadata") or {},
        )


def _answerable(
    path: Path, number: int, record: Mapping[str, Any]
) -> tuple[bool | None, str]:
    """Read whether a question has an answer, and if not, of which kind it is."""
    for key, when_true, kind in (
        ("answerable", True, "near"),
        ("is_impossible", False, "on_topic"),
        ("in_scope", True, "near"),
    ):
        flag = record.get(key)
        if flag is None:
            continue
        if not isinstance(flag, bool):
            raise at_line(path, number, f"{key} is {flag!r}", "write true or false")
        answerable = flag is when_true
        return answerable, "" if answerable else str(record.get("kind") or kind)
    return None, ""


def _folder_qrels(
    path: Path,
    split: str,
    passages: tuple[Passage, ...],
    questions: tuple[Question, ...],
) -> Qrels:
    """Read the judgements of a split, or take equal intents for relevant."""
    folder = path / "qrels"
    if folder.is_dir():
        file = folder / f"{split}.tsv"
        if not file.is_file():
            there = ", ".join(sorted(f.stem for f in folder.glob("*.tsv"))) or "none"
            raise UnreadableSourceError(
                str(folder), f"there is no split {split!r}", f"choose one of: {there}"
            )
        return read_qrels(file)
    by_intent: dict[str, dict[str, int]] = {}
    for passage in passages:
        if intent := passage.metadata.get("intent"):
            by_intent.setdefault(intent, {})[passage.id] = 1
    if not by_intent:
        return {}
    return {
        q.id: by_intent[q.metadata["intent"]]
        for q in questions
        if q.answerable is not False and q.metadata.get("intent") in by_intent
    }


def _squad_question(qa: Mapping[str, Any]) -> Question:
    impossible = bool(qa.get("is_impossible", False))
    return Question(
        id=qa["id"],
        text=qa["question"],
        answerable=not impossible,
        kind="on_topic" if impossible else "",
        answers=tuple(dict.fromkeys(answer["text"] for answer in qa["answers"])),
    )
