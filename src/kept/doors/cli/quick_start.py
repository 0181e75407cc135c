"""Starting quickly: a command that is asked often is loaded without the others."""

from importlib import import_module

import typer

HOMES = {
    "search": "search",
    "select": "select",
    "ingest": "ingest",
    "documents": "manage",
    "ledger": "manage",
    "aliases": "manage",
    "delete": "manage",
}
VERSION_WORDS = {"--version", "--json"}


def app_for(words: list[str]) -> typer.Typer:
    """Return the application for a command line: all commands, or just the one."""
    if words and set(words) <= VERSION_WORDS:
        return _version_alone()
    if not words or words[0] not in HOMES:
        everything: typer.Typer = import_module("kept.doors.cli.app").app
        return everything
    alone = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode=None)
    alone.callback()(_nothing)
    module = import_module(f"kept.doors.cli.{HOMES[words[0]]}")
    alone.command(words[0])(getattr(module, words[0]))
    return alone


def _version_alone() -> typer.Typer:
    alone = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode=None)
    version = import_module("kept.doors.cli.version")
    alone.callback(invoke_without_command=True)(version.before_commands)
    return alone


def _nothing() -> None:
    """Take no options before the command."""
