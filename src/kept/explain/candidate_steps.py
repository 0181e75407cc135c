"""The record of a search as JSON, read candidate by candidate."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from kept.explain.render import SENTENCES
from kept.kernel.record import Verdict

SELECTED = "selected"

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Funnel:
    """A record of a search, and its candidates with their steps through the stages."""

    sentences: ClassVar[Mapping[str, str]] = SENTENCES

    record: Json
    candidates: Sequence[Json]

    @property
    def sums(self) -> bool:
        """Whether no candidate vanished: each is selected or dropped."""
        record = self.record
        came = record["recalled"] + record["added"]
        return bool(came == record["selected"] + record["dropped"])

    def reasons(self, stages: Iterable[Json]) -> list[tuple[str, int]]:
        """Return the reasons of all decisions of some stages, the most common first."""
        return _counted(decision for stage in stages for decision in stage["decisions"])

    def losses(self, stage: Json) -> list[tuple[str, int]]:
        """Return the reasons for which a stage dropped candidates, likewise."""
        return _counted(
            d for d in stage["decisions"] if d["verdict"] == Verdict.DROPPED
        )

    def those(self, *, reason: str = "", state: str = "") -> list[Json]:
        """Return the candidates of one reason and state; without either, all."""
        return [
            one
            for one in self.candidates
            if (not reason or reason in (step.get("reason") for step in one["steps"]))
            and state in ("", one["state"])
        ]


def funnel_of(record: Json, titles: Mapping[str, str]) -> Funnel:
    """Return the funnel of a record; *titles* are those of existing documents."""
    steps = _steps(record)
    candidates: list[Json] = []
    for place, row in enumerate(record["candidates"], start=1):
        # The selected come first, in the order of the answer.
        chosen = place if row["state"] == SELECTED else None
        title = titles.get(row["document_id"]) or row.get("title") or ""
        own = steps[row["chunk_id"]]
        candidates.append({**row, "title": title, "place": chosen, "steps": own})
    return Funnel(record, candidates)


def _steps(record: Json) -> dict[str, list[Json]]:
    """Return the steps of every candidate, by chunk, up to the one that dropped it."""
    steps: dict[str, list[Json]] = {row["chunk_id"]: [] for row in record["candidates"]}
    alive = set(steps)
    for stage in record["stages"]:
        name = stage["stage"]
        decided: dict[str, list[Json]] = {}
        for decision in stage["decisions"]:
            step = {"stage": name, **decision}
            decided.setdefault(decision["chunk_id"], []).append(step)
        for chunk in alive:
            steps[chunk] += decided.get(chunk, [{"stage": name, "verdict": "passed"}])
        # A dropped candidate meets no further stage.
        alive -= {
            d["chunk_id"] for d in stage["decisions"] if d["verdict"] == Verdict.DROPPED
        }
    return steps


def _counted(decisions: Iterable[Json]) -> list[tuple[str, int]]:
    counts = Counter(decision["reason"] for decision in decisions)
    return sorted(counts.items(), key=lambda one: (-one[1], one[0]))
