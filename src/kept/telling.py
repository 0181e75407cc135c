"""Telling: explanations as JSON for machines and as sentences for people."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from kept.counterfactual import K_OPTION, Change
from kept.decisions import Decision, Reason, Verdict
from kept.differences import Answered, Difference, Moved
from kept.explain import Passage, Story, WhyNot
from kept.knobs import Assignment
from kept.render import decision_json, listed, refusal_json, short
from kept.replay import Replayed

SHOWN = 5
LEGS = {"dense": "by meaning", "keyword": "by words"}
MEASURE = {"dense": "cosine", "keyword": "bm25"}
SENTENCES = {str(reason): reason.doc for reason in Reason}
DONE = {
    Verdict.DROPPED: "dropped",
    Verdict.SPARED: "would have been dropped, spared because it is protected",
    Verdict.PROTECTED: "protected",
    Verdict.ADDED: "added",
}


def story_json(story: Story) -> dict[str, Any]:
    """Return the story of one candidate."""
    return {
        "chunk_id": story.candidate.id,
        "document_id": story.candidate.document.id,
        "title": story.candidate.document.title,
        "selected": story.place is not None,
        "place": story.place,
        "of": story.selected,
        "score": story.candidate.score,
        "signals": dict(story.candidate.signals),
        "story": [_passage_json(passage) for passage in story.passages],
    }


def _passage_json(passage: Passage) -> dict[str, Any]:
    seen = {"stage": passage.stage, "before": passage.before, "after": passage.after}
    if passage.decision is None:
        return {**seen, "verdict": "passed"}
    return {**seen, **decision_json(passage.decision)}


def story_lines(story: Story) -> Iterator[str]:
    """Yield the story of one candidate, a sentence a line."""
    candidate = story.candidate
    legs = [
        words for leg, words in LEGS.items() if candidate.signals.get(f"in_{leg}") == 1
    ]
    yield f"{candidate.id} of {candidate.document.title or candidate.document.id}"
    yield f"recalled {' and '.join(legs)}" if legs else "forced in by the caller"
    yield "measured: " + listed(candidate.signals)
    for passage in story.passages:
        yield _passed(passage)
    if story.place is None:
        yield "not selected"
        return
    yield (
        f"selected: place {story.place} of {story.selected}, "
        f"score {short(candidate.score)}"
    )


def _passed(passage: Passage) -> str:
    if passage.decision is None:
        return f"{passage.stage}: passed ({passage.after} of {passage.before} stay)"
    return f"{passage.stage}: {decided(passage.decision)}"


def decided(decision: Decision) -> str:
    """Return what was decided, why in words, and the numbers that were compared."""
    reason = str(decision.reason)
    told = f"{DONE[decision.verdict]}: {reason} ({listed(decision.evidence)})"
    return f"{told}. {SENTENCES[reason]}" if reason in SENTENCES else told


def why_not_json(told: WhyNot) -> dict[str, Any]:
    """Return why something is not in an answer, and what would let it in."""
    unfiltered = told.unfiltered
    return {
        "named": told.named,
        "outcome": told.outcome,
        "document_id": told.fate.document_id,
        "title": told.fate.title,
        "named_by": told.fate.by,
        "superseded_by": told.fate.superseded_by,
        "deleted_at": told.fate.deleted_at,
        "chunk_id": told.chunk_id,
        "refused": refusal_json(told.refused),
        "story": story_json(told.story) if told.story else None,
        "signals": dict(told.signals),
        "ranks": [asdict(rank) for rank in told.ranks],
        "needed_depth": told.needed_depth,
        "filters": dict(told.filters),
        "unfiltered": why_not_json(unfiltered) if unfiltered else None,
        "smallest_change": change_json(told.changes[0]) if told.changes else None,
        "changes": [change_json(change) for change in told.changes],
        "pairs": [change_json(change) for change in told.pairs],
    }


def change_json(change: Change) -> dict[str, Any]:
    """Return settings with other values, and what they do."""
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


def why_not_lines(told: WhyNot) -> Iterator[str]:
    """Yield why something is not in an answer, a sentence a line."""
    fate = told.fate
    if fate.by:
        yield f"{fate.by} stands for document {fate.document_id}"
    if told.outcome == "deleted":
        yield f"document {fate.document_id} was deleted at {fate.deleted_at}"
    elif told.outcome == "superseded":
        successor = fate.superseded_by
        yield f"document {fate.document_id} is no longer current" + (
            f"; document {successor} took its place" if successor else ""
        )
    elif told.outcome == "filtered":
        yield from _filtered_lines(told)
    elif told.outcome == "selected":
        yield "it is in the answer:"
        if told.story:
            yield from story_lines(told.story)
    else:
        yield from _kept_out_lines(told)


def _filtered_lines(told: WhyNot) -> Iterator[str]:
    by = listed(told.filters) or "all filters together, though none of them alone"
    yield f"excluded by the filters, before anything was scored: {by}"
    if told.unfiltered is not None:
        yield "without filters:"
        for line in why_not_lines(told.unfiltered):
            yield f"  {line}"


def _kept_out_lines(told: WhyNot) -> Iterator[str]:
    if told.outcome == "gated" and told.refused is not None:
        yield f"the gate refused the question ({listed(told.refused.evidence)})"
    if told.story is not None:
        yield from story_lines(told.story)
    else:
        yield f"{told.chunk_id} of {told.fate.title or told.fate.document_id}"
        yield "not recalled; measured anyway: " + listed(told.signals)
    for rank in told.ranks:
        yield _ranked_line(rank.leg, rank.place, rank.depth, told.signals)
    if told.story is None and told.needed_depth is not None:
        yield f"a depth of {told.needed_depth} would recall it"
    yield from _change_lines(told)


def _ranked_line(
    leg: str, place: int | None, depth: int | None, signals: Mapping[str, float]
) -> str:
    measure = MEASURE[leg]
    where = "in no place" if place is None else f"place {place}"
    reach = "a leg that is not searched" if depth is None else f"the first {depth} come"
    return f"{LEGS[leg]}: {where} ({measure}={short(signals[measure])}; {reach})"


def _change_lines(told: WhyNot) -> Iterator[str]:
    if told.changes:
        yield "the smallest change of one setting that lets it in, verified by a run:"
        yield from _tell_change(told.changes[0])
        if typed := _typed(told.changes[0]):
            yield f"  for one tenant: kept settings --tenant NAME {typed}"
        if others := told.changes[1:]:
            yield "also:"
            for change in others:
                yield f"  {_assigned(change)}: place {change.place}"
    elif told.pairs:
        yield "no single setting lets it in; these two do, verified by a run:"
        yield from _tell_change(told.pairs[0])
    else:
        yield "neither one setting nor two that were tried let it in"
    yield f"--pin {told.chunk_id} forces it in"


def _tell_change(change: Change) -> Iterator[str]:
    yield f"  {_assigned(change)}: place {change.place}"
    if change.displaced:
        yield f"  it displaces {_some(change.displaced)}"
    if change.admitted:
        yield f"  it also lets in {_some(change.admitted)}"


def _assigned(change: Change) -> str:
    return ", ".join(
        f"{a.variable} from {_before(a)} to {exact(a.after)}"
        for a in change.assignments
    )


def _typed(change: Change) -> str:
    """Return the options that store a change; k is no setting."""
    return " ".join(
        f"--set {a.variable}={exact(a.after)}"
        for a in change.assignments
        if a.variable != K_OPTION
    )


def _before(assignment: Assignment) -> str:
    stands_for = assignment.stands_for
    means = "" if stands_for is None else f" (which is {exact(stands_for)})"
    return exact(assignment.before) + means


def replayed_json(told: Replayed) -> dict[str, Any]:
    """Return what became of a recorded query's answer."""
    recorded = told.recorded
    return {
        "no": recorded.no,
        "at": recorded.at,
        "question": recorded.question,
        "question_sha256": recorded.question_sha256,
        "preset": recorded.preset,
        "outcome": told.outcome,
        "changed": list(told.changed),
        "added": list(told.added),
        "lost": list(told.lost),
        "reordered": told.reordered,
        "refused": {"before": told.refused[0], "after": told.refused[1]},
    }


