"""Serving: the app behind a socket, until somebody says stop."""

import ipaddress
import math
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn
from starlette.applications import Starlette

from kept.errors import InputError, SettingsError
from kept.http.app import build
from kept.http.connections import Connection
from kept.http.service import Service
from kept.http.settings import ServiceSettings
from kept.settings import Settings
from kept.stores.addresses import told

BACKLOG = 512
ACCEPTED_AT_ONCE = 32


class Server(uvicorn.Server):
    """A server that tells the service to stop before it waits for requests to end.

    Otherwise those who follow a job would keep it waiting.
    """

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen; many may wait, though few are accepted at a time.

        The loop accepts as many as the queue is said to be long before it looks at
        any of them, and would run out of files before one too many could be closed.
        """
        await super().startup(sockets)
        for listening in sockets or ():
            listening.listen(BACKLOG)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop listening, finish what was taken, and end.

        Whoever interrupts again waits for no request, but the app is closed all the
        same: its lifespan, cut off, would leave a traceback.
        """
        self._service.stop()
        await super().shutdown(sockets)
        if self.force_exit:
            await self.lifespan.shutdown()


def serve(
    settings: Settings, limits: ServiceSettings, say: Callable[[str], None]
) -> None:
    """Serve the store of *settings* until a signal comes; *say* hears what to know."""
    run(build(settings, limits), say)


def run(app: Starlette, say: Callable[[str], None], path: str = "") -> None:
    """Put an app whose state has a service behind a socket; *path* is its address."""
    service: Service = app.state.service
    settings, limits = service.settings, service.limits
    try:
        _check_address(service, limits)
        listening = _bound(limits.host, limits.port)
        service.warm_up()
        made = service.first_key()
    except BaseException:
        service.close()
        raise
    if made is not None:
        say(f"admin key, shown this once: {made}")
    host = f"[{limits.host}]" if ":" in limits.host else limits.host
    port = listening.getsockname()[1]
    say(f"serving {told(settings.store)} on http://{host}:{port}{path}")
    config = uvicorn.Config(
        app,
        http=Connection,
        ws="none",
        backlog=ACCEPTED_AT_ONCE,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=math.ceil(limits.shutdown_seconds),
    )
    server = Server(config, service)
    with _ended_by_request(server):
        server.run(sockets=[listening])


@contextmanager
def _ended_by_request(server: Server) -> Iterator[None]:
    """Take the signal to end for a request, so that a served process ends well.

    When the server has finished what it took, it raises the signal once more.
    """

    def end(number: int, frame: object) -> None:
        server.should_exit = True

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _check_address(service: Service, limits: ServiceSettings) -> None:
    """Refuse to be seen from outside before anybody holds a key."""
    if is_loopback(limits.host) or limits.admin_key or service.access.guarded:
        return
    msg = (
        f"KEPT_SERVE_HOST is {limits.host!r}, but there is no key yet; start once on "
        "127.0.0.1, which makes an admin key and prints it, or set "
        "KEPT_SERVE_ADMIN_KEY"
    )
    raise SettingsError(msg)


def is_loopback(host: str) -> bool:
    """Tell whether an address can be reached from this machine only."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _bound(host: str, port: int) -> socket.socket:
    """Return a listening socket.

    Its protocol is named, because only then does asyncio send small answers at once.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
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
