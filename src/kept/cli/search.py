"""Asking: search, and why."""

from typing import Annotated

import typer

from kept.cli import options
from kept.cli.output import number, print_json, print_table, say, shortened
from kept.decisions import Decision
from kept.errors import NotFoundError
from kept.filters import Filters
from kept.render import decision_json, found_json, story
from kept.retrieve import Found

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


def why(
    chunk: Annotated[str, typer.Argument(help="The chunk id, as search prints it.")],
    question: Annotated[str, typer.Argument(help="The question it was weighed for.")],
    store: options.Store = None,
    tenant: options.Tenant = None,
    preset: options.PresetName = None,
    embedder: options.Embedder = None,
    k: K = None,
    as_json: options.AsJson = False,
) -> None:
    """Tell what happened to CHUNK when QUESTION was asked."""
    settings = options.settings_of(
        store=store, tenant=tenant, preset=preset, embedder=embedder
    )
    with options.opened(settings) as base:
        found = base.search(question, k=k)
    selection = found.selection
    known = {c.id for c in (*selection.candidates, *selection.dropped)}
    if chunk not in known:
        advice = "it was not recalled for this question"
        raise NotFoundError("candidate", chunk, advice)
    if not as_json:
        for line in story(selection, chunk):
            say(line)
        return
    [candidate] = [
        c for c in (*selection.candidates, *selection.dropped) if c.id == chunk
    ]
    print_json(
        {
            "chunk_id": chunk,
            "selected": any(c.id == chunk for c in selection.candidates),
            "signals": dict(candidate.signals),
            "story": [
                {"stage": stage, **decision_json(decision)}
                for stage, decision in selection.explain(chunk)
            ],
        }
    )


def print_found(found: Found) -> None:
    """Print the passages, or the refusal."""
    if found.refused is not None:
        say(found.refused.message)
    for place, candidate in enumerate(found.selection.candidates, start=1):
        document = candidate.document
        shield = ", protected" if candidate.protected else ""
        relevance = candidate.signals.get("relevance", 0.0)
        say(f"[{place}] {document.title or document.source_uri}  ({candidate.id})")
        say(f"    relevance {relevance:.0%}, score {candidate.score:.3f}{shield}")
        say(f"    {document.source_uri}")
        say(f"    {shortened(candidate.chunk.text, 300)}")


def print_funnel(found: Found) -> None:
    """Print how many candidates each stage took in and let through, and why."""
    selection = found.selection
    say()
    print_table(
        ("stage", "in", "out", "what happened"),
        [
            (step.stage, step.before, step.after, _reasons(step.decisions))
            for step in selection.trace
        ],
    )
    say(
        f"{selection.recalled} recalled + {selection.added} added = "
        f"{len(selection.candidates)} selected + {len(selection.dropped)} dropped"
    )
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
            for candidate in selection.dropped[:15]
        ],
    )


def _dropped_by(found: Found, chunk_id: str) -> str:
    *_, (stage, decision) = found.selection.explain(chunk_id)
    return f"{stage}: {decision.reason}"


def _reasons(decisions: tuple[Decision, ...]) -> str:
    counts: dict[str, int] = {}
    for decision in decisions:
        name = f"{decision.verdict} {decision.reason}"
        counts[name] = counts.get(name, 0) + 1
    return ", ".join(f"{count} {name}" for name, count in counts.items())
