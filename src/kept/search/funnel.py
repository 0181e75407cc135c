"""The funnel of one answer in words: what each stage got, kept and did."""

from kept.kernel.model import Candidate
from kept.kernel.record import Decision, Selection, Step, Verdict
from kept.search.render import short
from kept.search.retrieve import Found

Row = tuple[str, int | None, int, str]


def funnel_rows(found: Found) -> list[Row]:
    """Return stage, in, out and what happened, recall first."""
    steps = found.selection.trace
    return [
        ("recall", None, found.selection.recalled, brought(found)),
        *((step.stage, step.before, step.after, happened(step)) for step in steps),
    ]


def account(selection: Selection) -> str:
    """Say where everybody went, as a sum."""
    return (
        f"{selection.recalled} recalled + {selection.added} added = "
        f"{len(selection.candidates)} selected + {len(selection.dropped)} dropped"
    )


def latest_first(selection: Selection) -> list[Candidate]:
    """Return the dropped, those that came farthest first."""
    stages = {step.stage: place for place, step in enumerate(selection.trace)}
    farthest = {
        decision.chunk_id: stages[step.stage]
        for step in selection.trace
        for decision in step.decisions
        if decision.verdict is Verdict.DROPPED
    }
    return sorted(selection.dropped, key=lambda c: -farthest[c.id])


def dropped_by(selection: Selection, chunk_id: str) -> str:
    """Say which stage dropped a candidate, and why."""
    *_, (stage, decision) = selection.explain(chunk_id)
    return f"{stage}: {decision.reason}"


def brought(found: Found) -> str:
    """Say how many of the candidates each leg brought."""
    pool = (*found.selection.candidates, *found.selection.dropped)
    counts = {
        leg: sum(1 for c in pool if c.signals.get(f"in_{leg}") == 1)
        for leg in ("dense", "keyword")
    }
    return ", ".join(f"{count} {leg}" for leg, count in counts.items() if count)


def happened(step: Step) -> str:
    """Say what a stage did: its decisions by reason, and its facts."""
    facts = ", ".join(f"{name}={short(fact)}" for name, fact in step.facts.items())
    return "; ".join(part for part in (_reasons(step.decisions), facts) if part)


def _reasons(decisions: tuple[Decision, ...]) -> str:
    counts: dict[str, int] = {}
    for decision in decisions:
        name = f"{decision.verdict} {decision.reason}"
        counts[name] = counts.get(name, 0) + 1
    return ", ".join(f"{count} {name}" for name, count in counts.items())