def replayed_line(told: Replayed) -> str:
    """Return what became of a recorded query's answer, in a sentence."""
    recorded = told.recorded
    name = f"{recorded.no} {recorded.question or recorded.question_sha256[:12]!s}"
    changed = f" (changed: {', '.join(told.changed)})" if told.changed else ""
    if told.outcome == "not_recorded":
        return f"{name}: not run, its text was not recorded"
    if told.outcome == "identical":
        return f"{name}: identical{changed}"
    before, after = told.refused
    parts = [
        f"now refused: {after}" if after and not before else "",
        f"now answered, was {before}" if before and not after else "",
        f"added {_some(told.added)}" if told.added else "",
        f"lost {_some(told.lost)}" if told.lost else "",
        "another order" if told.reordered else "",
    ]
    how = "; ".join(part for part in parts if part) or "the same passages, otherwise"
    why = changed or " although data, configuration and code are the same"
    return f"{name}: DIFFERENT{why}: {how}"


def difference_json(told: Difference) -> dict[str, Any]:
    """Return what two configurations do differently for one question."""
    return {
        "question": told.question,
        "same": told.same,
        "now_refused": told.now_refused,
        "now_answered": told.now_answered,
        "before": _answered_json(told.before),
        "after": _answered_json(told.after),
        "moved": [{"kind": m.kind, **asdict(m)} for m in told.moved],
    }


def _answered_json(answered: Answered) -> dict[str, Any]:
    return {
        "refused": refusal_json(answered.refused),
        "selected": [c.id for c in answered.selection.candidates],
    }


def difference_lines(told: Difference) -> Iterator[str]:
    """Yield what two configurations do differently for one question."""
    if told.same:
        yield f"= {told.question}"
        return
    turn = ", now refused" if told.now_refused else ""
    turn = ", now answered" if told.now_answered else turn
    yield f"≠ {told.question}{turn}"
    for moved in told.moved:
        yield f"    {_moved_line(moved)}"


def _moved_line(moved: Moved) -> str:
    name = f"{moved.title or moved.chunk_id} ({moved.chunk_id})"
    by = f"{moved.stage}: {moved.reason}" if moved.reason else moved.stage
    if moved.kind == "added":
        return f"+ {name} comes in at {moved.after}; was kept out by {by}"
    if moved.kind == "lost":
        return f"- {name} leaves place {moved.before}; kept out by {by}"
    return f"~ {name} moves from {moved.before} to {moved.after}"


def exact(value: object) -> str:
    """Return a setting's value as it has to be typed."""
    if isinstance(value, float) and math.isfinite(value):
        return f"{value:.9f}".rstrip("0").rstrip(".")
    return "none" if value is None else str(value)


def _some(chunk_ids: tuple[str, ...]) -> str:
    rest = len(chunk_ids) - SHOWN
    more = f" and {rest} more" if rest > 0 else ""
    return ", ".join(chunk_ids[:SHOWN]) + more
