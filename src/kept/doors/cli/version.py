"""The version, with what a fault report needs: kept --version."""

from typing import Annotated

import typer

from kept.doors.cli.output import print_json, say_all

Version = Annotated[
    bool,
    typer.Option(
        "--version", help="Print the version and what Kept was built from and runs on."
    ),
]
AsJson = Annotated[
    bool, typer.Option("--json", help="With --version: print JSON for machines.")
]


def before_commands(
    context: typer.Context, version: Version = False, as_json: AsJson = False
) -> None:
    """Say what this Kept is, where that is asked for."""
    if version:
        from kept.doors.about import about  # noqa: PLC0415 -- not for every command

        facts = about()
        if as_json:
            print_json(facts.as_json())
        else:
            say_all("\n".join(facts.as_lines()))
        raise typer.Exit
    if as_json:
        msg = "--json before a command goes with --version; put it behind the command"
        raise typer.BadParameter(msg, ctx=context)
    if context.invoked_subcommand is None:
        msg = "a command is missing"
        raise typer.BadParameter(msg, ctx=context)
