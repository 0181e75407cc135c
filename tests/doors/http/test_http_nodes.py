"""Several services on one PostgreSQL share its jobs, and stand in for the dead."""

import re
import signal
import time
from collections.abc import Callable
from pathlib import Path

import httpx

from kept.ingest.ingestion import WINDOW_CHUNKS
from kept.ingest.window import AT_ONCE
from served import Served, receipts_of, serving

JOBS, TEXTS = 3, 40


def handed_in(client: httpx.Client, number: int) -> str:
    """Submit new texts, and return their job."""
    numbers = range(number * TEXTS, (number + 1) * TEXTS)
    texts = [f"Text {n} tells of topic {n * 7919}." for n in numbers]
    body = {"documents": [{"text": text} for text in texts]}
    return str(client.post("/v1/documents", json=body).json()["job_id"])


def ended(client: httpx.Client, jobs: list[str]) -> list[dict[str, object]]:
    """Wait until jobs have ended, and return them."""
    until = time.monotonic() + 120
    while True:
        found = [client.get(f"/v1/jobs/{job}").json() for job in jobs]
        if all(job["state"] == "done" for job in found):
            return found
        assert time.monotonic() < until, found
        time.sleep(0.1)


def unfinished(client: httpx.Client, jobs: list[str]) -> int:
    """Return how many jobs have not ended."""
    states = [client.get(f"/v1/jobs/{job}").json()["state"] for job in jobs]
    return len(states) - states.count("done")


def taken_in(served: Served) -> int:
    """Return how many documents this node has taken in."""
    with served.client() as client:
        response = client.get("/metrics").text
    counts = re.findall(r"^kept_documents_total\{.*\} (\S+)$", response, re.MULTILINE)
    return int(sum(map(float, counts)))


def documents(client: httpx.Client) -> int:
    """Return how many documents are stored."""
    cursor, stored = None, 0
    while True:
        params = {"limit": "200", **({"cursor": cursor} if cursor else {})}
        page = client.get("/v1/documents", params=params).json()
        stored += len(page["documents"])
        cursor = page["next_cursor"]
        if cursor is None:
            return stored


def test_nodes_share_jobs_and_stand_in_for_one_that_is_killed(
    tmp_path: Path, make_database: Callable[[], str]
) -> None:
    """Each text is stored once, with one receipt, whichever process ran the job."""
    store = make_database()
    with (
        serving(store, log_file=tmp_path / "one.log") as one,
        serving(store, log_file=tmp_path / "two.log") as two,
        one.client() as client,
        two.client(one.key) as other,
    ):
        assert (one.key is not None, two.key) == (True, None)
        two.key = one.key
        jobs = [handed_in(client, number) for number in range(JOBS)]
        while not (taken_in(one) and taken_in(two)):
            if unfinished(client, jobs) < JOBS:
                jobs.append(handed_in(client, len(jobs)))
        one.stop(signal.SIGKILL)
        reported = ended(other, jobs)
        receipts = [receipts_of(other, job) for job in jobs]
        stored = documents(other)

    assert [job["done"] for job in reported] == [TEXTS] * len(jobs)
    assert [len(found) for found in receipts] == [TEXTS] * len(jobs)
    assert stored == len(jobs) * TEXTS
    statuses = [receipt["status"] for found in receipts for receipt in found]
    assert set(statuses) <= {"created", "unchanged"}
    assert statuses.count("unchanged") <= AT_ONCE * WINDOW_CHUNKS
