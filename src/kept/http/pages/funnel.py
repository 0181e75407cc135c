"""The funnel: what happened to every candidate, ready to be drawn and counted."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kept.decisions import Verdict
from kept.http.pages.rendering import plain
from kept.render import short
from kept.telling import SENTENCES

FULL = 1_000
SELECTED = "selected"
SIGNALS: Mapping[str, str] = {
    "relevance": "Calibrated probability that the passage is relevant.",
    "cosine": "Nearness of the vectors of question and passage.",
    "meaning": "Cosine as far as shared words bear it out, in scripts unknown to it.",
    "distance": "1 minus cosine: smaller is nearer.",
    "coverage": "Share of the question's weight of words that the passage has.",
    "bm25": "Strength of the keyword match.",
    "bm25_share": "The keyword match against the best that the question could get.",
    "focus": "How far passage and question share the rare words.",
    "strength": "The stronger of both: near in meaning, or the same rare words.",
    "in_dense": "1 if the search by meaning brought it.",
    "in_keyword": "1 if the search by words brought it.",
    "wave": "Which deeper search brought it, 0 being the first (order only).",
    "dense_norm": "Cosine, on the scale that is fused (order only).",
    "keyword_norm": "Keyword strength, on the scale that is fused (order only).",
    "fused": "Both legs joined, for the order only.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """How many a stage dropped for one reason."""

    reason: str
    doc: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One stage: who came in, who went on, and bars in thousandths of the widest."""

    name: str
    before: int
    after: int
    added: int
    protected: int
    spared: int
    losses: tuple[Loss, ...]
    facts: tuple[tuple[str, str], ...]
    kept_width: int
    lost_width: int

    @property
    def dropped(self) -> int:
        """How many leave here."""
        return sum(loss.count for loss in self.losses)

    @property
    def silent(self) -> bool:
        """Whether everything passes unchanged."""
        return not (self.dropped or self.added or self.protected or self.spared)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What one stage did to one candidate; nothing, if it only passed."""

    stage: str
    verdict: str = "passed"
    reason: str = ""
    doc: str = ""
    evidence: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighed:
    """A candidate with its signals and its way through the stages."""

    chunk_id: str
    document_id: str
    title: str
    place: int | None
    signals: tuple[tuple[str, str, str], ...]
    steps: tuple[Step, ...]
    relevance: float | None

    @property
    def ord(self) -> int:
        """The chunk's place in its document."""
        place = self.chunk_id.rpartition(":")[2]
        return int(place) if place.isdecimal() else 0

    @property
    def end(self) -> Step | None:
        """Where it was dropped, if it was."""
        last = self.steps[-1] if self.steps else None
        return last if last and last.verdict == Verdict.DROPPED else None

    @property
    def protected(self) -> bool:
        """Whether a stage protected it."""
        return any(step.verdict == Verdict.PROTECTED for step in self.steps)

    @property
    def reasons(self) -> frozenset[str]:
        """Every reason that was given for anything that happened to it."""
        return frozenset(step.reason for step in self.steps if step.reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class Funnel:
    """A whole record: its stages, its candidates and its sums."""

    recalled: int
    added: int
    selected: int
    dropped: int
    stages: tuple[Stage, ...]
    candidates: tuple[Weighed, ...]
    reasons: tuple[Loss, ...] = field(default=())

    @property
    def sums(self) -> bool:
        """Whether nothing vanished: what came in is selected or dropped."""
        return self.recalled + self.added == self.selected + self.dropped

    def those(self, *, reason: str = "", state: str = "") -> tuple[Weighed, ...]:
        """Return the candidates of one reason or state, all without."""
        return tuple(
            one
            for one in self.candidates
            if (not reason or reason in one.reasons)
            and (not state or (one.place is not None) == (state == SELECTED))
        )


def funnel_of(path: Mapping[str, Any], titles: Mapping[str, str]) -> Funnel:
    """Return the funnel of a record; *titles* are of the documents still here."""
    widest = max(1, path["recalled"] + path["added"])
    ways = _ways(path)
    candidates: list[Weighed] = []
    for row in path["candidates"]:
        chosen = row["state"] == SELECTED
        place = len(candidates) + 1 if chosen else None
        candidates.append(_weighed(row, place, ways, titles))
    counted = Counter(
        decision["reason"]
        for stage in path["stages"]
        for decision in stage["decisions"]
    )
    return Funnel(
        recalled=path["recalled"],
        added=path["added"],
        selected=path["selected"],
        dropped=path["dropped"],
        stages=tuple(_stage(stage, widest) for stage in path["stages"]),
        candidates=tuple(candidates),
        reasons=_losses(counted),
    )


def _stage(stage: Mapping[str, Any], widest: int) -> Stage:
    verdicts = Counter(d["verdict"] for d in stage["decisions"])
    lost = Counter(
        d["reason"] for d in stage["decisions"] if d["verdict"] == Verdict.DROPPED
    )
    kept = round(FULL * stage["after"] / widest)
    return Stage(
        name=stage["stage"],
        before=stage["before"],
        after=stage["after"],
        added=verdicts[Verdict.ADDED],
        protected=verdicts[Verdict.PROTECTED],
        spared=verdicts[Verdict.SPARED],
        losses=_losses(lost),
        facts=_told(stage["facts"]),
        kept_width=kept,
        lost_width=max(0, round(FULL * stage["before"] / widest) - kept),
    )


def _losses(counted: Counter[str]) -> tuple[Loss, ...]:
    return tuple(
        Loss(reason=reason, doc=SENTENCES.get(reason, ""), count=count)
        for reason, count in sorted(counted.items(), key=lambda one: (-one[1], one[0]))
    )


def _ways(path: Mapping[str, Any]) -> dict[str, list[Step]]:
    """Return the steps of every candidate, by chunk, up to where it was dropped."""
    ways: dict[str, list[Step]] = {row["chunk_id"]: [] for row in path["candidates"]}
    ended: set[str] = set()
    for stage in path["stages"]:
        made: dict[str, list[Step]] = {}
        for decision in stage["decisions"]:
            step = Step(
                stage=stage["stage"],
                verdict=decision["verdict"],
                reason=decision["reason"],
                doc=SENTENCES.get(decision["reason"], ""),
                evidence=_told(decision["evidence"]),
            )
            made.setdefault(decision["chunk_id"], []).append(step)
        for chunk in ways.keys() - ended:
            ways[chunk] += made.get(chunk, [Step(stage=stage["stage"])])
        ended |= {
            d["chunk_id"] for d in stage["decisions"] if d["verdict"] == Verdict.DROPPED
        }
    return ways


def _weighed(
    row: Mapping[str, Any],
    place: int | None,
    ways: Mapping[str, list[Step]],
    titles: Mapping[str, str],
) -> Weighed:
    document = row["document_id"]
    signals: Mapping[str, float] = row["signals"]
    known = [name for name in SIGNALS if name in signals]
    others = [name for name in signals if name not in SIGNALS]
    return Weighed(
        chunk_id=row["chunk_id"],
        document_id=document,
        title=titles.get(document) or row.get("title") or "",
        place=place,
        signals=tuple(
            (name, short(signals[name]), SIGNALS.get(name, ""))
            for name in (*known, *others)
        ),
        steps=tuple(ways[row["chunk_id"]]),
        relevance=signals.get("relevance"),
    )


def _told(values: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple((name, plain(value)) for name, value in values.items())
