"""A real Milvus: milvus-lite, speaking gRPC on the loopback."""

import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import pytest

from free_ports import free_port

STARTS_WITHIN_SECONDS = 120.0


@dataclass
class LiteServer:
    """A milvus-lite process; it can be ended and started again on the same data."""

    data: Path
    port: int
    process: subprocess.Popen[bytes] | None = field(default=None)

    def start(self) -> None:
        """Start it and wait until it answers."""
        command = Path(sys.executable).with_name("milvus-lite")
        if not command.exists():
            pytest.skip("milvus-lite is not installed; pip install milvus-lite")
        with (self.data.parent / "milvus.log").open("ab") as log:
            self.process = subprocess.Popen(
                [
                    command,
                    *("server", "--data-dir", self.data),
                    *("--host", "127.0.0.1", "--port", str(self.port)),
                ],
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        until = time.monotonic() + STARTS_WITHIN_SECONDS
        while not self._listens():
            if self.process.poll() is not None or time.monotonic() > until:
                self.stop()
                received = (self.data.parent / "milvus.log").read_text()[-500:]
                pytest.skip(f"milvus-lite does not start here: {received}")
            time.sleep(0.05)

    def stop(self) -> None:
        """End it at once, as a crash would."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def url(self, folder: Path | str, **parameters: object) -> str:
        """Return the address of a store on it, with its documents in *folder*."""
        reported = "".join(f"&{name}={value}" for name, value in parameters.items())
        where = quote(str(folder), safe="")
        return f"milvus://127.0.0.1:{self.port}?metadata={where}{reported}"

    def _listens(self) -> bool:
        with socket.socket() as probe:
            probe.settimeout(0.5)
            return probe.connect_ex(("127.0.0.1", self.port)) == 0


def started(folder: Path) -> Iterator[LiteServer]:
    """Run a server on data in *folder* until the caller is done."""
    server = LiteServer(folder / "data", free_port())
    server.start()
    try:
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)
