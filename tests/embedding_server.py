"""A real embedding endpoint on loopback that behaves or misbehaves on request."""

import json
import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler

from kept.models.embedders.hash import HashEmbedder
from loopback import Discreet, at_work

DIMENSION = 64
Vector = list[float]


class _Handler(BaseHTTPRequestHandler):
    server: "EmbeddingServer"

    def do_POST(self) -> None:
        payload = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked += len(payload["input"])
        if self.server.hangs:
            self.server.leave.wait()
            return
        while self.server.asked > self.server.at_most:
            if self.server.leave.wait(0.01):
                return
        data = [
            {"index": i, "embedding": self.server.vector(text)}
            for i, text in enumerate(payload["input"])
        ]
        body = json.dumps({"data": data, "model": payload["model"]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 -- inherited
        pass


class EmbeddingServer(Discreet):
    """Answers with the vectors that it is given a function for.

    Once it was asked for more than *at_most* texts, it waits until it may go on.
    """

    def __init__(self, vector: Callable[[str], Vector], *, hangs: bool) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.vector = vector
        self.hangs = hangs
        self.asked = 0
        self.at_most = math.inf
        self.leave = threading.Event()

    def settings(self, **more: str) -> dict[str, str]:
        """Return the variables that make this the configured embedder."""
        return {
            "KEPT_EMBEDDER": "openai",
            "KEPT_EMBEDDER_URL": f"http://127.0.0.1:{self.server_port}/v1",
            "KEPT_EMBEDDER_MODEL": "loopback",
            **more,
        }


def real(text: str) -> Vector:
    """Return the vector of a hash embedder of another dimension."""
    [vector] = HashEmbedder(dimension=DIMENSION).embed([text])
    return [float(x) for x in vector]


def not_numbers(text: str) -> Vector:
    """Return a vector that has no direction."""
    return [math.nan] * DIMENSION


def zeros(text: str) -> Vector:
    """Return a vector of length zero."""
    return [0.0] * DIMENSION


@contextmanager
def serving(
    vector: Callable[[str], Vector] = real, *, hangs: bool = False
) -> Iterator[EmbeddingServer]:
    """Run an endpoint for the time of a test."""
    server = EmbeddingServer(vector, hangs=hangs)
    with at_work(server, server.leave):
        yield server
