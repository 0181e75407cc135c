"""When something outside fails: models, stores, clients who leave, writes at once."""

import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from house import House, OpenHouse, problem

from commands import kept
from kept.doors.http.callers import Caller
from kept.doors.http.schemas import AskIn
from kept.doors.http.searches import Answering
from kept.doors.http.settings import Bounds
from kept.errors import StoreBusyError
from kept.evaluation.runs import QueryRecord, RunHeader, RunWriter
from kept.few_shot import examples as examples_few_shot
from kept.knowledge_base.base import KnowledgeBase
from kept.stores.service.idempotency import Slot
from kept.stores.service.keys import Role

TEXT = "Employees have 28 days of leave a year."
QUESTION = "how many days of leave do employees have?"


@pytest.fixture
def mute(open_house: OpenHouse, monkeypatch: pytest.MonkeyPatch) -> House:
    """Return an app whose language model cannot be reached."""
    monkeypatch.setenv("KEPT_LLM_MODEL", "mute")
    monkeypatch.setenv("KEPT_LLM_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("KEPT_LLM_TIMEOUT_SECONDS", "0.3")
    house = open_house()
    house.add(TEXT)
    return house


def test_a_model_that_cannot_be_reached_is_a_problem(mute: House) -> None:
    """Nothing falls back in silence, and the audit hears of it."""
    response = mute.ask("POST", "/v1/ask", json={"question": QUESTION})

    answer = problem(response, 502, "backend_failed")
    assert "127.0.0.1:9" not in answer["detail"]
    row = mute.audit(action="ask")[0]
    assert (row["outcome"], row["code"]) == ("failed", "backend_failed")


def test_a_stream_that_breaks_ends_with_a_problem(mute: House) -> None:
    """What was found is there; instead of an answer there is the reason."""
    body = {"question": QUESTION, "stream": True}

    text = mute.ask("POST", "/v1/ask", json=body).text

    first, *_, last = text.strip().split("\n\n")
    assert first.startswith("event: found")
    name, data = last.split("\n")
    assert name == "event: problem"
    assert json.loads(data.removeprefix("data: "))["code"] == "backend_failed"
    assert mute.audit(action="ask")[0]["outcome"] == "failed"


def test_without_the_model_the_answer_is_word_for_word(mute: House) -> None:
    """Who asks for extracts needs no model."""
    body = {"question": QUESTION, "extractive": True}

    reported = mute.ask("POST", "/v1/ask", json=body).json()

    assert reported["kind"] == "extractive"


def test_a_reader_who_leaves_is_noted(house: House) -> None:
    """The answer stops where it stands, and the audit says so."""
    house.add(TEXT)
    key = house.service.access.check(house.key("admin"))
    assert key is not None
    caller = Caller(house.service, key, "default", key.asker)

    events = Answering.begun(caller, AskIn(question=QUESTION)).events("request")
    next(events)
    events.close()

    assert house.audit(action="ask")[0]["outcome"] == "broken_off"


def test_a_job_waits_for_trouble_to_pass(house: House) -> None:
    """A store that is busy is tried again; nothing that was handed in is lost."""
    runner = house.service.runner
    runner.retry_seconds = 0.01
    base_of, failures = runner.base_of, iter(range(2))

    def troubled(tenant: str) -> KnowledgeBase:
        if next(failures, None) is not None:
            msg = "another writer is active"
            raise StoreBusyError(msg)
        return base_of(tenant)

    runner.base_of = troubled

    assert house.add(TEXT)["status"] == "created"
    [job] = house.ask("GET", "/v1/jobs").json()["jobs"]
    assert (job["state"], job["done"]) == ("done", 1)


def test_a_write_that_is_still_running_is_not_done_twice(house: House) -> None:
    """The second request gets 409."""
    token = house.key("writer")
    key = house.service.access.check(token)
    assert key is not None
    slot = Slot(tenant="default", key_id=key.id, key="slow")
    body = {"documents": [{"text": TEXT}]}
    headers = {"idempotency-key": "slow"}
    first = house.ask(
        "POST", "/v1/documents", role="writer", json=body, headers=headers
    )
    with house.service.base.store.database.writing() as connection:
        connection.execute("UPDATE idempotency SET status = NULL")

    second = house.ask(
        "POST", "/v1/documents", role="writer", json=body, headers=headers
    )
    house.service.replies.release(slot)

    assert first.status_code == 202
    problem(second, 409, "idempotency_in_progress")


def test_many_at_once_get_their_own_answers(open_house: OpenHouse) -> None:
    """Searches and writes beside each other neither fail nor mix."""
    house = open_house(threads=4, bounds=Bounds(queue=100))
    house.add(TEXT)
    expected = house.search(QUESTION).json()["selected"][0]["text"]
    failed: list[Any] = []

    def work(n: int) -> None:
        for step in range(5):
            found = house.search(f"{QUESTION} {n} {step}")
            added = house.ask(
                "POST",
                "/v1/documents",
                json={"documents": [{"text": f"Note {n} {step} of something else."}]},
            )
            if found.status_code != 200 or added.status_code != 202:
                failed.append((found.text, added.text))
            elif found.json()["selected"][0]["text"] != expected:
                failed.append(found.json()["selected"])

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert failed == []
    deadline = time.monotonic() + 60
    while house.service.jobs.waiting("default") and time.monotonic() < deadline:
        time.sleep(0.05)
    ledger = house.service.base.store.ledger("default", 1_000)
    assert len(ledger) == 31


def test_references_are_those_of_the_command_line(house: House, tmp_path: Path) -> None:
    """The same bundle through both doors."""
    store = house.service.settings.store
    options = ("--store", store, "--embedder", "hash", "--json")
    kept("references", "build", examples_few_shot.INTERVIEWS, *options)
    body = json.loads(examples_few_shot.EVIDENCE.read_text("utf-8"))

    over_http = house.ask("POST", "/v1/references", json=body)
    typed = kept("references", "for", examples_few_shot.EVIDENCE, *options).json

    assert over_http.is_success, over_http.text
    reported = over_http.json()
    for one in (reported, typed):
        for found in one["items"].values():
            del found["timings"]
    assert reported == typed


def test_evaluation_runs_are_listed_to_those_who_have_all_tenants(
    open_house: OpenHouse, tmp_path: Path
) -> None:
    """Means and funnel of each; a file that is none says so, and paths stay inside."""
    runs = tmp_path / "runs"
    header = RunHeader(
        name="first",
        collection="toy",
        collection_fingerprint="0",
        measures=("nDCG@10",),
    )
    with RunWriter(runs / "first", header) as writer:
        writer.add(QueryRecord(question_id="q1", measures={"nDCG@10": 0.5}))
        writer.finish()
    (runs / "broken.jsonl").write_text("nonsense\n")
    (tmp_path / "secret.jsonl").write_text("{}\n")
    house = open_house(runs=str(runs))

    listed = house.ask("GET", "/v1/evaluation/runs", tenant=None).json()["runs"]
    one = house.ask("GET", "/v1/evaluation/runs/first/run.jsonl", tenant=None).json()
    outside = house.ask("GET", "/v1/evaluation/runs/../secret.jsonl", tenant=None)
    encoded = house.ask("GET", "/v1/evaluation/runs/..%2Fsecret.jsonl", tenant=None)
    broken = house.ask("GET", "/v1/evaluation/runs/broken.jsonl", tenant=None)

    assert [run["name"] for run in listed] == ["broken.jsonl", "first/run.jsonl"]
    reported = problem(broken, 422, "invalid_input")["detail"]
    assert reported == listed[0]["error"]
    assert reported.startswith("broken.jsonl, line 1")
    assert str(tmp_path) not in json.dumps(listed)
    assert listed[1]["means"] == {"nDCG@10": 0.5}
    assert one["records"][0]["question_id"] == "q1"
    assert outside.status_code == encoded.status_code == 404
    problem(house.ask("GET", "/v1/evaluation/runs"), 403, "forbidden")


def test_roles_include_those_below() -> None:
    """An admin may write, a writer may read."""
    assert Role.ADMIN.includes(Role.WRITER)
    assert Role.WRITER.includes(Role.READER)
    assert not Role.READER.includes(Role.WRITER)
