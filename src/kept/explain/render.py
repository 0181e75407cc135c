"""Explanations as JSON for machines and as lines for people."""

import math
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from typing_extensions import TypedDict

from kept.explain.diff import GATE, RECALL, Answered, Difference, Moved
from kept.explain.explanations import PathStep, Rank, Story, WhyNot
from kept.explain.replay import Replayed
from kept.explain.smallest_change import K_OPTION, MOST_SETTINGS, SettingChange
from kept.kernel.record import Decision, Reason
from kept.search.candidate_rows import attributes, declared
from kept.search.render import (
    VERBS,
    RefusalJson,
    decision_json,
    listed,
    refusal_json,
    short,
)

SHOWN = 5
LEGS = ("dense", "keyword")
MEASURE = {"dense": "cosine", "keyword": "bm25"}
SENTENCES = {str(reason): reason.doc for reason in Reason}
VERIFIED = "verified by running the query"


class StoryJson(TypedDict):
    """What happened to one candidate."""

    chunk_id: str
    document_id: str
    title: str
    selected: bool
    place: int | None
    of: int
    score: float
    attributes: dict[str, Any]
    signals: dict[str, float]
    story: list[dict[str, Any]]


def story_json(story: Story) -> StoryJson:
    """Return the story of one candidate."""
    return {
        "chunk_id": story.candidate.id,
        "document_id": story.candidate.document.id,
        "title": story.candidate.document.title,
        "selected": story.place is not None,
        "place": story.place,
        "of": story.selected,
        "score": story.candidate.score,
        "attributes": attributes(story.candidate),
        "signals": dict(story.candidate.signals),
        "story": [_step_json(step) for step in story.steps],
    }


def _step_json(step: PathStep) -> dict[str, Any]:
    counts = {"stage": step.stage, "before": step.before, "after": step.after}
    if step.decision is None:
        return {**counts, "verdict": "passed"}
    return {**counts, **decision_json(step.decision)}


def story_lines(story: Story) -> Iterator[str]:
    """Yield the story of one candidate, a line per stage."""
    candidate = story.candidate
    legs = [leg for leg in LEGS if candidate.signals.get(f"in_{leg}") == 1]
    yield _named(candidate.id, candidate.document.title)
    yield f"recalled by {' and '.join(legs)} search" if legs else "pinned by the caller"
    yield f"attributes: {listed(declared(candidate))}"
    yield f"signals: {listed(candidate.signals)}"
    for step in story.steps:
        yield f"{step.stage}: {_decided(step)}"
    if story.place is None:
        yield "not selected"
    else:
        score = short(candidate.score)
        yield f"selected: place {story.place} of {story.selected}, score {score}"


def _named(chunk_id: str, title: str) -> str:
    return f"{chunk_id} of {title}" if title else chunk_id


def _decided(step: PathStep) -> str:
    """Return what a stage did to a candidate, with the numbers it compared."""
    if step.decision is None:
        return f"passed ({step.before} in, {step.after} out)"
    return decided(step.decision)


def decided(decision: Decision) -> str:
    """Return a decision with its reason in words and the numbers it compared."""
    reason = str(decision.reason)
    what = f"{VERBS[decision.verdict]}: {reason} ({listed(decision.evidence)})"
    return f"{what}. {SENTENCES[reason]}" if reason in SENTENCES else what


class WhyNotJson(TypedDict):
    """Why something is not in an answer, and what would let it in."""

    named: str
    outcome: str
    document_id: str | None
    title: str
    named_by: str | None
    superseded_by: str | None
    deleted_at: str | None
    chunk_id: str | None
    refused: RefusalJson | None
    story: StoryJson | None
    signals: dict[str, float]
    ranks: list[dict[str, Any]]
    needed_depth: int | None
    filters: dict[str, Any]
    unfiltered: "WhyNotJson | None"
    smallest_change: dict[str, Any] | None
    changes: list[dict[str, Any]]
    pairs: list[dict[str, Any]]


