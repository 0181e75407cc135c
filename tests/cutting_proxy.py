"""A proxy before PostgreSQL that can cut the line in the worst of moments."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

BUFFER = 65_536


class Proxy:
    """Hands bytes on, until it is told to lose the answer to a commit."""

    def __init__(self, target: str) -> None:
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.losing_answers = threading.Event()
        self.lost = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Take no more connections."""
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            server.connect(self._target)
            cut = threading.Event()
            for source, sink, watched in (
                (client, server, True),
                (server, client, False),
            ):
                threading.Thread(
                    target=self._pump, args=(source, sink, cut, watched), daemon=True
                ).start()

    def _pump(
        self,
        source: socket.socket,
        sink: socket.socket,
        cut: threading.Event,
        watched: bool,  # noqa: FBT001 -- which way the bytes go
    ) -> None:
        with suppress(OSError):
            while data := source.recv(BUFFER):
                if watched and b"COMMIT" in data and self.losing_answers.is_set():
                    cut.set()
                if cut.is_set() and not watched:
                    self.lost += 1
                    self.losing_answers.clear()
                    break
                sink.sendall(data)
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()


@contextmanager
def before(target: str) -> Iterator[Proxy]:
    """Run a proxy before the server whose socket is at *target*."""
    proxy = Proxy(target)
    try:
        yield proxy
    finally:
        proxy.close()
