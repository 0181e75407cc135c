"""TREC files: judgements and runs, read and written."""

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from kept.errors import InputError
from kept.evaluation.json_lines import Line, text_lines

Ranking = tuple[tuple[str, float], ...]
Run = Mapping[str, Ranking]
Qrels = Mapping[str, Mapping[str, int]]

QRELS_FIELDS = 4
TSV_FIELDS = 3
RUN_FIELDS = 6


def read_qrels(path: Path) -> dict[str, dict[str, int]]:
    """Read judgements: TREC's four columns, or BEIR's three with a header."""
    qrels: dict[str, dict[str, int]] = {}
    for line, text in text_lines(path):
        fields = text.split("\t") if "\t" in text else text.split()
        # BEIR's files have a header, TREC's have none.
        if line.number == 1 and fields[-1].strip().casefold() in {"score", "relevance"}:
            continue
        if len(fields) not in {TSV_FIELDS, QRELS_FIELDS}:
            problem = f"expected 3 or 4 columns, met {len(fields)}"
            advice = "write 'query-id<TAB>corpus-id<TAB>score' or 'query 0 doc grade'"
            raise line.error(problem=problem, advice=advice)
        question_id, (passage_id, grade) = fields[0], fields[-2:]
        grades = qrels.setdefault(question_id, {})
        value = _grade(line, grade)
        if grades.setdefault(passage_id, value) != value:
            twice = f"{question_id} and {passage_id} are judged twice"
            problem = f"{twice}, {grades[passage_id]} and {value}"
            raise line.error(problem=problem, advice="keep one of the two")
    if not qrels:
        msg = f"{path}: there are no judgements in it; check that it is the right file"
        raise InputError(msg)
    return qrels


def read_run(path: Path) -> dict[str, Ranking]:
    """Read a run of six columns: query, Q0, document, rank, score, tag."""
    rankings: dict[str, dict[str, float]] = {}
    for line, text in text_lines(path):
        fields = text.split()
        if len(fields) != RUN_FIELDS:
            problem = f"expected 6 columns, met {len(fields)}"
            raise line.error(
                problem=problem, advice="write 'query Q0 doc rank score tag'"
            )
        question_id, _, passage_id, _, score, _ = fields
        scores = rankings.setdefault(question_id, {})
        if passage_id in scores:
            problem = f"{passage_id} is ranked twice for {question_id}"
            raise line.error(problem=problem, advice="keep one of the two")
        scores[passage_id] = _number(score)
        if not math.isfinite(scores[passage_id]):
            raise line.error(
                problem=f"the score is {score!r}", advice="scores are finite numbers"
            )
    if not rankings:
        msg = f"{path}: the run is empty; check that the system wrote it to the end"
        raise InputError(msg)
    return {q: best_first(scores.items()) for q, scores in rankings.items()}


def best_first(scores: Iterable[tuple[str, float]]) -> Ranking:
    """Order by score and then id; raise for scores that are not numbers."""
    rounded = []
    for passage_id, score in scores:
        if not math.isfinite(score):
            msg = (
                f"the score of {passage_id} is {score}; a score must be a finite number"
            )
            raise InputError(msg)
        # Noise in the last bits must not decide an order.
        rounded.append((passage_id, round(float(score), 9)))
    return tuple(sorted(rounded, key=lambda each: (-each[1], each[0])))


def write_run(path: Path, run: Run, tag: str = "kept") -> None:
    """Write a run for other tools, with scores that strictly descend."""
    lines = []
    for question_id, ranking in run.items():
        scores = descending([score for _, score in ranking])
        for rank, ((passage_id, _), score) in enumerate(
            zip(ranking, scores, strict=True), start=1
        ):
            lines.append(f"{question_id} Q0 {passage_id} {rank} {score:.9g} {tag}\n")
    path.write_text("".join(lines), "utf-8")


def descending(scores: Sequence[float]) -> list[float]:
    """Lower each score just enough to lie below the one before it, as a float32.

    Other tools read scores as 32-bit floats and break ties in ways of their own;
    without ties they all read the same order.
    """
    lowered: list[float] = []
    ceiling = np.float32(np.inf)
    for score in scores:
        ceiling = min(np.float32(score), np.nextafter(ceiling, np.float32(-np.inf)))
        lowered.append(float(ceiling))
    return lowered


def _grade(line: Line, grade: str) -> int:
    value = _number(grade)
    if not value.is_integer():
        problem = f"the grade is {grade.strip()!r}"
        raise line.error(
            problem=problem, advice="grades are whole numbers, 0 for not relevant"
        )
    return int(value)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
