"""TREC files: judgements and runs, in and out."""

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from kept.errors import InputError
from kept.evaluation.lines import at_line, text_lines

Ranking = tuple[tuple[str, float], ...]
Run = Mapping[str, Ranking]

QRELS_FIELDS = 4
TSV_FIELDS = 3
RUN_FIELDS = 6


def read_qrels(path: Path) -> dict[str, dict[str, int]]:
    """Read judgements: TREC's four columns, or BEIR's three with a header."""
    qrels: dict[str, dict[str, int]] = {}
    for number, line in text_lines(path):
        fields = line.split("\t") if "\t" in line else line.split()
        if number == 1 and fields[-1].strip().casefold() in {"score", "relevance"}:
            continue
        if len(fields) == QRELS_FIELDS:
            question_id, _, passage_id, grade = fields
        elif len(fields) == TSV_FIELDS:
            question_id, passage_id, grade = fields
        else:
            raise at_line(
                path,
                number,
                f"expected 3 or 4 columns, met {len(fields)}",
                "write 'query-id<TAB>corpus-id<TAB>score' or 'query 0 doc grade'",
            )
        grades = qrels.setdefault(question_id, {})
        value = _grade(path, number, grade)
        if grades.setdefault(passage_id, value) != value:
            raise at_line(
                path,
                number,
                f"{question_id} and {passage_id} are judged twice, "
                f"{grades[passage_id]} and {value}",
                "keep one of the two",
            )
    if not qrels:
        msg = f"{path}: there are no judgements in it; check that it is the right file"
        raise InputError(msg)
    return qrels


def read_run(path: Path) -> dict[str, Ranking]:
    """Read a run of six columns: query, Q0, document, rank, score, tag."""
    rankings: dict[str, dict[str, float]] = {}
    for number, line in text_lines(path):
        fields = line.split()
        if len(fields) != RUN_FIELDS:
            raise at_line(
                path,
                number,
                f"expected 6 columns, met {len(fields)}",
                "write 'query Q0 doc rank score tag'",
            )
        question_id, _, passage_id, _, score, _ = fields
        scores = rankings.setdefault(question_id, {})
        if passage_id in scores:
            raise at_line(
                path,
                number,
                f"{passage_id} is ranked twice for {question_id}",
                "keep one of the two",
            )
        scores[passage_id] = _score(path, number, score)
    if not rankings:
        msg = f"{path}: the run is empty; check that the system wrote it to the end"
        raise InputError(msg)
    return {q: best_first(scores.items()) for q, scores in rankings.items()}


def best_first(scores: Iterable[tuple[str, float]]) -> Ranking:
    """Order by score and then id, and refuse scores that are not numbers."""
    rounded = []
    for passage_id, score in scores:
        if not math.isfinite(score):
            msg = (
                f"the score of {passage_id} is {score}; a score must be a finite number"
            )
            raise InputError(msg)
        rounded.append((passage_id, round(float(score), 9)))
    return tuple(sorted(rounded, key=lambda each: (-each[1], each[0])))


def run_lines(run: Run, tag: str = "kept") -> Iterable[str]:
    """Yield a run's lines with scores that strictly descend in single precision.

    Tools read scores as 32-bit floats and break ties each in their own way; with
    no ties left, they all see the order that was meant.
    """
    for question_id, ranking in run.items():
        scores = descending([score for _, score in ranking])
        for rank, ((passage_id, _), score) in enumerate(
            zip(ranking, scores, strict=True), start=1
        ):
            yield f"{question_id} Q0 {passage_id} {rank} {score:.9g} {tag}"


def write_run(path: Path, run: Run, tag: str = "kept") -> None:
    """Write a run for other tools to read."""
    path.write_text("".join(f"{line}\n" for line in run_lines(run, tag)), "utf-8")


def descending(scores: Sequence[float]) -> list[float]:
    """Lower each score just enough to lie below the one before it."""
    lowered: list[float] = []
    ceiling = np.float32(np.inf)
    for score in scores:
        ceiling = min(np.float32(score), np.nextafter(ceiling, np.float32(-np.inf)))
        lowered.append(float(ceiling))
    return lowered


def _grade(path: Path, number: int, grade: str) -> int:
    try:
        value = float(grade)
    except ValueError:
        value = math.nan
    if not value.is_integer():
        raise at_line(
            path,
            number,
            f"the grade is {grade.strip()!r}",
            "grades are whole numbers, 0 for not relevant",
        )
    return int(value)


def _score(path: Path, number: int, score: str) -> float:
    try:
        value = float(score)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise at_line(
            path, number, f"the score is {score!r}", "scores are finite numbers"
        )
    return value
