"""An HTTP client for models: JSON with deadlines, bounded retries, typed errors.

Requests run on an event loop of the transport's own, because only there can a
deadline cover a whole exchange and a cancellation close its connection at once.
"""

import asyncio
import os
import queue
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping
from concurrent.futures import CancelledError, Future
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar

import httpx
from pydantic import SecretStr

from kept._runtime import Logger
from kept.errors import (
    LLMConnectionError,
    LLMError,
    LLMResponseParseError,
    LLMStatusError,
    LLMTimeoutError,
)
from kept.models.replies import shown

T = TypeVar("T")

# Only where the service says that it did nothing: a 500 may have done the work, and
# would be paid for twice.
RETRIED_STATUSES = frozenset({429, 503})
LONGEST_ERROR_BODY = 1_000

# Set in a thread that may outlive its callers: once they cancel it, it sends nothing
# more, and opens no connection that would never be closed.
calling_off: ContextVar[threading.Event | None] = ContextVar(
    "calling_off", default=None
)

logger = Logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long a service may take, how often it is asked, and what is read of it.

    *seconds* is for a whole reply, with its retries, which follow a connection error
    and the statuses 429 and 503; the wait before one doubles each time.
    """

    seconds: float = 120.0
    connect_seconds: float = 5.0
    retries: int = 2
    first_wait_seconds: float = 0.5
    longest_wait_seconds: float = 30.0
    requests_at_once: int = 4
    reply_bytes: int = 8 * 1024 * 1024


@dataclass
class ClientLoop:
    """An event loop on a daemon thread, with the connections that live on it."""

    key: SecretStr | None
    patience: Patience
    pid: int = field(default_factory=os.getpid)
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.new_event_loop)

    def __post_init__(self) -> None:
        key, patience = self.key, self.patience
        headers = {"Authorization": f"Bearer {key.get_secret_value()}"} if key else {}
        self.slots = asyncio.Semaphore(patience.requests_at_once)
        self.client = httpx.AsyncClient(
            headers=headers,
            # httpx's read timeout starts again with every byte; the deadline of the
            # whole exchange is `asyncio.timeout` below.
            timeout=httpx.Timeout(None, connect=patience.connect_seconds),
        )
        self.thread = threading.Thread(
            # A daemon: a program that ends must not wait for a model that does not
            # answer.
            target=self.loop.run_forever,
            name="kept-llm",
            daemon=True,
        )
        self.given: set[Future[Any]] = set()
        self.giving = threading.Lock()
        self.closed = False
        self.thread.start()

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Have *work* done on the loop; calling the future off calls it off.

        Once the session is closed, whatever is submitted is called off at once.
        """
        with self.giving:
            if self.closed:
                return _called_off(work)
            future = asyncio.run_coroutine_threadsafe(work, self.loop)
            self.given.add(future)
        future.add_done_callback(self.given.discard)
        return future

    def close(self) -> None:
        """Call off what is in flight, and end loop and thread."""
        with self.giving:
            self.closed = True
        asyncio.run_coroutine_threadsafe(self._wind_up(), self.loop).result()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()

    async def _wind_up(self) -> None:
        """Cancel what is in flight, so that no caller waits for it for ever.

        Only what was submitted is called off; tasks that it has begun are its own to
        end, and one that has not run yet would leave its coroutine behind.
        """
        while rest := asyncio.all_tasks() - {asyncio.current_task()}:
            for future in tuple(self.given):
                future.cancel()
            await asyncio.gather(*rest, return_exceptions=True)
        await self.client.aclose()
        # Closing transports finish in the next turn of the loop; without it Python
        # warns of unclosed sockets.
        await asyncio.sleep(0)


def _called_off(work: Coroutine[Any, Any, T]) -> Future[T]:
    work.close()
    future: Future[T] = Future()
    future.cancel()
    return future


