"""Selecting: passages that another retriever found, from a file or a pipe."""

from contextlib import ExitStack
from pathlib import Path
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
from kept.doors.cli.output import print_json
from kept.doors.cli.search import Context, Intent, K, Pin, print_found, print_funnel
from kept.errors import UnreadableSourceError
from kept.ingest.sources import standard_input
from kept.knowledge_base.select import Selecting
from kept.search.render import found_json
from kept.search.retrieve import Request
from kept.search.select import Given, Passage
from kept.search.select.json_lines import passages_in


def select(
    question: Annotated[str, typer.Argument(help="What was looked for.")],
    passages: Annotated[
        str, typer.Argument(help="File of JSON lines, a passage in each; - is a pipe.")
    ] = "-",
    scores: Annotated[
        str | None,
        typer.Option(
            help="What the scores mean: cosine, cosine_distance, similarity, distance,"
            " bm25, rerank, order or none."
        ),
    ] = None,
    order: Annotated[
        str | None,
        typer.Option(help="Whose order counts: given or kept.", show_default="given"),
    ] = None,
    cosines: Annotated[
        str, typer.Option(help="Measure by our own cosines, or by the given ones.")
    ] = "own",
    ids: Annotated[
        str, typer.Option(help="Missing ids are derived from the text, or required.")
    ] = "derived",
    store: Annotated[
        str | None,
        typer.Option(
            "--store",
            help="Knowledge base that weighs the words: a folder, or a server's URL.",
            show_default="the passages do",
            metavar="STORE",
        ),
    ] = None,
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
    explain: Annotated[
        bool, typer.Option("--explain", help="Show the funnel, stage by stage.")
    ] = False,
    as_json: options.AsJson = False,
) -> None:
    """Choose what to cite for QUESTION from PASSAGES that were found elsewhere.

    For example: kept select "days of leave" found.jsonl --scores distance
    """
    given = Given.of(scores, order=order, cosines=cosines, ids=ids)
    settings = options.settings_of(
        store=store, tenant=tenant, preset=preset, embedder=embedder
    )
    request = Request(
        question=question,
        tenant=settings.tenant,
        k=k,
        filters=narrowed(types, tags, where, since, until, filters),
        intent=intent,
        context=context,
        pinned=frozenset(pin or ()),
    )
    handed = _read(passages)
    with ExitStack() as held:
        base = held.enter_context(options.opened(settings)) if store else None
        progress = options.told_on_stderr()
        chosen = held.enter_context(Selecting(settings, base=base, progress=progress))
        found = chosen.answer(request, handed, given)
    if as_json:
        print_json(found_json(found))
        return
    print_found(found)
    if explain:
        print_funnel(found)


def _read(source: str) -> list[Passage]:
    if source == "-":
        return passages_in(standard_input(), "standard input")
    try:
        with Path(source).open("rb") as lines:
            return passages_in(lines, source)
    except OSError as error:
        raise UnreadableSourceError(
            source,
            f"it cannot be read ({error.strerror})",
            "give a file of JSON lines, a passage in each",
        ) from error
