"""Asking: search, and the funnel behind the answer."""

from typing import Annotated

import typer

from kept.cli import options
from kept.cli.output import number, print_json, print_table, say, shortened
from kept.counters import counters
from kept.decisions import Decision, Selection, Step, Verdict
from kept.extractive import extracts, snippet_of
from kept.filters import Filters
from kept.model import Candidate
from kept.render import found_json, short
from kept.retrieve import Found

SHOWN_DROPS = 15

K = Annotated[int | None, typer.Option("-k", "--top", help="How many come back.")]
Types = Annotated[
    list[str] | None, typer.Option("--type", help="Only documents of this type.")
]
Tags = Annotated[
    list[str] | None, typer.Option("--tag", help="Only chunks with this tag.")
]
Where = Annotated[
    list[str] | None,
    typer.Option("--where", help="Only documents whose metadata has KEY=VALUE."),
]
Since = Annotated[str | None, typer.Option("--since", help="Not before this date.")]
Until = Annotated[str | None, typer.Option("--until", help="Not after this date.")]
Pin = Annotated[list[str] | None, typer.Option("--pin", help="Force this chunk id in.")]
Intent = Annotated[str, typer.Option("--intent", help="Intent, for per-intent caps.")]


def search(
    question: Annotated[str, typer.Argument(help="What to look for.")],
    store: options.Store = None,
    tenant: options.Tenant = None,
    preset: options.PresetName = None,
    embedder: options.Embedder = None,
    k: K = None,
    types: Types = None,
    tags: Tags = None,
    where: Where = None,
    since: Since = None,
    until: Until = None,
    pin: Pin = None,
    intent: Intent = "other",
    explain: Annotated[
        bool, typer.Option("--explain", help="Show the funnel, stage by stage.")
    ] = False,
    as_json: options.AsJson = False,
) -> None:
    """Find the passages that deserve to be cited for QUESTION.

    For example: kept search "how many days of leave" --store ./kb
    """
    settings = options.settings_of(
        store=store, tenant=tenant, preset=preset, embedder=embedder
    )
    filters = Filters(
        types=tuple(types or ()),
        tags=tuple(tags or ()),
        metadata=options.pairs("--where", where),
        since=since,
        until=until,
    )
    with options.opened(settings) as base:
        found = base.search(
            question, k=k, filters=filters, intent=intent, pinned=pin or ()
        )
    if as_json:
        print_json(found_json(found))
        return
    print_found(found)
    if explain:
        print_funnel(found)


def print_found(found: Found) -> None:
    """Print the passages, or the refusal."""
    if found.refused is not None:
        say(found.refused.message)
    told = extracts(found.request.question, found.selection.candidates)
    for place, candidate in enumerate(found.selection.candidates, start=1):
        document = candidate.document
        shield = ", protected" if candidate.protected else ""
        relevance = candidate.signals.get("relevance", 0.0)
        say(f"[{place}] {document.title or document.source_uri}  ({candidate.id})")
        say(f"    relevance {relevance:.0%}, score {candidate.score:.3f}{shield}")
        say(f"    {document.source_uri}")
        say(f"    {shortened(snippet_of(place, told, candidate.chunk.text), 300)}")


def print_funnel(found: Found) -> None:
    """Print how many candidates each stage took in and let through, and why."""
    selection = found.selection
    say()
    print_table(
        ("stage", "in", "out", "what happened"),
        [
            ("recall", "", selection.recalled, _legs(found)),
            *((s.stage, s.before, s.after, _happened(s)) for s in selection.trace),
        ],
    )
    say(
        f"{selection.recalled} recalled + {selection.added} added = "
        f"{len(selection.candidates)} selected + {len(selection.dropped)} dropped"
    )
    counted = counters(selection, found.refused).items()
    if told := ", ".join(f"{name} {count}" for name, count in counted if count):
        say(f"counted: {told}")
    if not selection.dropped:
        return
    say()
    print_table(
        ("dropped", "by", "title", "relevance", "cosine", "coverage"),
        [
            (
                candidate.id,
                _dropped_by(found, candidate.id),
                shortened(candidate.document.title, 40),
                number(candidate.signals.get("relevance")),
                number(candidate.signals.get("cosine")),
                number(candidate.signals.get("coverage")),
            )
            for candidate in _latest_first(selection)[:SHOWN_DROPS]
        ],
    )
    if (rest := len(selection.dropped) - SHOWN_DROPS) > 0:
        say(f"… and {rest} more; --json has them all")


def _latest_first(selection: Selection) -> list[Candidate]:
    """Return the dropped, those that came farthest first."""
    stages = {step.stage: place for place, step in enumerate(selection.trace)}
    farthest = {
        decision.chunk_id: stages[step.stage]
        for step in selection.trace
        for decision in step.decisions
        if decision.verdict is Verdict.DROPPED
    }
    return sorted(selection.dropped, key=lambda c: -farthest[c.id])


def _legs(found: Found) -> str:
    """Say how many of the candidates each leg brought."""
    pool = (*found.selection.candidates, *found.selection.dropped)
    brought = {
        leg: sum(1 for c in pool if c.signals.get(f"in_{leg}") == 1)
        for leg in ("dense", "keyword")
    }
    return ", ".join(f"{count} {leg}" for leg, count in brought.items() if count)


def _happened(step: Step) -> str:
    """Say what a stage did: its decisions by reason, and its facts."""
    facts = ", ".join(f"{name}={short(fact)}" for name, fact in step.facts.items())
    return "; ".join(part for part in (_reasons(step.decisions), facts) if part)


def _dropped_by(found: Found, chunk_id: str) -> str:
    *_, (stage, decision) = found.selection.explain(chunk_id)
    return f"{stage}: {decision.reason}"


def _reasons(decisions: tuple[Decision, ...]) -> str:
    counts: dict[str, int] = {}
    for decision in decisions:
        name = f"{decision.verdict} {decision.reason}"
        counts[name] = counts.get(name, 0) + 1
    return ", ".join(f"{count} {name}" for name, count in counts.items())
