"""Serving other programs' models: kept mcp."""

import os
import signal
from types import FrameType
from typing import Annotated

import typer

from kept._runtime import needing
from kept.doors.cli import options
from kept.doors.cli.output import INTERRUPTED, INTERRUPTION, complain
from kept.doors.cli.serve import Host, Port, announce
from kept.errors import SettingsError
from kept.knowledge_base.base import KnowledgeBase
from kept.text.access import principal_of


def mcp(
    store: options.Store = None,
    tenant: options.Tenant = None,
    preset: options.PresetName = None,
    embedder: options.Embedder = None,
    over_http: Annotated[
        bool,
        typer.Option("--http", help="Serve over HTTP, not over standard input."),
    ] = False,
    host: Host = None,
    port: Port = None,
    readers: Annotated[
        list[str] | None,
        typer.Option(
            "--reader",
            help="Show only what this reader may read, such as group:hr or user:ann; "
            "give it again for more. Over HTTP the key says it.",
        ),
    ] = None,
    allow_ingest: Annotated[
        bool,
        typer.Option(
            "--allow-ingest",
            envvar="KEPT_MCP_ALLOW_INGEST",
            help="Let clients take documents in.",
        ),
    ] = False,
) -> None:
    """Serve a knowledge base to clients of the Model Context Protocol.

    Without --http the client starts this command and talks to it over standard
    input and output. With it, every tenant of the store is served under /mcp to
    callers with one of its keys, as by kept serve. For example: kept mcp --store ./kb
    """
    settings = options.settings_of(
        store=store, tenant=tenant, preset=preset, embedder=embedder
    )
    with needing("mcp", "'kept mcp'"):
        from kept.doors.mcp import server as serving  # noqa: PLC0415 -- brings the SDK
    if not over_http:
        if host is not None or port is not None:
            msg = "--host and --port are for --http; give that too, or leave them out"
            raise SettingsError(msg)
        with options.opened(settings, make=allow_ingest) as base:
            _leave_when_interrupted(base)
            seen = base.read_as(principal_of(readers)) if readers else base
            serving.serve_stdio(seen, allow_ingest=allow_ingest)
        return
    if readers:
        msg = "--reader is for standard input; over HTTP make a key with groups"
        raise SettingsError(msg)
    from kept.doors.http.settings import service_settings  # noqa: PLC0415 -- as above

    given = {"host": host, "port": port}
    limits = service_settings(**{n: v for n, v in given.items() if v is not None})
    serving.serve_http(settings, limits, announce, allow_ingest=allow_ingest)


def _leave_when_interrupted(base: KnowledgeBase) -> None:
    """Have an interrupt end the process, even while a thread waits for standard input.

    A thread of the SDK waits for the next line, and cannot be called back from that.
    """

    def leave(number: int, frame: FrameType | None) -> None:
        base.close()
        complain(INTERRUPTION)
        os._exit(INTERRUPTED)

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, leave)
