"""A pooler before PostgreSQL that gives one session to everybody in turn.

It does what PgBouncer does with ``pool_mode=transaction``: a client that begins
has the session until the server says that no transaction is open.
"""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

_ASKS = b"QS"
_ENDS = b"X"
_READY = b"Z"
_KEY = b"K"
_IDLE = b"I"
_NOBODY = (1).to_bytes(4) * 2


class Pooler:
    """Answers clients at *port* from one session of the server at *target*."""

    def __init__(self, target: str) -> None:
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._session: tuple[socket.socket, BinaryIO] | None = None
        self._welcome = b""
        self._alone = threading.Lock()
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def close(self) -> None:
        """Take no more clients, and leave the server."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._accepting.join()
        if self._session:
            self._session[1].close()
            self._session[0].close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(
                    target=self._serve, args=(client,), daemon=True
                ).start()

    def _serve(self, client: socket.socket) -> None:
        with client, client.makefile("rb") as asked, suppress(OSError, EOFError):
            length = asked.read(4)
            greeting = length + asked.read(int.from_bytes(length) - 4)
            with self._alone:
                server, answers = self._opened(greeting)
            client.sendall(self._welcome)
            while self._transaction(client, asked, server, answers):
                pass

    def _opened(self, greeting: bytes) -> tuple[socket.socket, BinaryIO]:
        """Open the session for the first client, and keep how it was welcomed."""
        if self._session is None:
            server = socket.socket(socket.AF_UNIX)
            server.connect(self._target)
            server.sendall(greeting)
            self._session = server, server.makefile("rb")
            kind = b""
            while kind != _READY:
                kind, message = _message(self._session[1])
                self._welcome += message[:5] + _NOBODY if kind == _KEY else message
        return self._session

    def _transaction(
        self,
        client: socket.socket,
        asked: BinaryIO,
        server: socket.socket,
        answers: BinaryIO,
    ) -> bool:
        """Hand one transaction on; False if the client has left."""
        kind, message = _message(asked)
        if kind == _ENDS:
            return False
        with self._alone:
            while True:
                server.sendall(message)
                if kind in _ASKS and _answered(answers, client) == _IDLE:
                    return True
                kind, message = _message(asked)


def _answered(answers: BinaryIO, client: socket.socket) -> bytes:
    """Hand an answer on, and return in which state it leaves the session."""
    kind = b""
    while kind != _READY:
        kind, message = _message(answers)
        client.sendall(message)
    return message[-1:]


def _message(source: BinaryIO) -> tuple[bytes, bytes]:
    """Return the kind of the next message, and all of it; none is the end."""
    head = source.read(5)
    if not head:
        raise EOFError
    return head[:1], head + source.read(max(int.from_bytes(head[1:]) - 4, 0))


@contextmanager
def before(target: str) -> Iterator[Pooler]:
    """Run a pooler before the server whose socket is at *target*."""
    pooler = Pooler(target)
    try:
        yield pooler
    finally:
        pooler.close()
