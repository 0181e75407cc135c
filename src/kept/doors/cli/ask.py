"""Asking for an answer: kept ask."""

import sys
from collections.abc import Iterable
from contextlib import closing
from typing import Annotated

import typer

from kept._runtime import printable
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
from kept.doors.cli.output import (
    ReaderGoneError,
    complain,
    print_json,
    say,
    say_all,
    shortened,
)
from kept.doors.cli.search import Context, Intent, K, Pin
from kept.errors import KeptError
from kept.search.answer.answer import verdict
from kept.search.answer.ask import Asked, asked_json
from kept.search.answer.citations import Citation
from kept.search.render import rating_of
from kept.search.retrieve import Request


def ask(
    question: Annotated[str, typer.Argument(help="What to answer.")],
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
    extractive: Annotated[
        bool,
        typer.Option(
            "--extractive", help="Quote the sources, also where a model is configured."
        ),
    ] = False,
    stream: Annotated[
        bool,
        typer.Option("--stream/--no-stream", help="Print the answer as it comes."),
    ] = True,
    as_json: options.AsJson = False,
) -> None:
    """Answer QUESTION from the passages that deserve to be cited.

    A language model writes the answer where one is configured (KEPT_LLM_MODEL,
    KEPT_LLM_BASE_URL); otherwise it is the sentences that answer, word for word.

    For example: kept ask "how many days of leave do I have" --store ./kb
    """
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
    with (
        options.opened(settings) as base,
        closing(base.asking(request, extractive=extractive)) as running,
    ):
        _shown(running, live=stream and not as_json)
        asked = running.asked
    if as_json:
        print_json(asked_json(asked))
    elif stream:
        say()
    else:
        say_all(asked.answer.text)
    tell_removed(asked)
    if not as_json:
        print_sources(asked)


def _shown(pieces: Iterable[str], *, live: bool) -> None:
    """Read the answer to its end, and with *live* print each piece at once."""
    begun = False
    try:
        for piece in pieces:
            if live:
                begun = True
                _put(printable(piece))
    except KeptError:
        if begun:
            say()
        raise


def _put(piece: str) -> None:
    """Print a piece of a line, at once."""
    try:
        sys.stdout.write(piece)
        sys.stdout.flush()
    except BrokenPipeError as error:
        raise ReaderGoneError from error


def tell_removed(asked: Asked) -> None:
    """Write to standard error which markers led nowhere."""
    if removed := asked.answer.removed_markers:
        complain(
            f"removed {len(removed)} marker{'s' * (len(removed) > 1)} that led to no "
            f"source: {', '.join(removed)}"
        )


def print_sources(asked: Asked) -> None:
    """Print the citations, what else was looked at, and how good the answer is."""
    answer = asked.answer
    cited = [one for one in answer.citations if one.cited]
    if cited:
        say()
    for citation in cited:
        say(f"[{citation.marker}] {_name(citation)}  ({citation.chunk_id})")
        say(f"    {', '.join(_badges(citation))}")
        say(f"    {citation.source_uri}")
        say(f"    {shortened(citation.snippet, 300)}")
    others = [one for one in answer.citations if not one.cited]
    if others:
        names = dict.fromkeys(map(_name, others))
        say()
        say(shortened(f"Also looked at: {'; '.join(names)}", 300))
    if answer.missing:
        say()
        say(f"Missing: {', '.join(answer.missing)}")
    if said := verdict(answer):
        say()
        say(said)


def _name(citation: Citation) -> str:
    return citation.title or citation.source_uri


def _badges(citation: Citation) -> Iterable[str]:
    if citation.relevance is not None:
        yield f"{rating_of(citation.relevance)} ({citation.relevance:.0%})"
    if citation.low_relevance:
        yield "low relevance"
    yield "cited" if citation.cited else "not cited"
