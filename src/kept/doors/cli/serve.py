"""Serving: kept serve."""

import sys
from typing import Annotated

import typer

from kept._runtime import needing
from kept.doors.cli import options
from kept.doors.cli.output import say

Host = Annotated[
    str | None,
    typer.Option("--host", help="Address to listen on.", show_default="127.0.0.1"),
]
Port = Annotated[
    int | None,
    typer.Option(
        "--port",
        min=0,
        max=65_535,
        help="Port to listen on; 0 takes a free one.",
        show_default="8750",
    ),
]


def serve(
    store: options.Store = None,
    tenant: options.Tenant = None,
    preset: options.PresetName = None,
    embedder: options.Embedder = None,
    host: Host = None,
    port: Port = None,
) -> None:
    """Serve the knowledge bases of a store over HTTP, to all its tenants.

    The first start makes an admin key and prints it once. Before there is a key,
    only this machine is listened to. For example: kept serve --store ./kb
    """
    with needing("serve", "'kept serve'"):
        from kept.doors.http.server import serve as run  # noqa: PLC0415 -- brings fastapi
        from kept.doors.http.settings import service_settings  # noqa: PLC0415 -- as above

    settings = options.settings_of(
        store=store, tenant=tenant, preset=preset, embedder=embedder
    )
    given = {"host": host, "port": port}
    limits = service_settings(**{n: v for n, v in given.items() if v is not None})
    run(settings, limits, announce)


def announce(line: str) -> None:
    """Print a line at once, also into a pipe."""
    say(line)
    sys.stdout.flush()
