"""Judgements by hand: which pairs to show a person, and what becomes of the replies."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from kept.evaluation.calibrate.pairs import Judgement, read_judgements
from kept.kernel.model import Candidate
from kept.search.retrieve import Found

ENOUGH = 30
SHOWN = 2


class Searches(Protocol):
    """What finds passages to judge."""

    def search(self, question: str, *, k: int, context: int) -> Found:
        """Return what is cited, and the best of the rest beside it."""
        ...


@dataclass(frozen=True, slots=True)
class PairToJudge:
    """A question and a passage that a person is to judge."""

    question: str
    candidate: Candidate


def pairs_to_judge(
    base: Searches, questions: Sequence[str], known: Sequence[Judgement] = ()
) -> Iterator[PairToJudge]:
    """Yield the passages that a person would see for *questions*, best first.

    First the best of every question, then the second: what is cited and nearly cited
    is what a calibration has to get right. What is judged already is left out.
    """
    judged = {(one.question, one.passage) for one in known}
    found = [(q, _best(base, q)) for q in dict.fromkeys(questions)]
    for place in range(SHOWN):
        for question, candidates in found:
            if place >= len(candidates):
                continue
            candidate = candidates[place]
            if (question, candidate.id) not in judged:
                yield PairToJudge(question, candidate)


def _best(base: Searches, question: str) -> Sequence[Candidate]:
    found = base.search(question, k=SHOWN, context=SHOWN)
    return (*found.selection.candidates, *found.context)[:SHOWN]


def known_judgements(path: Path) -> tuple[Judgement, ...]:
    """Return the judgements that were made before, if there are any."""
    return read_judgements(path) if path.exists() and path.stat().st_size else ()


def note_judgement(path: Path, pair: PairToJudge, *, relevant: bool) -> None:
    """Add a judgement to a file; what was noted before survives whatever comes."""
    line = {
        "question": pair.question,
        "chunk_id": pair.candidate.id,
        "relevant": relevant,
    }
    with path.open("a", encoding="utf-8") as out:
        out.write(json.dumps(line, ensure_ascii=False) + "\n")
