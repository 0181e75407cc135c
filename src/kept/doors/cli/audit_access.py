"""Check a running service for documents that leak: kept audit-access."""

import os
from typing import Annotated

import httpx
import typer

from kept.doors.cli import options
from kept.doors.cli.output import on_a_line, print_json, put_line
from kept.errors import InputError
from kept.evaluation.access_check import AccessCheck

LEAKS = 25
PATIENCE_SECONDS = 90.0
KEY = "KEPT_AUDIT_KEY"


def audit_access(
    url: Annotated[
        str, typer.Argument(help="Address of the service, as http://127.0.0.1:8750.")
    ],
    tenant: Annotated[
        str | None,
        typer.Option(
            "--tenant",
            help="Whose knowledge base; a new one with a key of every tenant.",
        ),
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Plant documents that outsiders may not read, and try to read them.

    The admin key is taken from KEPT_AUDIT_KEY. Outsiders of every role ask through
    every route and page, before and after; an answer that changes, or that holds a
    planted word, is a leak. Documents and keys are removed afterwards. Ends with 25 if
    something leaks.

    For example: KEPT_AUDIT_KEY=kept_… kept audit-access http://127.0.0.1:8750
    """
    key = os.environ.get(KEY, "")
    if not key:
        msg = f"{KEY} is not set; expected the key of an admin who reads everything"
        raise InputError(msg)
    try:
        with httpx.Client(base_url=url, timeout=PATIENCE_SECONDS) as client:
            report = AccessCheck(client.request, key, tenant)()
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        msg = f"the service at {url} cannot be asked ({error}); check its address"
        raise InputError(msg) from error
    if as_json:
        print_json(report.as_data())
    else:
        for line in report.lines():
            put_line(on_a_line(line))
    if report.findings:
        raise typer.Exit(LEAKS)
