"""The service in a process of its own, on a free port of loopback."""

import json
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from commands import started

HASH = ("--embedder", "hash")


@dataclass
class Served:
    """A service in a process of its own."""

    process: subprocess.Popen[bytes]
    url: str
    key: str | None

    def client(self, key: str | None = None) -> httpx.Client:
        """Return a client with a key."""
        headers = {"authorization": f"Bearer {key or self.key}"}
        return httpx.Client(base_url=self.url, headers=headers, timeout=60)

    def stop(self, sign: signal.Signals) -> None:
        """Send a signal and wait for the end."""
        self.process.send_signal(sign)
        self.process.wait(120)


@contextmanager
def serving(
    store: Path | str,
    *words: str,
    command: str = "serve",
    log_file: Path | None = None,
    **env: str,
) -> Iterator[Served]:
    """Start the service and wait until it listens; its log lies beside the store."""
    reported = log_file or Path(f"{store}.log")
    env = {"KEPT_SERVE_RATE_PER_MINUTE": "10000000", **env}
    with reported.open("ab") as log:
        process = started(
            *(command, "--store", store, *HASH, "--port", 0, *words),
            env=env,
            stderr=log,
        )
    try:
        assert process.stdout is not None
        key, url = None, ""
        while not url:
            line = process.stdout.readline().decode()
            assert line, reported.read_text()
            if made := re.match(r"admin key, shown this once: (\S+)", line):
                key = made[1]
            elif there := re.search(r"on (http://\S+)", line):
                url = there[1]
        yield Served(process, url, key)
    finally:
        process.kill()
        process.communicate()


def receipts_of(client: httpx.Client, job: str) -> list[dict[str, Any]]:
    """Return all receipts of a job."""
    found: list[dict[str, Any]] = []
    cursor: str | None = None
    while True:
        params = {"limit": "200", **({"cursor": cursor} if cursor else {})}
        page = client.get(f"/v1/jobs/{job}/receipts", params=params).json()
        found += page["receipts"]
        cursor = page["next_cursor"]
        if cursor is None:
            return found


def last_event(client: httpx.Client, job: str) -> dict[str, Any]:
    """Follow a job to its end."""
    reported = ""
    with client.stream("GET", f"/v1/jobs/{job}/events") as response:
        for line in response.iter_lines():
            if line.startswith("data: "):
                reported = line.removeprefix("data: ")
    event: dict[str, Any] = json.loads(reported)
    return event
