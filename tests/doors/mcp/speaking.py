"""Speaking MCP in tests: the SDK's own client, over pipes or over HTTP."""

import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import anyio
import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

from kept.doors.mcp.clients import LocalClient
from kept.doors.mcp.protocol import build
from kept.knowledge_base.base import KnowledgeBase

ROOT = Path(__file__).parents[3]
MAIN = "from kept.doors.cli import main; main()"

T = TypeVar("T")
Talk = Callable[[Client], Awaitable[T]]


def over_pipes(
    store: Path, talk: Talk[T], *words: str, mode: str = "auto", **env: str
) -> T:
    """Start the command, talk to it, and return what came of it."""
    server = StdioServerParameters(
        command=sys.executable,
        args=["-c", MAIN, "mcp", "--store", str(store), "--embedder", "hash", *words],
        env={
            "PYTHONPATH": str(ROOT / "src"),
            "KEPT_MODELS_DIR": os.environ.get("KEPT_MODELS_DIR", ""),
            **env,
        },
    )

    async def run() -> T:
        with store.with_name("mcp.log").open("a") as log:
            transport = stdio_client(server, errlog=log)
            async with Client(transport, mode=mode) as client:
                return await talk(client)

    return anyio.run(run)


def in_here(base: KnowledgeBase, talk: Talk[T], *, allow_ingest: bool = False) -> T:
    """Talk to a server of this process, by messages as over pipes."""

    async def run() -> T:
        server = build(lambda request: LocalClient(base), allow_ingest=allow_ingest)
        async with Client(server, mode="legacy") as client:
            return await talk(client)

    return anyio.run(run)


def over_http(url: str, talk: Talk[T], *, mode: str = "auto", **headers: str) -> T:
    """Talk to a server with these headers, and return what came of it."""

    async def run() -> T:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        async with httpx2.AsyncClient(headers=named, timeout=60) as http:
            transport = streamable_http_client(url, http_client=http)
            async with Client(transport, mode=mode) as client:
                return await talk(client)

    return anyio.run(run)


def text_of(result: Any) -> str:  # noqa: ANN401 -- the SDK's result of a tool
    """Return the one text of a result."""
    [content] = result.content
    return str(content.text)
