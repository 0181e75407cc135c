"""A proxy before PostgreSQL that can cut the line in the worst of moments."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from free_ports import free_port

BUFFER = 65_536


class Proxy:
    """Forwards bytes, until it is set to lose the answer to a commit, or stopped."""

    def __init__(self, target: str) -> None:
        self._target = target
        # The system gives the port to no other program while this does not listen.
        self.port = free_port()
        self.losing_answers = threading.Event()
        self.lost = 0
        self._lines: list[socket.socket] = []
        self.start()

    def start(self) -> None:
        """Listen, on the same port as before."""
        self._listener = socket.create_server(("127.0.0.1", self.port))
        self._accepting = threading.Thread(
            target=self._accept, args=(self._listener,), daemon=True
        )
        self._accepting.start()

    def stop(self) -> None:
        """Cut every line, and refuse new ones."""
        self.close()
        for line in self._lines:
            with suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)
        self._lines.clear()

    def close(self) -> None:
        """Take no more connections."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._accepting.join()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            try:
                server.connect(self._target)
            except OSError:
                client.close()
                server.close()
                continue
            self._lines += (client, server)
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