def why_not_json(explained: WhyNot) -> WhyNotJson:
    """Return why something is not in an answer, and what would let it in."""
    unfiltered, changes = explained.unfiltered, explained.changes
    return {
        "named": explained.named,
        "outcome": explained.outcome,
        "document_id": explained.fate.document_id,
        "title": explained.fate.title,
        "named_by": explained.fate.by,
        "superseded_by": explained.fate.superseded_by,
        "deleted_at": explained.fate.deleted_at,
        "chunk_id": explained.chunk_id,
        "refused": refusal_json(explained.refused),
        "story": story_json(explained.story) if explained.story else None,
        "signals": dict(explained.signals),
        "ranks": [asdict(rank) for rank in explained.ranks],
        "needed_depth": explained.needed_depth,
        "filters": dict(explained.filters),
        "unfiltered": why_not_json(unfiltered) if unfiltered else None,
        "smallest_change": change_json(changes[0]) if changes else None,
        "changes": [change_json(change) for change in changes],
        "pairs": [change_json(change) for change in explained.pairs],
    }


def change_json(change: SettingChange) -> dict[str, Any]:
    """Return settings with other values, and the answer that they give."""
    return {
        "settings": [
            {"name": a.name, "variable": a.variable, "from": a.before, "to": a.after}
            for a in change.assignments
        ],
        "size": change.size,
        "verified": True,
        "place": change.place,
        "displaced": list(change.displaced),
        "admitted": list(change.admitted),
    }


def why_not_lines(explained: WhyNot) -> Iterator[str]:
    """Yield why something is not in an answer, and what would let it in."""
    fate = explained.fate
    if fate.by:
        yield f"{fate.by} is document {fate.document_id}"
    match explained.outcome:
        case "deleted":
            yield f"document {fate.document_id} was deleted at {fate.deleted_at}"
        case "superseded":
            by = f" by document {fate.superseded_by}" if fate.superseded_by else ""
            yield f"document {fate.document_id} was superseded{by}"
        case "filtered":
            yield from _filtered_lines(explained)
        case "selected":
            yield "it is in the answer:"
            if explained.story:
                yield from story_lines(explained.story)
        case _:
            yield from _kept_out_lines(explained)


def _filtered_lines(explained: WhyNot) -> Iterator[str]:
    by = listed(explained.filters) or "all conditions together, none of them alone"
    yield f"excluded by the filters: {by}"
    if explained.unfiltered is not None:
        yield "without the filters:"
        for line in why_not_lines(explained.unfiltered):
            yield f"  {line}"


def _kept_out_lines(explained: WhyNot) -> Iterator[str]:
    if explained.outcome == "gated" and explained.refused is not None:
        yield f"the gate refused the question ({listed(explained.refused.evidence)})"
    if explained.story is not None:
        yield from story_lines(explained.story)
    else:
        yield _named(explained.chunk_id or explained.named, explained.fate.title)
        yield "not recalled"
        yield f"signals: {listed(explained.signals)}"
    for rank in explained.ranks:
        yield _rank_line(rank, explained.signals[MEASURE[rank.leg]])
    if explained.outcome == "not_recalled" and explained.needed_depth is not None:
        yield f"a recall depth of {explained.needed_depth} would recall it"
    yield from _change_lines(explained)


def _rank_line(rank: Rank, value: float) -> str:
    place = "no match" if rank.place is None else f"place {rank.place}"
    reach = "not searched" if rank.depth is None else f"recalls the first {rank.depth}"
    return f"{rank.leg} search: {place}, {MEASURE[rank.leg]}={short(value)} ({reach})"


def _change_lines(explained: WhyNot) -> Iterator[str]:
    if explained.changes:
        first, *others = explained.changes
        yield f"smallest change of one setting that selects it ({VERIFIED}):"
        yield from _effect_lines(first)
        if options := _options(first):
            yield f"  to store it for a tenant: kept settings --tenant NAME {options}"
        if others:
            yield "other settings that select it:"
            for change in others:
                yield f"  {_assigned(change)}: place {change.place}"
    elif explained.pairs:
        yield f"no single setting selects it; together these do ({VERIFIED}):"
        yield from _effect_lines(explained.pairs[0])
    else:
        yield f"no change of up to {MOST_SETTINGS} settings selects it"
    yield f"to select it regardless: --pin {explained.chunk_id}"


def _effect_lines(change: SettingChange) -> Iterator[str]:
    yield f"  {_assigned(change)}: place {change.place}"
    if change.displaced:
        yield f"  it removes {_some(change.displaced)}"
    if change.admitted:
        yield f"  it also adds {_some(change.admitted)}"


def _assigned(change: SettingChange) -> str:
    return ", ".join(
        f"{a.variable} from {exact(a.before)} to {exact(a.after)}"
        for a in change.assignments
    )


