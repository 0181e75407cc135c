"""Migrating: kept migrate."""

from dataclasses import asdict
from typing import Annotated

import typer

from kept.doors.cli import options
from kept.doors.cli.output import print_json, print_table, say
from kept.doors.cli.progress import bar


def migrate(
    source: Annotated[
        str, typer.Argument(help="The store to move from.", metavar="FROM")
    ],
    target: Annotated[
        str, typer.Argument(help="The empty store to move to.", metavar="TO")
    ],
    as_json: options.AsJson = False,
) -> None:
    """Carry everything of one store to another, and verify that it arrived.

    Both are folders or URLs of servers. Nothing is embedded again. Interrupted, the
    same command goes on where it stopped. For example:
    kept migrate ./kb postgresql://me@db.example.org/kept
    """
    from kept.knowledge_base.migration import migrate as run  # noqa: PLC0415 -- loaded when asked for

    with bar("migrating") as report:
        moved = run(options.settings_of(), source, target, report)
    if as_json:
        print_json(asdict(moved))
        return
    print_table(
        ("tenant", "what", "rows", "same"),
        [
            (part.tenant or "", part.what, part.rows, "yes" if part.same else "NO")
            for part in moved.parts
        ],
    )
    again = " It went on where it had stopped." if moved.resumed else ""
    say(f"{moved.target} holds all of {moved.source}, verified.{again}")
