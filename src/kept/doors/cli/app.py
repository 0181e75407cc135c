"""The commands, by the names that people type; each is imported when it is used."""

import os
from importlib import import_module
from typing import NamedTuple

import typer

from kept.doors.cli import version

COMPLETION = "_KEPT_COMPLETE"


class Entry(NamedTuple):
    """The module of a command, its function, and its line in `kept --help`.

    The line is here and not taken from the docstring, because importing all commands
    for the help takes three times as long as everything else that it needs.
    """

    module: str
    name: str
    summary: str


# Groups come last, as typer lists them.
COMMANDS = {
    "ingest": Entry("ingest", "ingest", "Ingest documents; exact copies are reused."),
    "search": Entry("search", "search", "Find the passages that deserve to be cited."),
    "select": Entry(
        "select", "select", "Choose from passages that were found elsewhere."
    ),
    "ask": Entry("ask", "ask", "Answer from the passages that deserve to be cited."),
    "why": Entry("explain", "why", "Explain what happened to one chunk."),
    "why-not": Entry(
        "explain", "why_not", "Explain why something is not in an answer."
    ),
    "replay": Entry("explain", "replay", "Run recorded queries again and compare."),
    "diff-config": Entry(
        "explain", "diff_config", "Compare the answers of two configurations."
    ),
    "settings": Entry(
        "settings", "settings", "List the settings, or change a tenant's own."
    ),
    "documents": Entry("manage", "documents", "List the documents."),
    "ledger": Entry(
        "manage", "ledger", "List what was ingested, and with which result."
    ),
    "aliases": Entry(
        "manage", "aliases", "List the texts that were reused, or undo one."
    ),
    "delete": Entry("manage", "delete", "Delete a document for good."),
    "readers": Entry("manage", "readers", "Assign readers to sources by a list."),
    "compare": Entry("evaluate", "compare", "Compare two runs question by question."),
    "calibrate": Entry(
        "calibrate", "calibrate", "Fit relevance to your own judgements."
    ),
    "sweep": Entry("evaluate", "sweep", "Try a grid of settings on one collection."),
    "reembed": Entry(
        "maintenance", "reembed", "Change to the vectors of another embedder."
    ),
    "doctor": Entry(
        "maintenance", "doctor", "Compare the indexes with the store, and repair them."
    ),
    "migrate": Entry(
        "migrate", "migrate", "Copy a store to another one, and verify the copy."
    ),
    "serve": Entry("serve", "serve", "Serve a store over HTTP, to all its tenants."),
    "mcp": Entry("mcp", "mcp", "Serve a knowledge base to MCP clients."),
    "audit-retriever": Entry(
        "check_retriever", "audit_retriever", "Check another retriever for faults."
    ),
    "audit-access": Entry(
        "audit_access", "audit_access", "Check a service for documents that leak."
    ),
    "demo": Entry("demo", "demo", "Ingest an example handbook and ask it questions."),
    "models": Entry(
        "maintenance", "models_app", "Install, add, list, verify or remove models."
    ),
    "references": Entry(
        "references", "references_app", "Labelled passages as examples for a prompt."
    ),
    "eval": Entry("evaluate", "eval_app", "Measure retrieval on a judged collection."),
}


def app_for(words: list[str]) -> typer.Typer:
    """Return the application for a command line: one command, or help for all."""
    if words and words[0] in COMMANDS:
        alone = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode=None)
        alone.callback()(_nothing)
        _add(alone, words[0])
        return alone
    # A shell that completes a line asks for the options of any command, and a command
    # may come behind an option of its own, or behind "--".
    if COMPLETION in os.environ or not COMMANDS.keys().isdisjoint(words):
        return whole_app()
    listed = _empty()
    for name, entry in COMMANDS.items():
        listed.command(name, short_help=entry.summary)(_nothing)
    return listed


def whole_app() -> typer.Typer:
    """Return the application with every command, for completion and documentation."""
    whole = _empty()
    for name in COMMANDS:
        _add(whole, name)
    return whole


def _empty() -> typer.Typer:
    app = typer.Typer(
        name="kept",
        no_args_is_help=True,
        add_completion=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    app.callback(
        invoke_without_command=True,
        help="The passages that deserve to be cited, and for every candidate why.",
    )(version.before_commands)
    return app


def _add(app: typer.Typer, name: str) -> None:
    entry = COMMANDS[name]
    found = getattr(import_module(f"kept.doors.cli.{entry.module}"), entry.name)
    if isinstance(found, typer.Typer):
        app.add_typer(found, name=name, short_help=entry.summary)
    else:
        app.command(name, short_help=entry.summary)(found)


def _nothing() -> None:
    """Take no options before the command."""
