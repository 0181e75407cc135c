"""A real HTTP server on loopback that behaves or misbehaves on request."""

import json
import socket
import struct
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from kept.models.chat import OpenAIChat
from kept.models.http_client import Patience
from kept.models.settings import LLMSettings


@dataclass
class Request:
    """One request as it arrived."""

    path: str
    headers: Mapping[str, str]
    payload: Mapping[str, Any]


Act = Callable[["Handler", Request], None]


class Handler(BaseHTTPRequestHandler):
    """Takes each request to the next act of the script."""

    protocol_version = "HTTP/1.1"
    server: "Server"

    def do_POST(self) -> None:
        """Read the request, note it, play the next act."""
        length = int(self.headers["Content-Length"])
        payload = json.loads(self.rfile.read(length))
        request = Request(self.path, dict(self.headers), payload)
        act = self.server.next_act(request)
        try:
            act(self, request)
        except OSError:
            self.server.broken.set()
        self.close_connection = True

    def reply(self, status: int, body: bytes, kind: str, **headers: str) -> None:
        """Send a whole response."""
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 -- inherited
        """Keep quiet."""


class Discreet(ThreadingHTTPServer):
    """A server on loopback that does not log peers who disconnect midway.

    It would log to standard error, which another test may be reading by then.
    """

    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 -- inherited
        """Report every other error."""
        if not isinstance(sys.exception(), OSError | json.JSONDecodeError):
            super().handle_error(request, client_address)


class Server(Discreet):
    """Plays a script, one act per request; the last act repeats."""

    def __init__(self, script: Iterable[Act]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.script = list(script)
        self.requests: list[Request] = []
        self.most_at_once = 0
        self.broken = threading.Event()
        self.leave = threading.Event()
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        """The base URL that a client is given."""
        return f"http://127.0.0.1:{self.server_port}/v1"

    def next_act(self, request: Request) -> Act:
        """Note *request* and return what to do with it."""
        with self._lock:
            index = min(len(self.requests), len(self.script) - 1)
            self.requests.append(request)
        return self.script[index]

    def handle_error(self, request: object, client_address: object) -> None:
        """Note that a peer went away."""
        self.broken.set()


@contextmanager
def serving(*script: Act) -> Iterator[Server]:
    """Run a server for the time of a test."""
    server = Server(script)
    with at_work(server, server.leave):
        yield server


@contextmanager
def at_work(server: ThreadingHTTPServer, leave: threading.Event) -> Iterator[None]:
    """Have a server answer; at the end *leave* stops its handlers."""
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        leave.set()
        server.shutdown()
        server.server_close()
        thread.join()


def settings(server: Server, **changes: Any) -> LLMSettings:  # noqa: ANN401 -- settings
    """Return settings for *server*."""
    given = {"timeout_seconds": 60.0, **changes}
    return LLMSettings(base_url=server.url, model="loopback", **given)


def patient(**changes: Any) -> Patience:  # noqa: ANN401 -- a client's patience
    """Return a patience that does not make a test wait."""
    return Patience(**{"first_wait_seconds": 0.01, **changes})


def talking(server: Server, **changes: Any) -> OpenAIChat:  # noqa: ANN401 -- settings
    """Return a client of *server*; *changes* are to its settings or its patience."""
    names = {field.name for field in fields(Patience)}
    waits = {name: value for name, value in changes.items() if name in names}
    others = {name: value for name, value in changes.items() if name not in names}
    return OpenAIChat(settings(server, **others), patient(**waits))


@contextmanager
def asking(*script: Act, **changes: Any) -> Iterator[tuple[Server, OpenAIChat]]:  # noqa: ANN401 -- settings
    """Run a server and a client of it for the time of a test."""
    with serving(*script) as server, talking(server, **changes) as chat:
        yield server, chat


def says(text: str, finish: str = "stop") -> Act:
    """Answer with *text* as a chat completion."""
    choice = {
        "message": {"role": "assistant", "content": text},
        "finish_reason": finish,
    }
    usage = {"prompt_tokens": 7, "completion_tokens": 3}
    return sends(json.dumps({"choices": [choice], "usage": usage}))


def sends(body: str, status: int = 200, kind: str = "application/json") -> Act:
    """Answer with *body* whatever it is."""
    return lambda handler, _: handler.reply(status, body.encode(), kind)


def refuses(status: int, body: str = "no", **headers: str) -> Act:
    """Answer with an error status."""
    return lambda handler, _: handler.reply(
        status, body.encode(), "text/plain", **headers
    )


def streams(*events: str, whole: bool = True) -> Act:
    """Answer with server-sent events; unless *whole*, break the connection after."""

    def act(handler: Handler, request: Request) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream")
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        for event in events:
            piece = f"data: {event}\n\n".encode()
            handler.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        if whole:
            handler.wfile.write(b"0\r\n\r\n")

    return act


def piece(text: str, finish: str | None = None) -> str:
    """Write one event of a chat completion stream."""
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": finish}
    return json.dumps({"choices": [choice]})


def hangs(handler: Handler, request: Request) -> None:
    """Never answer."""
    handler.server.leave.wait()


def drips(handler: Handler, request: Request) -> None:
    """Answer one byte at a time, for ever."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")
    while not handler.server.leave.wait(0.02):
        handler.wfile.write(b" ")


def babbles(handler: Handler, request: Request) -> None:
    """Stream pieces until the reader goes away."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
    while not handler.server.leave.wait(0.01):
        handler.wfile.write(f"data: {piece('on and ')}\n\n".encode())


def resets(handler: Handler, request: Request) -> None:
    """Reset the connection instead of answering."""
    linger = struct.pack("ii", 1, 0)
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    handler.connection.close()


def hangs_up(handler: Handler, request: Request) -> None:
    """Close the connection without a word."""
    handler.connection.shutdown(socket.SHUT_RDWR)


def breaks_off(handler: Handler, request: Request) -> None:
    """Promise more bytes than are sent."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n{")


@dataclass
class Counting:
    """An act that measures how many of it run at once.

    Where *together* of them are expected at once, the first waits for the others.
    """

    inner: Act
    pause_seconds: float = 0.05
    together: int = 1
    now: int = 0
    most: int = 0
    met: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, handler: Handler, request: Request) -> None:
        """Play the inner act after a pause."""
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
            if self.most >= self.together:
                self.met.set()
        self.met.wait(60)
        handler.server.leave.wait(self.pause_seconds)
        with self.lock:
            self.now -= 1
        self.inner(handler, request)


@dataclass
class Slow:
    """A model that streams its first words, and the rest only when a test says so."""

    first: str
    rest: str
    go_on: threading.Event = field(default_factory=threading.Event)

    def __call__(self, handler: Handler, request: Request) -> None:
        """Stream an answer with a pause in it."""
        handler.wfile.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
        )
        handler.wfile.write(f"data: {piece(self.first)}\n\n".encode())
        self.go_on.wait(120)
        handler.wfile.write(f"data: {piece(self.rest, 'stop')}\n\n".encode())
        handler.wfile.write(b"data: [DONE]\n\n")