class Transport:
    """Posts JSON to the service at *base_url*; safe to share between threads."""

    def __init__(
        self, base_url: str, key: SecretStr | None, patience: Patience
    ) -> None:
        self._base_url = base_url
        self._key = key
        self._patience = patience
        self._lock = threading.Lock()
        self._open: ClientLoop | None = None

    def close(self) -> None:
        """Close every connection; the next request opens new ones.

        Requests in flight end with a connection error.
        """
        with self._lock:
            session, self._open = self._open, None
        # After a fork the loop's thread exists only in the parent, which still uses its
        # connections.
        if session and session.pid == os.getpid():
            session.close()

    def post(self, path: str, payload: Mapping[str, Any]) -> str:
        """Return the body of a successful reply, whole."""
        session = self._session()
        future = session.submit(self._post(session, path, payload))
        try:
            return self._result(future)
        finally:
            future.cancel()

    def events(self, path: str, payload: Mapping[str, Any]) -> Iterator[str]:
        """Yield the data of each server-sent event.

        Closing the iterator closes the connection, so that the service stops.
        """
        pieces: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        session = self._session()
        future = session.submit(self._pump(session, path, payload, pieces))
        # Wakes the reader also when the request fails before its first piece.
        future.add_done_callback(lambda _: pieces.put(None))
        try:
            while (piece := pieces.get()) is not None:
                yield piece
            self._result(future)
        finally:
            future.cancel()

    def redacted(self, text: str) -> str:
        """Cut and escape *text* that came from the service, without the key."""
        return shown(self.without_key(text), LONGEST_ERROR_BODY)

    def without_key(self, text: str) -> str:
        """Return *text* with the key blotted out, should a service echo it."""
        secret = self._key.get_secret_value() if self._key else ""
        return text.replace(secret, "[key]") if secret else text

    def _result(self, future: "Future[T]") -> T:
        try:
            return future.result()
        except CancelledError:
            msg = f"{self._base_url}: closed while waiting for a reply"
            raise LLMConnectionError(msg) from None

    def _session(self) -> ClientLoop:
        with self._lock:
            off = calling_off.get()
            if off is not None and off.is_set():
                msg = f"{self._base_url}: called off before it was asked"
                raise LLMConnectionError(msg)
            if self._open is None or self._open.pid != os.getpid():
                self._open = ClientLoop(self._key, self._patience)
            return self._open

    def _url(self, path: str) -> str:
        return f"{self._base_url}/{path}"

    async def _post(
        self, session: ClientLoop, path: str, payload: Mapping[str, Any]
    ) -> str:
        async with self._exchange(session, path, payload) as response:
            return (await self._body(response)).decode("utf-8", errors="replace")

    async def _pump(
        self,
        session: ClientLoop,
        path: str,
        payload: Mapping[str, Any],
        pieces: "queue.SimpleQueue[str | None]",
    ) -> None:
        async with self._exchange(session, path, payload) as response:
            data: list[str] = []
            size = 0
            async for line in response.aiter_lines():
                size += len(line)
                self._check_size(size)
                if line.startswith("data:"):
                    data.append(line.removeprefix("data:").removeprefix(" "))
                elif not line and data:
                    pieces.put("\n".join(data))
                    data.clear()
            if data:
                expected = "a stream of events, each ended by an empty line"
                raise LLMResponseParseError(expected, self.redacted("\n".join(data)))

    @asynccontextmanager
    async def _exchange(
        self, session: ClientLoop, path: str, payload: Mapping[str, Any]
    ) -> AsyncIterator[httpx.Response]:
        """Hold a successful response open, under one deadline for everything."""
        seconds = self._patience.seconds
        async with session.slots:
            try:
                async with asyncio.timeout(seconds) as deadline:
                    response = await self._answered(session, path, payload, deadline)
                    try:
                        yield response
                    finally:
                        await response.aclose()
            except httpx.ConnectTimeout as error:
                longest = self._patience.connect_seconds
                msg = f"{self._url(path)} took no connection within {longest:g} s"
                raise LLMTimeoutError(msg) from error
            except (TimeoutError, httpx.TimeoutException) as error:
                msg = f"{self._url(path)} gave no whole reply within {seconds:g} s"
                raise LLMTimeoutError(msg) from error
            except (httpx.TransportError, httpx.DecodingError) as error:
                raise self._broken(path, error) from error

    async def _answered(
        self,
        session: ClientLoop,
        path: str,
        payload: Mapping[str, Any],
        deadline: asyncio.Timeout,
    ) -> httpx.Response:
        """Send until there is a success, a final error, or no retry left."""
        for attempt in range(self._patience.retries + 1):
            response, wait = None, self._patience.first_wait_seconds * 2**attempt
            try:
                request = session.client.build_request(
                    "POST", self._url(path), json=payload
                )
                response = await session.client.send(request, stream=True)
                if response.is_success:
                    return response
                problem: LLMError = await self._refusal(path, response)
                wait = max(wait, _retry_after(response) or 0.0)
            except httpx.TimeoutException:
                raise
            except httpx.TransportError as error:
                problem = self._broken(path, error)
                problem.__cause__ = error
            if not self._worth_a_retry(problem, attempt, wait, deadline):
                raise problem
            logger.info(
                "llm_retry", url=self._url(path), attempt=attempt + 1, wait_seconds=wait
            )
            await asyncio.sleep(wait)
        raise AssertionError  # pragma: no cover -- the last attempt returns or raises

    def _worth_a_retry(
        self, problem: LLMError, attempt: int, wait: float, deadline: asyncio.Timeout
    ) -> bool:
        if isinstance(problem, LLMStatusError) and (
            problem.status not in RETRIED_STATUSES
            or wait > self._patience.longest_wait_seconds
        ):
            return False
        # A retry that cannot finish before the deadline would only turn the real error
        # into a timeout.
        left = (deadline.when() or 0.0) - asyncio.get_running_loop().time()
        return attempt < self._patience.retries and wait < left

    async def _refusal(self, path: str, response: httpx.Response) -> LLMStatusError:
        try:
            body = (await self._body(response)).decode("utf-8", errors="replace")
        finally:
            await response.aclose()
        return LLMStatusError(
            self._url(path), response.status_code, self.redacted(body)
        )

    async def _body(self, response: httpx.Response) -> bytes:
        body = bytearray()
        async for piece in response.aiter_bytes():
            body += piece
            self._check_size(len(body))
        return bytes(body)

    def _check_size(self, size: int) -> None:
        if size > self._patience.reply_bytes:
            expected = f"a reply of at most {self._patience.reply_bytes} bytes"
            raise LLMResponseParseError(expected, f"{size} bytes and more")

    def _broken(self, path: str, error: Exception) -> LLMConnectionError:
        reason = self.redacted(str(error)) or type(error).__name__
        return LLMConnectionError(
            f"{self._url(path)} could not be reached or broke off: {reason}; "
            "check the base URL and that the service runs"
        )


def _retry_after(response: httpx.Response) -> float | None:
    """Return how many seconds the service asks to wait, if it says so."""
    value = response.headers.get("Retry-After", "").strip()
    if value.isascii() and value.isdigit():
        return float(value)
    try:
        when = parsedate_to_datetime(value)
    except ValueError:
        return None
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    return max(0.0, (when - datetime.now(UTC)).total_seconds())
