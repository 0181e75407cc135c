"""Check a retriever that is not Kept's."""

import os
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Annotated

import typer

from kept.doors.cli import options
from kept.doors.cli.output import complain, on_a_line, print_json, put_line
from kept.errors import UnreadableSourceError
from kept.evaluation.collection import load_question_texts
from kept.evaluation.retriever_check import QuestioningEffort, audit
from kept.evaluation.retriever_check.html_page import as_html
from kept.evaluation.retriever_check.target import loaded

PROBLEMS = 24
COLOURS = {"PROBLEM": "red", "warning": "yellow", "fine": "green"}


def audit_retriever(
    retriever: Annotated[
        str, typer.Argument(help="module:function, or path/to/file.py:function.")
    ],
    queries: Annotated[
        Path, typer.Option(help="File of questions, one a line, or JSON lines.")
    ],
    k: Annotated[
        int, typer.Option("-k", "--top", min=1, help="How many to ask for.")
    ] = 10,
    runs: Annotated[
        int, typer.Option(min=2, help="How often each question is asked.")
    ] = 3,
    threads: Annotated[
        int, typer.Option(min=1, max=256, help="How many are asked at once.")
    ] = 8,
    limit: Annotated[
        int, typer.Option(min=1, help="How many of the questions are asked.")
    ] = 100,
    html: Annotated[
        Path | None, typer.Option(help="Write the report as a page here, too.")
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Probe the RETRIEVER of another system and report its faults.

    It is called with a question and how many are wanted, and returns a list of
    texts, (document, score) pairs, mappings, or documents of LangChain, LlamaIndex
    or Haystack. Ends with 24 if there are problems.

    For example: kept audit-retriever shop.search:find --queries questions.txt
    """
    options.demand_writable(html)
    questions = load_question_texts(queries)[:limit]
    with redirect_stdout(sys.stderr):
        report = audit(
            loaded(retriever),
            questions,
            k=k,
            effort=QuestioningEffort(runs=runs, threads=threads),
            progress=complain if sys.stderr.isatty() else None,
        )
    if html is not None:
        _write(html, as_html(report))
    if as_json:
        print_json(report.as_data())
    else:
        coloured = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
        for line in report.lines():
            shown = on_a_line(line)
            put_line(_coloured(shown) if coloured else shown)
    if report.problems:
        raise typer.Exit(PROBLEMS)


def _coloured(line: str) -> str:
    """Return a line with its severity in the colour that people expect."""
    for label, colour in COLOURS.items():
        if line.startswith(f"{label} "):
            return typer.style(label, fg=colour, bold=True) + line[len(label) :]
    return line


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, "utf-8")
    except OSError as error:
        raise UnreadableSourceError(
            str(path), f"it cannot be written ({error.strerror})", "name another file"
        ) from error
