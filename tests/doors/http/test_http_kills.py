"""A service that is killed in streams and jobs, and started again."""

import json
import math
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from commands import kept
from embedding_server import serving as embedding_serving
from loopback import Server, Slow
from loopback import serving as model_serving
from served import Served, last_event, receipts_of, serving

TEXT = "Employees have 28 days of leave a year."
QUESTION = "how many days of leave do employees have?"
FILES = 150
A_FEW = 40
BROKEN_OFF = (httpx.RemoteProtocolError, httpx.ReadError)


@pytest.fixture
def slow() -> Iterator[tuple[Server, Slow]]:
    """Return a model that waits in the middle of its answer."""
    act = Slow("28 days ", "of leave [1].")
    with model_serving(act) as server:
        yield server, act
        act.go_on.set()


def with_model(server: Server) -> dict[str, str]:
    """Return the environment of a service that asks this model."""
    return {"KEPT_LLM_BASE_URL": server.url, "KEPT_LLM_MODEL": "slow"}


@contextmanager
def in_the_middle(client: httpx.Client) -> Iterator[Iterator[str]]:
    """Ask, and stop reading once the first word of the answer has come."""
    body = {"question": QUESTION, "stream": True}
    with client.stream("POST", "/v1/ask", json=body) as response:
        lines = response.iter_lines()
        while next(lines) != "event: piece":
            pass
        yield lines


def audited(client: httpx.Client) -> list[str]:
    """Return how asking ended, the latest first."""
    params = {"action": "ask"}
    rows: list[dict[str, Any]] = client.get("/v1/audit", params=params).json()["audit"]
    return [row["outcome"] for row in rows]


def test_killed_in_the_middle_of_an_answer(
    tmp_path: Path, slow: tuple[Server, Slow]
) -> None:
    """The client sees it break off, and after a restart the question is answered.

    Every audited answer was sent, and the store is sound.
    """
    store = tmp_path / "kb"
    server, act = slow
    with serving(store, **with_model(server)) as served, served.client() as client:
        client.post("/v1/documents?wait=60", json={"documents": [{"text": TEXT}]})
        with in_the_middle(client) as lines:
            served.stop(signal.SIGKILL)
            with pytest.raises(BROKEN_OFF):
                list(lines)

    act.go_on.set()
    key = served.key
    with serving(store, **with_model(server)) as served, served.client(key) as client:
        between = audited(client)
        again = client.post("/v1/ask", json={"question": QUESTION})
        after = audited(client)
        served.stop(signal.SIGTERM)

    assert between == []
    assert again.json()["text"] == "28 days of leave [1]."
    assert after == ["answered"]
    assert kept("doctor", "--store", store).code == 0


def test_asked_to_stop_in_the_middle_of_an_answer(
    tmp_path: Path, slow: tuple[Server, Slow]
) -> None:
    """An answer that has begun comes to its end, while new questions are refused."""
    store = tmp_path / "kb"
    server, act = slow
    with serving(store, **with_model(server)) as served, served.client() as client:
        client.post("/v1/documents?wait=60", json={"documents": [{"text": TEXT}]})
        with in_the_middle(client) as lines:
            served.process.send_signal(signal.SIGTERM)
            refused = turned_away(served)
            act.go_on.set()
            rest = list(lines)
        served.process.wait(60)

    assert refused
    assert rest[-3:-2] == ["event: answer"]
    answer = json.loads(rest[-2].removeprefix("data: "))
    assert answer["text"] == "28 days of leave [1]."
    assert served.process.returncode in (0, -signal.SIGTERM)


def turned_away(served: Served) -> bool:
    """Return whether the service stops accepting questions before a deadline."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        try:
            with served.client() as other:
                response = other.post("/v1/search", json={"question": QUESTION})
        except httpx.TransportError:
            return True
        if response.status_code == 503:
            return True
    return False


def test_killed_again_and_again_a_job_ends_once(tmp_path: Path) -> None:
    """Three kills while a client follows the job: every file is stored exactly once.

    The followers see their streams break off, and the next one goes on where the
    job is.
    """
    store = tmp_path / "kb"
    words = "the pump of hall {n} was made in {n}{n} and weighs {n} kilograms"
    files = [
        ("files", (f"{n:03d}.md", (words.format(n=n) + ".\n\n") * 3, "text/markdown"))
        for n in range(1, FILES + 1)
    ]
    job, key, seen = "", None, [0]
    with embedding_serving() as embedder:
        env = embedder.settings()
        for kill in range(4):
            embedder.at_most = embedder.asked + A_FEW if kill < 3 else math.inf
            with (
                serving(store, "--embedder", "openai", **env) as served,
                served.client(key) as client,
            ):
                if not job:
                    key = served.key
                    taken = client.post("/v1/documents/files", files=files)
                    job = taken.json()["job_id"]
                if kill < 3:
                    seen.append(followed_a_little(served, client, job, beyond=seen[-1]))
                    continue
                reported = last_event(client, job)
                receipts = receipts_of(client, job)
                stored = client.get("/v1/documents", params={"limit": 200}).json()
                served.stop(signal.SIGTERM)

    assert seen == sorted(set(seen)), seen
    assert seen[-1] < FILES
    assert (reported["state"], reported["done"]) == ("done", FILES)
    assert [one["source_uri"] for one in receipts] == [
        f"upload:{n:03d}.md" for n in range(1, FILES + 1)
    ]
    assert len(stored["documents"]) + reported["counts"].get("reused", 0) == FILES
    assert kept("doctor", "--store", store).code == 0


def followed_a_little(
    served: Served, client: httpx.Client, job: str, *, beyond: int
) -> int:
    """Follow a job until it has moved, kill the service, and return how far it was."""
    done = 0
    with client.stream("GET", f"/v1/jobs/{job}/events") as response:
        lines = response.iter_lines()
        for line in lines:
            if line.startswith("data: "):
                done = json.loads(line.removeprefix("data: "))["done"]
                if done > beyond:
                    break
        served.stop(signal.SIGKILL)
        with pytest.raises(BROKEN_OFF):
            list(lines)
    return done