def _options(change: SettingChange) -> str:
    """Return the options of 'kept settings' that store a change; k is no setting."""
    return " ".join(
        f"--set {a.variable}={exact(a.after)}"
        for a in change.assignments
        if a.variable != K_OPTION
    )


class ReplayedJson(TypedDict):
    """What became of a recorded query's answer."""

    no: int
    at: str
    question: str | None
    question_sha256: str
    preset: str
    outcome: str
    changed: list[str]
    added: list[str]
    lost: list[str]
    reordered: bool
    refused: dict[str, str | None]


def replayed_json(replayed: Replayed) -> ReplayedJson:
    """Return how a recorded query's answer compares with today's."""
    recorded = replayed.recorded
    return {
        "no": recorded.no,
        "at": recorded.at,
        "question": recorded.question,
        "question_sha256": recorded.question_sha256,
        "preset": recorded.preset,
        "outcome": replayed.outcome,
        "changed": list(replayed.changed),
        "added": list(replayed.added),
        "lost": list(replayed.lost),
        "reordered": replayed.reordered,
        "refused": {"before": replayed.refused[0], "after": replayed.refused[1]},
    }


def replayed_line(replayed: Replayed) -> str:
    """Return how a recorded query's answer compares with today's, in a line."""
    recorded = replayed.recorded
    name = f"{recorded.no} {recorded.question or recorded.question_sha256[:12]}"
    causes = f" ({', '.join(replayed.changed)} changed)" if replayed.changed else ""
    match replayed.outcome:
        case "not_recorded":
            return f"{name}: not replayed, the question's text was not recorded"
        case "identical":
            return f"{name}: identical{causes}"
        case "unexplained":
            causes = ", although data, configuration and code are unchanged"
    before, after = replayed.refused
    parts = [
        f"now refused: {after}" if after and not before else "",
        f"now answered, was refused: {before}" if before and not after else "",
        f"added {_some(replayed.added)}" if replayed.added else "",
        f"removed {_some(replayed.lost)}" if replayed.lost else "",
        "reordered" if replayed.reordered else "",
    ]
    how = "; ".join(filter(None, parts)) or "same passages, other decisions"
    return f"{name}: DIFFERENT{causes}: {how}"


def difference_json(difference: Difference) -> dict[str, Any]:
    """Return how the answers of two configurations to one question differ."""
    return {
        "question": difference.question,
        "same": difference.same,
        "now_refused": difference.now_refused,
        "now_answered": difference.now_answered,
        "before": _answered_json(difference.before),
        "after": _answered_json(difference.after),
        "moved": [{"kind": m.kind, **asdict(m)} for m in difference.moved],
    }


def _answered_json(answered: Answered) -> dict[str, Any]:
    return {
        "refused": refusal_json(answered.refused),
        "selected": [c.id for c in answered.selection.candidates],
    }


def difference_lines(difference: Difference) -> Iterator[str]:
    """Yield how the answers of two configurations to one question differ."""
    if difference.same:
        yield f"= {difference.question}"
        return
    turn = ", now refused" if difference.now_refused else ""
    turn = ", now answered" if difference.now_answered else turn
    yield f"≠ {difference.question}{turn}"
    for moved in difference.moved:
        yield f"    {_moved_line(moved)}"


def _moved_line(moved: Moved) -> str:
    name = f"{moved.title or moved.chunk_id} ({moved.chunk_id})"
    if moved.kind == "moved":
        return f"~ {name}: place {moved.before}, now {moved.after}"
    why = "" if moved.reason == moved.stage else f": {moved.reason}"
    stop = {RECALL: "not recalled", GATE: "refused by the gate"}.get(
        moved.stage, f"dropped by {moved.stage}{why}"
    )
    if moved.kind == "added":
        return f"+ {name}: now place {moved.after}, was {stop}"
    return f"- {name}: was place {moved.before}, now {stop}"


def exact(value: object) -> str:
    """Return a setting's value as it has to be typed."""
    if isinstance(value, float) and math.isfinite(value):
        return f"{value:.9f}".rstrip("0").rstrip(".")
    return "none" if value is None else str(value)


def _some(chunk_ids: tuple[str, ...]) -> str:
    rest = len(chunk_ids) - SHOWN
    more = f" and {rest} more" if rest > 0 else ""
    return ", ".join(chunk_ids[:SHOWN]) + more
