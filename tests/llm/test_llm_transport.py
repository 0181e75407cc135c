"""The session: closing it leaves nothing behind."""

import asyncio
import gc
import time

import anyio
import pytest

from kept.llm.settings import LLMSettings
from kept.llm.transport import Session


@pytest.mark.filterwarnings("error")
def test_what_was_just_begun_is_called_off_too() -> None:
    """A task whose first step is still to come, as of a connection being opened."""
    session = Session(LLMSettings())
    closed_after, begun_after = 0.1, 0.3

    async def connect() -> None:
        # The request to close is waiting when this goes on, and comes between the
        # beginning of the inner task and its first step.
        awake = session.loop.create_future()
        session.loop.call_soon(awake.set_result, None)
        time.sleep(begun_after)  # noqa: ASYNC251 -- holds the loop up on purpose
        await awake
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(asyncio.sleep, 60)
            await asyncio.sleep(60)

    given = session.submit(connect())
    time.sleep(closed_after)
    session.close()
    gc.collect()

    assert given.cancelled()
    assert session.loop.is_closed()
