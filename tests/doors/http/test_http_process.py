"""One real process on loopback: first start, signals, kills and restarts."""

import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx
import pytest

from commands import kept
from kept.ingest.ingestion import WINDOW_CHUNKS
from kept.ingest.window import AT_ONCE
from served import HASH, last_event, receipts_of, serving

TEXTS = [f"Text number {n} tells of topic {n * 7919}." for n in range(300)]
AT_WORK = AT_ONCE * WINDOW_CHUNKS


def half_done(client: httpx.Client) -> tuple[str, int]:
    """Hand texts in until some are seen on their way; return their job, and how many.

    On a machine that has other things to do, a job may end before anybody looks.
    """
    for attempt in range(1, 50):
        texts = [f"{text} It is told {attempt} times." for text in TEXTS]
        body = {"documents": [{"text": text} for text in texts]}
        accepted = client.post("/v1/documents", json=body)
        assert accepted.status_code == 202
        job = accepted.json()["job_id"]
        while not (seen := client.get(f"/v1/jobs/{job}").json())["done"]:
            pass
        if seen["state"] == "running" and seen["done"] < len(TEXTS):
            return job, attempt * len(TEXTS)
    message = "no job was seen half done"
    raise AssertionError(message)


@pytest.mark.parametrize("sign", [signal.SIGKILL, signal.SIGTERM])
def test_a_job_goes_on_after_a_restart(tmp_path: Path, sign: signal.Signals) -> None:
    """Whether it was killed or asked to stop, every text is stored exactly once.

    A kill may fall between the storing of texts and the note that they are stored;
    those get 'unchanged', and there are no more of them than fit in one batch.
    """
    store = tmp_path / "kb"
    with serving(store) as served, served.client() as client:
        key = served.key
        job, handed_in = half_done(client)
        served.stop(sign)

    with serving(store) as served, served.client(key) as client:
        again = served.key
        reported = last_event(client, job)
        receipts = receipts_of(client, job)
        cursor, stored = None, 0
        while True:
            params = {"limit": "200", **({"cursor": cursor} if cursor else {})}
            page = client.get("/v1/documents", params=params).json()
            stored += len(page["documents"])
            cursor = page["next_cursor"]
            if cursor is None:
                break
        served.stop(signal.SIGTERM)

    assert again is None
    assert reported["state"] == "done"
    assert reported["done"] == len(receipts) == len(TEXTS)
    assert stored == handed_in
    assert sum(reported["counts"].get(s, 0) for s in ("created", "unchanged")) == len(
        TEXTS
    )
    stored_but_not_told = reported["counts"].get("unchanged", 0)
    assert stored_but_not_told <= (AT_WORK if sign == signal.SIGKILL else 0)
    assert list((store / "spool").iterdir()) == []


def test_stopping_finishes_what_was_taken(tmp_path: Path) -> None:
    """A request that waits gets its answer, followers are let go, and it ends well."""
    store = tmp_path / "kb"
    body = {"documents": [{"text": text} for text in TEXTS]}
    with serving(store) as served, served.client() as client:
        job = client.post("/v1/documents", json=body).json()["job_id"]
        following = threading.Event()
        ended: list[str] = []

        def follow() -> None:
            with (
                served.client() as own,
                own.stream("GET", f"/v1/jobs/{job}/events") as response,
            ):
                for line in response.iter_lines():
                    following.set()
                    ended.append(line)

        thread = threading.Thread(target=follow)
        thread.start()
        assert following.wait(60)

        served.stop(signal.SIGTERM)
        thread.join(60)

    assert served.process.returncode == 0
    assert not thread.is_alive()
    assert any(line.startswith("data: ") for line in ended)


def test_the_same_json_over_the_wire_as_on_the_command_line(tmp_path: Path) -> None:
    """A store that the command line filled is searched by the service."""
    store = tmp_path / "kb"
    file = tmp_path / "handbook.md"
    file.write_text("# Handbook\n\nEmployees have 28 days of leave a year.\n")
    question = "how many days of leave do employees have?"
    kept("ingest", file, "--store", store, *HASH)
    typed = kept("search", question, "--store", store, *HASH, "--json").json

    with serving(store) as served, served.client() as client:
        over_http = client.post("/v1/search", json={"question": question}).json()

    del typed["timings"], over_http["timings"]
    assert over_http == typed
    assert over_http["selected"]


def test_before_there_is_a_key_only_this_machine_is_listened_to(
    tmp_path: Path,
) -> None:
    """Another address is refused with what to do; a configured key allows it."""
    ran = kept("serve", "--store", tmp_path / "kb", *HASH, "--host", "0.0.0.0")  # noqa: S104 -- refused

    assert "there is no key yet" in ran.complaint(2)


def test_a_port_in_use_is_reported(tmp_path: Path) -> None:
    """In one line, with what to do."""
    with serving(tmp_path / "kb") as served:
        port = served.url.rpartition(":")[2]
        ran = kept("serve", "--store", tmp_path / "other", *HASH, "--port", port)

    assert "choose another --host or --port" in ran.complaint(3)


def test_a_small_answer_does_not_wait_for_the_next(tmp_path: Path) -> None:
    """One takes less than a delayed acknowledgement would, which would delay all."""
    with serving(tmp_path / "kb") as served, served.client() as client:
        client.get("/health")

        def seconds() -> float:
            began = time.perf_counter()
            client.get("/health")
            return time.perf_counter() - began

        assert any(seconds() < 0.03 for _ in range(300))


def test_commands_do_not_pay_for_the_service() -> None:
    """What only the service needs is loaded only by it."""
    code = (
        "import sys; from kept.doors.cli.app import whole_app; whole_app(); "
        "print(*{'fastapi', 'uvicorn', 'prometheus_client'} & set(sys.modules))"
    )

    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)

    assert ran.stdout.strip() == b""
