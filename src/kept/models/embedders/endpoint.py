"""An HTTP endpoint: POST with a deadline, retried only where that is safe."""

import time
from collections.abc import Mapping
from typing import Any, NoReturn

import httpx

from kept.errors import EmbedderError, SettingsError
from kept.models.embedders.call_limit import CallLimit, call_limit

RETRIED_STATUSES = frozenset({429, 503})
LONGEST_WAIT_SECONDS = 30.0
SHOWN_CHARS = 200
TIMEOUT_VARIABLE = "KEPT_EMBEDDER_TIMEOUT_SECONDS"


class Endpoint:
    """A path below *base_url* that takes JSON; the key never shows in an error.

    A caller that sets a limit for its own call is given that instead of
    *timeout_seconds*.
    """

    def __init__(  # noqa: PLR0913 -- what a connection needs to know
        self,
        base_url: str,
        path: str,
        api_key: str | None,
        *,
        headers: Mapping[str, str],
        timeout_seconds: float,
        retries: int,
        retry_wait_seconds: float,
    ) -> None:
        self._url = _joined(base_url, path)
        self._key = _usable_key(api_key)
        self._limit = CallLimit(timeout_seconds, TIMEOUT_VARIABLE)
        self._retries = retries
        self._retry_wait_seconds = retry_wait_seconds
        bearer = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        self._secrets = [*filter(None, [self._key]), *_usable_headers(headers)]
        self._client = httpx.Client(headers={**bearer, **headers})

    def __str__(self) -> str:
        """Return the address without what may be secret: user, password, query."""
        return str(self._url.copy_with(username=None, password=None, query=None))

    def close(self) -> None:
        """Close every connection."""
        self._client.close()

    def post(self, request: Mapping[str, Any]) -> bytes:
        """Return the body of a successful answer, or say what went wrong.

        Connection errors and the statuses 429 and 503 are tried again, waiting
        longer each time or as long as the answer asks for.
        """
        # The last attempt is made outside the loop, so that its error is raised instead
        # of waited on.
        for attempt in range(self._retries):
            pause = self._retry_wait_seconds * 2**attempt
            try:
                status, headers, body = self._once(request)
            except httpx.TimeoutException as error:
                self._fail_late(error)
            except httpx.TransportError:
                time.sleep(min(pause, LONGEST_WAIT_SECONDS))
                continue
            if status not in RETRIED_STATUSES:
                return self._accepted(status, body)
            pause = max(pause, _asked_to_wait(headers))
            time.sleep(min(pause, LONGEST_WAIT_SECONDS))
        return self._post_for_the_last_time(request)

    def fail(
        self, problem: str, advice: str, cause: Exception | None = None
    ) -> NoReturn:
        """Raise an error that names the address, the *problem* and the *advice*."""
        msg = f"{self} {problem}; {advice}"
        raise EmbedderError(msg) from cause

    def excerpt(self, body: bytes) -> str:
        """Return the start of *body* for an error message, without the key."""
        text = body.decode("utf-8", "replace")
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return repr(text[:SHOWN_CHARS])

    def _post_for_the_last_time(self, request: Mapping[str, Any]) -> bytes:
        try:
            status, _, body = self._once(request)
        except httpx.TimeoutException as error:
            self._fail_late(error)
        except httpx.TransportError as error:
            self.fail(f"could not be reached: {error}", "check that it runs", error)
        return self._accepted(status, body)

    def _accepted(self, status: int, body: bytes) -> bytes:
        if status != httpx.codes.OK:
            self.fail(
                f"answered {status}: {self.excerpt(body)}",
                "check the model's name, the key and the log of the other side",
            )
        return body

    def _fail_late(self, error: Exception) -> NoReturn:
        limit = call_limit(self._limit)
        own = " (timeout_seconds in Python)" if limit is self._limit else ""
        self.fail(
            f"did not answer within {limit.seconds:g} s",
            f"raise {limit.variable}{own}, or send fewer texts at a time",
            error,
        )

    def _once(self, request: Mapping[str, Any]) -> tuple[int, httpx.Headers, bytes]:
        """Send *request*; the time-out holds for the whole answer, not for a part."""
        seconds = call_limit(self._limit).seconds
        until = time.monotonic() + seconds
        with self._client.stream(
            "POST", self._url, json=request, timeout=seconds
        ) as reply:
            blocks = []
            for block in reply.iter_bytes():
                blocks.append(block)
                if time.monotonic() > until:
                    msg = "the answer came too slowly"
                    raise httpx.ReadTimeout(msg, request=reply.request)
            return reply.status_code, reply.headers, b"".join(blocks)


def _joined(base_url: str, path: str) -> httpx.URL:
    try:
        url = httpx.URL(base_url)
    except httpx.InvalidURL:
        url = httpx.URL("")
    if url.scheme not in {"http", "https"} or not url.host:
        msg = "base_url is not an address such as http://localhost:11434/v1"
        raise SettingsError(msg)
    return url.copy_with(path=f"{url.path.rstrip('/')}/{path}")


def _usable_key(key: str | None) -> str | None:
    if key and not (key.isascii() and key.isprintable() and " " not in key):
        msg = "api_key holds characters that no key has; copy it again"
        raise SettingsError(msg)
    return key or None


def _usable_headers(headers: Mapping[str, str]) -> list[str]:
    """Return the values of *headers*, any of which may be a key."""
    for name, value in headers.items():
        usable = value.isascii() and value.isprintable() and value.strip()
        if not (usable and name.isascii() and name.isprintable() and " " not in name):
            msg = f"the header {name!r} is not usable; its value is not shown here"
            raise SettingsError(msg)
    return list(headers.values())


def _asked_to_wait(headers: httpx.Headers) -> float:
    """Return the seconds that Retry-After asks for; a date there is not heeded."""
    asked = headers.get("retry-after", "")
    return float(asked) if asked.isdecimal() else 0.0
