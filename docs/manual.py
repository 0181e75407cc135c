"""The manual page of the command line, in man(7) macros."""

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
import typer.main

from kept.doors.cli.app import whole_app

NOTE = '.\\" Written by docs/generate.py; change the code instead.'
FILES = {
    "./.kept": "The knowledge base, unless --store or KEPT_STORE names another.",
    "~/.cache/kept": "Embedding models, unless KEPT_MODELS_DIR names another folder.",
}
VARIABLES = (
    "Every setting is an environment variable with the prefix KEPT_; 'kept settings' "
    "lists all of them with their values and sources."
)
EXIT_CODES = Path(__file__).parent / "reference" / "exit-codes.md"


def man_page() -> str:
    """Return the page that 'man kept' shows."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    command = typer.main.get_command(whole_app())
    context = typer.Context(command, info_name="kept")
    summary = inspect.cleandoc(command.help or "").rstrip(".")
    yield NOTE
    yield '.TH KEPT 1 "" "Kept" "User Commands"'
    yield ".SH NAME"
    yield f"kept \\- {_text(summary[0].lower() + summary[1:])}"
    yield ".SH SYNOPSIS"
    yield ".B kept"
    yield "[\\fIOPTIONS\\fR] \\fICOMMAND\\fR [\\fIARGUMENTS\\fR]"
    yield ".SH DESCRIPTION"
    yield _text(
        "Stores documents and, for a question, returns the passages worth citing, or a "
        "plain 'nothing relevant'; the record explains the decision on every candidate."
    )
    yield ".SH OPTIONS"
    yield from _options(command, context)
    yield ".SH COMMANDS"
    yield from _commands(command, context, "kept")
    yield ".SH EXIT STATUS"
    for code, meaning in _exit_codes():
        yield from (".TP", f".B {code}", _text(meaning))
    yield ".SH ENVIRONMENT"
    yield _text(VARIABLES)
    yield ".SH FILES"
    for name, meaning in FILES.items():
        yield from (".TP", f".I {_text(name)}", _text(meaning))


def _exit_codes() -> list[tuple[str, str]]:
    """Return the exit codes with their meanings, from the reference page."""
    rows = re.findall(
        r"^\| (\d+) \| (.*?) \|", EXIT_CODES.read_text("utf-8"), re.MULTILINE
    )
    return [(code, meaning.replace("`", "")) for code, meaning in rows]


def _commands(
    command: Any,  # noqa: ANN401 -- typer brings its own click
    context: Any,  # noqa: ANN401
    path: str,
) -> Iterator[str]:
    for name in sorted(command.list_commands(context)):
        child = command.get_command(context, name)
        below = typer.Context(child, info_name=name, parent=context)
        if hasattr(child, "list_commands"):
            yield from _commands(child, below, f"{path} {name}")
            continue
        pieces = " ".join(child.collect_usage_pieces(below))
        yield f'.SS "{_text(f"{path} {name}")}"'
        yield f"\\fB{_text(f'{path} {name}')}\\fR {_text(pieces)}"
        for paragraph in inspect.cleandoc(child.help or "").split("\n\n"):
            yield from (".PP", _text(" ".join(paragraph.split())))
        yield from _options(child, below)


def _options(
    command: Any,  # noqa: ANN401 -- as above
    context: Any,  # noqa: ANN401
) -> Iterator[str]:
    for parameter in command.params:
        if parameter.param_type_name != "option" or "--help" in parameter.opts:
            continue
        names, meaning = parameter.get_help_record(context)
        yield from (".TP", f".B {_text(names)}", _text(" ".join(meaning.split())))


def _text(text: str) -> str:
    """Escape *text* so that roff prints it literally."""
    plain = text.replace("\\", "\\e").replace("-", "\\-").replace('"', "\\(dq")
    ascii_only = "".join(c if c.isascii() else f"\\[u{ord(c):04X}]" for c in plain)
    return f"\\&{ascii_only}" if plain.startswith((".", "'")) else ascii_only
