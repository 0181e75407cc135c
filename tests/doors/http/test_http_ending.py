"""Ending a server: a second interrupt leaves nothing open."""

import asyncio
import logging
from pathlib import Path

import pytest
import uvicorn

from kept.doors.http.app import build
from kept.doors.http.server import KeptServer
from kept.doors.http.settings import service_settings
from kept.knowledge_base.settings import Settings


def test_a_second_interrupt_closes_the_app_without_a_traceback(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Requests are waited for no longer; the lifespan ends all the same."""
    settings = Settings.of({"store": str(tmp_path / "base"), "embedder": "hash"})
    app = build(settings, service_settings())
    config = uvicorn.Config(app, host="127.0.0.1", port=0, log_config=None)
    server = KeptServer(config, app.state.service)

    async def interrupted_twice() -> None:
        serving = asyncio.create_task(server.serve())
        while not (server.started or serving.done()):  # noqa: ASYNC110 -- uvicorn has no event
            await asyncio.sleep(0.01)
        server.should_exit = server.force_exit = True
        await serving

    asyncio.run(interrupted_twice())

    assert [r for r in caplog.records if r.levelno >= logging.ERROR] == []
