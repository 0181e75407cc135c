"""Explaining: why, why-not, replay, diff-config."""

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
from kept.doors.cli.output import print_json, say
from kept.doors.cli.questions import questions_in, recorded_questions
from kept.doors.cli.search import K
from kept.errors import InputError
from kept.explain.diff import configuration_named, diff_configurations
from kept.explain.explanations import why as why_of
from kept.explain.explanations import why_not as why_not_of
from kept.explain.render import (
    difference_json,
    difference_lines,
    replayed_json,
    replayed_line,
    story_json,
    story_lines,
    why_not_json,
    why_not_lines,
)
from kept.explain.replay import replay as run_again
from kept.search.retrieve import Request

DIFFERS = 9


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
    """Show what happened to CHUNK when QUESTION was asked.

    For example: kept why 3f0c…:0002 "how many days of leave"
    """
    settings = options.settings_of(
        store=store,
        tenant=tenant,
        preset=preset,
        embedder=embedder,
        record_queries="off",
    )
    with options.opened(settings) as base:
        story = why_of(base.search(question, k=k), chunk)
    if as_json:
        print_json(story_json(story))
        return
    for line in story_lines(story):
        say(line)


def why_not(
    named: Annotated[
        str, typer.Argument(help="A document, chunk, alias or source.", metavar="NAME")
    ],
    question: Annotated[str, typer.Argument(help="The question it does not answer.")],
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
    as_json: options.AsJson = False,
) -> None:
    """Show why NAME is not in the answer to QUESTION, and what would let it in.

    The smallest change of one setting is looked for and verified by running the
    question with it. For example: kept why-not handbook.md "notice period"
    """
    settings = options.settings_of(
        store=store, tenant=tenant, preset=preset, embedder=embedder
    )
    allowed = narrowed(types, tags, where, since, until, filters)
    with options.opened(settings) as base:
        request = Request(question=question, tenant=base.tenant, k=k, filters=allowed)
        why_not = why_not_of(base, named, request)
    if as_json:
        print_json(why_not_json(why_not))
        return
    for line in why_not_lines(why_not):
        say(line)


def replay(
    numbers: Annotated[
        list[int] | None,
        typer.Argument(help="Numbers of recorded queries.", metavar="NO"),
    ] = None,
    last: Annotated[
        int, typer.Option("--last", min=1, help="Without numbers: so many latest.")
    ] = 20,
    store: options.Store = None,
    tenant: options.Tenant = None,
    embedder: options.Embedder = None,
    as_json: options.AsJson = False,
) -> None:
    """Run recorded queries again and compare the answers.

    Queries are recorded with their text when KEPT_RECORD_QUERIES is text. Exits
    with 9 if an answer differs although data, configuration and code are the same.
    """
    settings = options.settings_of(
        store=store, tenant=tenant, embedder=embedder, record_queries="off"
    )
    with options.opened(settings) as base:
        queries = base.recorded_queries(numbers) if numbers else base.last_queries(last)
        replayed = list(run_again(base, queries))
    if as_json:
        print_json({"replayed": [replayed_json(run) for run in replayed]})
    else:
        for run in replayed:
            say(replayed_line(run))
        if not replayed:
            say("no queries are recorded; KEPT_RECORD_QUERIES=text records them")
    if any(run.outcome == "unexplained" for run in replayed):
        raise typer.Exit(DIFFERS)


def diff_config(
    before: Annotated[
        str,
        typer.Argument(help="'current', 'preset:NAME' or a file of settings."),
    ],
    after: Annotated[str, typer.Argument(help="Another of these.")],
    queries: Annotated[
        Path | None,
        typer.Option(
            "--queries", help="File of questions: a line each, as text or JSON."
        ),
    ] = None,
    last: Annotated[
        int | None,
        typer.Option("--last", min=1, help="So many latest recorded queries instead."),
    ] = None,
    store: options.Store = None,
    tenant: options.Tenant = None,
    preset: options.PresetName = None,
    embedder: options.Embedder = None,
    as_json: options.AsJson = False,
) -> None:
    """Show what two configurations do differently, question by question.

    For example: kept diff-config current stricter.yaml --queries questions.txt
    """
    if (queries is None) == (last is None):
        msg = "give either --queries FILE or --last N, so that there is what to ask"
        raise InputError(msg)
    settings = options.settings_of(
        store=store, tenant=tenant, preset=preset, embedder=embedder
    )
    with options.opened(settings) as base:
        questions = (
            recorded_questions(base, last or 1)
            if queries is None
            else questions_in(queries)
        )
        requests = [Request(question=q, tenant=base.tenant) for q in questions]
        one, other = (configuration_named(base, name) for name in (before, after))
        differences = list(diff_configurations(base, one, other, requests))
    changed = [difference for difference in differences if not difference.same]
    if as_json:
        print_json(
            {
                "questions": len(differences),
                "different": len(changed),
                "differences": [
                    difference_json(difference) for difference in differences
                ],
            }
        )
        return
    for difference in changed:
        for line in difference_lines(difference):
            say(line)
    say(f"{len(changed)} of {len(differences)} questions have another answer")
