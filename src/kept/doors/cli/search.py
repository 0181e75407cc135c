"""Asking: search, and the funnel behind the answer."""

from collections.abc import Iterator, Sequence
from typing import Annotated

import typer

from kept.doors.cli import options
from kept.doors.cli.filter_options import (
    AsFilters,
    Since,
    Tags,
    Types,
    Until,
    Where,
    narrowed,
)
from kept.doors.cli.output import number, print_json, print_table, say, shortened
from kept.kernel.counters import counters
from kept.kernel.model import Candidate
from kept.search.answer.extractive import extracts, missing_words, snippet_of
from kept.search.candidate_rows import declared
from kept.search.funnel import account, dropped_by, funnel_rows, latest_first
from kept.search.render import found_json, rating_of, short
from kept.search.retrieve import Found

SHOWN_DROPS = 15
MEASURED = ("relevance", "cosine", "coverage")

K = Annotated[int | None, typer.Option("-k", "--top", help="How many come back.")]
Pin = Annotated[list[str] | None, typer.Option("--pin", help="Force this chunk id in.")]
Context = Annotated[
    int,
    typer.Option(
        "--context", help="How many of the rest come back too; they are not cited."
    ),
]
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
    filters: AsFilters = None,
    pin: Pin = None,
    intent: Intent = "other",
    context: Context = 0,
    item: Annotated[
        str | None,
        typer.Option("--item", help="Item of a questionnaire, for few_shot."),
    ] = None,
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
    allowed = narrowed(types, tags, where, since, until, filters)
    with options.opened(settings) as base:
        found = base.search(
            question,
            k=k,
            filters=allowed,
            intent=intent,
            context=context,
            item=item,
            pinned=pin or (),
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
    _print_passages(found.request.question, found.selection.candidates, "[{}] ")
    if found.context:
        say("not cited:")
        _print_passages(found.request.question, found.context, "  - ")


def _print_passages(question: str, candidates: Sequence[Candidate], mark: str) -> None:
    quoted = extracts(question, candidates)
    for place, candidate in enumerate(candidates, start=1):
        document = candidate.document
        name = document.title or document.source_uri
        say(f"{mark.format(place)}{f'{name}  ' if name else ''}({candidate.id})")
        say(f"    {', '.join(_standing(question, candidate))}")
        if document.source_uri:
            say(f"    {document.source_uri}")
        say(f"    {shortened(snippet_of(place, quoted, candidate.chunk.text), 300)}")


def _standing(question: str, candidate: Candidate) -> Iterator[str]:
    """Yield how relevant a passage is, and what it does not mention."""
    relevance = candidate.signals.get("relevance")
    if relevance is not None:
        yield f"{rating_of(relevance)} ({relevance:.0%})"
    if candidate.protected:
        yield "protected"
    if missing := missing_words(question, (candidate,)):
        yield f"does not mention: {', '.join(missing)}"


def print_funnel(found: Found) -> None:
    """Print how many candidates each stage took in and let through, and why."""
    selection = found.selection
    say()
    print_table(
        ("stage", "in", "out", "what happened"),
        [
            (stage, "" if before is None else before, after, note)
            for stage, before, after, note in funnel_rows(found)
        ],
    )
    say(account(selection))
    counted = counters(selection, found.refused).items()
    if summary := ", ".join(f"{name} {count}" for name, count in counted if count):
        say(f"counted: {summary}")
    if not (selection.candidates or selection.dropped):
        return
    say()
    shown = (*selection.candidates, *latest_first(selection)[:SHOWN_DROPS])
    columns = {
        "candidate": [candidate.id for candidate in shown],
        "outcome": [
            *("selected" for _ in selection.candidates),
            *(dropped_by(selection, c.id) for c in shown[len(selection.candidates) :]),
        ],
        "title": [shortened(candidate.document.title, 40) for candidate in shown],
        **{
            name: [number(candidate.signals.get(name)) for candidate in shown]
            for name in MEASURED
        },
        **_attribute_columns(shown),
    }
    print_table(tuple(columns), list(zip(*columns.values(), strict=True)))
    if (rest := len(selection.dropped) - SHOWN_DROPS) > 0:
        say(f"… and {rest} more; --json has them all")


def _attribute_columns(shown: Sequence[Candidate]) -> dict[str, list[str]]:
    """Return the composite score and the attributes that one of them has, by column."""
    rows = [{"composite": c.signals.get("composite"), **declared(c)} for c in shown]
    names = dict.fromkeys(name for row in rows for name in row)
    columns = {
        name.replace("_", " "): [
            "" if row.get(name) is None else short(row[name]) for row in rows
        ]
        for name in names
    }
    return {name: column for name, column in columns.items() if any(column)}
