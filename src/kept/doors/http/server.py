"""The HTTP server: an app on a listening socket, until a signal stops it."""

import ipaddress
import logging
import math
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn
from starlette.applications import Starlette

from kept.doors.http.app import build
from kept.doors.http.service import Service
from kept.doors.http.settings import ServiceSettings
from kept.errors import InputError, SettingsError
from kept.knowledge_base.settings import Settings
from kept.stores.addresses import without_secrets

BACKLOG = 512
HEADER_BYTES = 16_384
MOST_CONNECTIONS = 10_000
# Load balancers keep an idle connection for 60 to 120 seconds. If the server closed
# it first, a request that is just being sent over it would fail.
IDLE_SECONDS = 125
UPGRADE_WARNINGS = ("Unsupported upgrade request.", "No supported WebSocket library")


class KeptServer(uvicorn.Server):
    """A server that stops the service before it waits for running requests.

    Otherwise event streams that follow a job would delay the shutdown.
    """

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop listening, finish the accepted requests, and close the app."""
        self._service.stop()
        await super().shutdown(sockets)
        # After a second interrupt uvicorn skips the lifespan. A lifespan that is
        # cancelled instead of finished leaves a traceback and an open store.
        if self.force_exit:
            await self.lifespan.shutdown()


def serve(
    settings: Settings, limits: ServiceSettings, say: Callable[[str], None]
) -> None:
    """Serve the store of *settings* until a signal; *say* prints lines for the user."""
    run(build(settings, limits), say)


def run(app: Starlette, say: Callable[[str], None], path: str = "") -> None:
    """Serve an app whose state has a service; *path* is printed with its address."""
    service: Service = app.state.service
    limits = service.limits
    try:
        _check_address(service)
        listening = _bound(limits.host, limits.port)
        service.warm_up()
        new_key = service.first_key()
    except BaseException:
        service.close()
        raise
    if new_key is not None:
        say(f"admin key, shown this once: {new_key}")
    host = f"[{limits.host}]" if ":" in limits.host else limits.host
    port = listening.getsockname()[1]
    say(
        f"serving {without_secrets(service.settings.store)} on http://{host}:{port}{path}"
    )
    # Some HTTP clients offer h2c with every request; uvicorn would log each.
    logging.getLogger("uvicorn.error").addFilter(_is_worth_logging)
    server = KeptServer(server_config(app, limits), service)
    with _stopped_by_sigterm(server):
        server.run(sockets=[listening])


def server_config(app: Starlette, limits: ServiceSettings) -> uvicorn.Config:
    """Return uvicorn's configuration, with the limits that uvicorn enforces itself.

    uvicorn has no time limit for a request's header or body: a proxy must set one.
    """
    return uvicorn.Config(
        app,
        # The other parser, httptools, has no limit on the size of a header.
        http="h11",
        ws="none",
        backlog=BACKLOG,
        limit_concurrency=most_connections(),
        h11_max_incomplete_event_size=HEADER_BYTES,
        timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=math.ceil(limits.shutdown_seconds),
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
    )


def most_connections() -> int:
    """Return half of the process's file limit: the store needs the other half."""
    if sys.platform == "win32":
        return MOST_CONNECTIONS
    import resource  # noqa: PLC0415 -- POSIX only

    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = files == resource.RLIM_INFINITY
    return MOST_CONNECTIONS if unlimited else max(1, files // 2)


def _is_worth_logging(record: logging.LogRecord) -> bool:
    return not record.getMessage().startswith(UPGRADE_WARNINGS)


@contextmanager
def _stopped_by_sigterm(server: KeptServer) -> Iterator[None]:
    """Exit with code 0 after SIGTERM.

    uvicorn handles the signal while it serves, and raises it again afterwards: this
    handler receives it then, in place of the default one, which kills the process.
    """

    def stop(number: int, frame: object) -> None:
        server.should_exit = True

    previous = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


def _check_address(service: Service) -> None:
    """Refuse to listen on a public address before there is a key."""
    limits = service.limits
    if is_loopback(limits.host) or limits.admin_key or service.access.guarded:
        return
    msg = (
        f"KEPT_SERVE_HOST is {limits.host!r}, but there is no key yet; start once on "
        "127.0.0.1, which makes an admin key and prints it, or set "
        "KEPT_SERVE_ADMIN_KEY"
    )
    raise SettingsError(msg)


def is_loopback(host: str) -> bool:
    """Return whether an address can be reached from this machine only."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _bound(host: str, port: int) -> socket.socket:
    """Return a listening socket."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sets TCP_NODELAY only on sockets whose protocol is named; without it
    # small responses wait for a delayed acknowledgement, about 40 ms.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(BACKLOG)
    except (OSError, UnicodeError) as error:
        listening.close()
        msg = (
            f"{host}:{port} cannot be listened on ({error}); choose another --host or "
            "--port"
        )
        raise InputError(msg) from error
    return listening
