"""The session: closing it leaves nothing behind."""

import asyncio
import gc
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import anyio
import pytest

from kept.errors import LLMConnectionError
from kept.models.chat import OpenAIChat
from kept.models.http_client import ClientLoop, Patience
from kept.models.settings import LLMSettings


@pytest.mark.filterwarnings("error")
def test_what_was_just_begun_is_called_off_too() -> None:
    """A task whose first step is still to come, as of a connection being opened."""
    session = ClientLoop(None, Patience())
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


@pytest.mark.filterwarnings("error")
def test_what_is_submitted_to_a_closed_session_is_called_off() -> None:
    """A call while another thread closes raises and does not wait for ever."""
    session = ClientLoop(None, Patience())
    session.close()

    given = session.submit(asyncio.sleep(60))
    gc.collect()

    assert given.cancelled()


def test_what_is_being_submitted_is_called_off_too() -> None:
    """Closing waits until it is known what is in flight, so that all of it ends."""
    session = ClientLoop(None, Patience())
    closing = threading.Thread(target=session.close)

    with session.giving:
        closing.start()
        given = asyncio.run_coroutine_threadsafe(asyncio.sleep(600), session.loop)
        session.given.add(given)
    closing.join(60)

    assert given.cancelled()
    assert not closing.is_alive()


def test_work_stays_with_the_session_that_it_was_given_to() -> None:
    """A request that has not begun when its client is closed opens no connection."""
    chat = OpenAIChat(LLMSettings(model="none"))
    session = chat._transport._session()  # noqa: SLF001 -- to hold its loop up
    begun, go_on = threading.Event(), threading.Event()

    async def hold() -> None:
        begun.set()
        go_on.wait(60)

    session.submit(hold())
    begun.wait(60)
    with ThreadPoolExecutor(2) as pool:
        asked = pool.submit(chat.complete, [{"role": "user", "content": "hello"}])
        while len(session.given) < 2:
            time.sleep(0.001)
        closed = pool.submit(chat.close)
        while not session.closed:
            time.sleep(0.001)
        go_on.set()
        closed.result(60)

    assert isinstance(asked.exception(60), LLMConnectionError)
    assert chat._transport._open is None  # noqa: SLF001 -- nothing was opened again
