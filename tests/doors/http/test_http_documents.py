"""Documents over HTTP: handed in as jobs, listed by pages, written once."""

import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from house import House, OpenHouse, Response, problem

from kept.doors.http.settings import Bounds
from kept.ingest.receipts import LedgerRow

NO_CURSORS = (
    *("x", "!!", "bnVsbA", "WzEsMl0", "WzFd", "WyJ4Il0", "e30", "MTIz" * 400),
    *("\u00e9", "Mi41"),
)
LISTS = ("documents", "ledger", "jobs", "aliases", "traces", "audit")
TEXT = "Employees have 28 days of leave a year."


def paged(house: House, path: str, key: str, limit: int) -> Iterator[dict[str, Any]]:
    """Yield every row of a list, page by page."""
    cursor = None
    while True:
        params = {"limit": limit, **({"cursor": cursor} if cursor else {})}
        page = house.ask("GET", path, params=params).json()
        assert len(page[key]) <= limit
        yield from page[key]
        cursor = page["next_cursor"]
        if cursor is None:
            return


def handed(house: House, texts: list[str], **more: Any) -> Response:  # noqa: ANN401 -- of the client
    """Hand texts in."""
    body = {"documents": [{"text": text} for text in texts]}
    return house.ask("POST", "/v1/documents", json=body, **more)


def test_a_text_becomes_a_document(house: House) -> None:
    """It can be listed, read, and read chunk by chunk."""
    receipt = house.add(
        TEXT, title="Handbook", source_uri="hb", tags=["leave"], metadata={"year": 2026}
    )
    name = receipt["document_id"]

    [listed] = house.ask("GET", "/v1/documents").json()["documents"]
    whole = house.ask("GET", f"/v1/documents/{name}").json()
    [chunk] = house.ask("GET", f"/v1/documents/{name}/chunks").json()["chunks"]

    assert receipt["status"] == "created"
    assert listed["document_id"] == name
    assert whole == {**listed, "text": TEXT}
    assert whole["metadata"] == {"year": 2026}
    assert (chunk["text"], chunk["tags"]) == (TEXT, ["leave"])


def test_sources_that_are_not_listed_are_retired(house: House) -> None:
    """Pruning is for every door: of a prefix, what is not listed goes."""
    for name in ("handbook/leave", "handbook/travel", "crm/1"):
        house.add(f"A text about {name}, which is a source.", source_uri=name)

    body = {"prefix": "handbook/", "keep": ["handbook/leave"]}
    answer = house.ask("POST", "/v1/documents/prune", json=body)
    left = house.ask("GET", "/v1/documents").json()["documents"]
    empty = house.ask("POST", "/v1/documents/prune", json={"prefix": ""})

    [receipt] = answer.json()["receipts"]
    assert (receipt["status"], receipt["source_uri"]) == ("deleted", "handbook/travel")
    assert {one["source_uri"] for one in left} == {"handbook/leave", "crm/1"}
    assert empty.status_code == 422


def test_files_become_documents_and_broken_ones_say_why(house: House) -> None:
    """Each file has its receipt; one that cannot be read fails alone."""
    files = [
        ("files", ("notes.md", b"# Notes\n\nThe pump costs 410 euro.")),
        ("files", ("rows.jsonl", b'{"text": "Row one."}\n{"text": "Row two."}\n')),
        ("files", ("broken.pdf", b"this is no PDF")),
        ("files", ("<script>alert(1)</script>.txt", b"Some text in a file.")),
    ]

    job = house.ask(
        "POST",
        "/v1/documents/files?wait=60",
        files=files,
        data={"fields": json.dumps({"tags": ["uploaded"]})},
    ).json()

    statuses = [receipt["status"] for receipt in job["receipts"]]
    assert statuses == ["created", "created", "created", "failed", "created"]
    assert job["counts"] == {"created": 4, "failed": 1}
    assert "upload:broken.pdf" in job["receipts"][3]["error"]
    assert "spool" not in json.dumps(job)
    name = job["receipts"][0]["document_id"]
    [chunk] = house.ask("GET", f"/v1/documents/{name}/chunks").json()["chunks"]
    assert "uploaded" in chunk["tags"]


def test_a_file_of_the_same_name_takes_the_place_of_the_earlier(house: House) -> None:
    """A later version supersedes."""
    for text, status in ((b"Version one.", "created"), (b"Version 2.", "superseded")):
        job = house.ask(
            "POST",
            "/v1/documents/files?wait=60",
            files=[("files", ("a.txt", text))],
        ).json()
        assert [r["status"] for r in job["receipts"]] == [status]


def test_the_same_file_with_other_fields_is_described(house: House) -> None:
    """What it is asked for by changes at once, cached answers included."""
    found = []
    for owner in ("A", "B"):
        job = house.ask(
            "POST",
            "/v1/documents/files?wait=60",
            files=[("files", ("pump.txt", b"The pump TW-C235 costs 410 euro."))],
            data={"fields": json.dumps({"metadata": {"owner": owner}})},
        ).json()
        asked = {
            "question": "What does the pump TW-C235 cost?",
            "filters": {"metadata": {"owner": "B"}},
        }
        found.append(house.ask("POST", "/v1/search", json=asked).json()["selected"])

    [receipt] = job["receipts"]
    assert receipt["status"] == "described"
    assert receipt["evidence"] == {"described": ["metadata.owner"]}
    assert [bool(selected) for selected in found] == [False, True]
    [line, *_] = house.ask("GET", "/v1/ledger").json()["ledger"]
    assert (line["status"], line["evidence"]) == ("described", receipt["evidence"])


def test_a_url_of_a_host_that_is_not_allowed_fails(house: House) -> None:
    """The receipt says so; nothing is fetched."""
    job = house.ask(
        "POST",
        "/v1/documents?wait=60",
        json={"documents": [{"url": "http://127.0.0.1:1/page"}]},
    ).json()

    [receipt] = job["receipts"]
    assert receipt["status"] == "failed"
    assert "not among the allowed hosts" in receipt["error"]


def test_a_document_is_a_text_or_a_url(house: House) -> None:
    """Neither and both are refused, and so is what no document can have."""
    for one in ({}, {"text": "a", "url": "http://x"}, {"text": "a", "size": 3}):
        response = house.ask("POST", "/v1/documents", json={"documents": [one]})
        problem(response, 422, "invalid_request")
    wrong = {"text": "a", "labels": {"Sleep": -7}}
    response = house.ask("POST", "/v1/documents", json={"documents": [wrong]})
    assert response.status_code in (202, 422)


def test_lists_go_on_where_the_page_before_ended(house: House) -> None:
    """Every row comes once, whatever the size of a page."""
    texts = [f"Text number {n} about topic {n * 7}." for n in range(7)]
    handed(house, texts, params={"wait": 60})

    for limit in (1, 2, 3, 7, 50):
        documents = list(paged(house, "/v1/documents", "documents", limit))
        ledger = list(paged(house, "/v1/ledger", "ledger", limit))
        assert len({row["document_id"] for row in documents}) == len(documents) == 7
        assert [row["no"] for row in ledger] == sorted(
            (row["no"] for row in ledger), reverse=True
        )
        assert len(ledger) == 7
    [job] = paged(house, "/v1/jobs", "jobs", 1)
    receipts = list(paged(house, f"/v1/jobs/{job['job_id']}/receipts", "receipts", 2))
    assert len(receipts) == 7


def test_a_list_page_is_stable_while_documents_arrive(house: House) -> None:
    """A document that is added later does not repeat or hide another."""
    handed(house, [f"Text number {n}." for n in range(4)], params={"wait": 60})
    first = house.ask("GET", "/v1/documents", params={"limit": 2}).json()

    house.add("One more text.")
    rest = house.ask(
        "GET", "/v1/documents", params={"cursor": first["next_cursor"]}
    ).json()

    seen = [d["document_id"] for d in (*first["documents"], *rest["documents"])]
    assert len(seen) == len(set(seen)) == 5


def test_a_cursor_of_another_tenant_is_refused(house: House) -> None:
    """Whatever it holds, it breaks nothing."""
    for name in LISTS:
        for cursor in NO_CURSORS:
            response = house.ask("GET", f"/v1/{name}", params={"cursor": cursor})

            assert response.status_code in (404, 422), (name, cursor, response.text)


def test_a_read_has_an_etag_that_changes_with_what_is_read(house: House) -> None:
    """Who has it already gets 304 and no body."""
    house.add(TEXT)
    first = house.ask("GET", "/v1/documents")
    tag = {"if-none-match": first.headers["etag"]}

    same = house.ask("GET", "/v1/documents", headers=tag)
    house.add("Another text.")
    changed = house.ask("GET", "/v1/documents", headers=tag)

    assert (same.status_code, same.content) == (304, b"")
    assert changed.status_code == 200
    assert changed.headers["etag"] != first.headers["etag"]


def test_a_deleted_document_is_gone(house: House) -> None:
    """No search finds it, and the ledger keeps the row."""
    name = house.add(TEXT)["document_id"]

    receipt = house.ask("DELETE", f"/v1/documents/{name}").json()

    assert receipt["status"] == "deleted"
    problem(house.ask("GET", f"/v1/documents/{name}"), 404, "not_found")
    problem(house.ask("DELETE", f"/v1/documents/{name}"), 404, "not_found")
    assert house.search("how many days of leave").json()["selected"] == []
    ledger = house.ask("GET", "/v1/ledger").json()["ledger"]
    assert ledger[0]["status"] == "deleted"


def test_a_missing_document_error_names_the_http_route(
    house: House,
) -> None:
    """An error over HTTP does not name a command to run."""
    house.add(TEXT)
    asked = {"named": "nothing", "question": "how many days of leave"}

    for response, has in (
        (house.ask("GET", "/v1/documents/x"), "list of documents"),
        (house.ask("DELETE", "/v1/documents/x"), "list of documents"),
        (house.ask("POST", "/v1/why-not", json=asked), "list of documents"),
        (house.ask("GET", "/v1/aliases/x"), "list of aliases"),
    ):
        answer = problem(response, 404, "not_found")["detail"]
        assert answer.endswith(f"; the {has} has those that are")


def test_a_repeated_text_is_an_alias_that_can_be_undone(house: House) -> None:
    """It is listed with the rule that fired, read with its text, and taken back."""
    long = TEXT + " " + "They apply for it in writing, three weeks before. " * 10
    house.add(long, source_uri="a")
    house.add(long + "Thanks.", source_uri="b")

    [alias] = paged(house, "/v1/aliases", "aliases", 1)
    whole = house.ask("GET", f"/v1/aliases/{alias['alias_id']}").json()
    bins = house.ask("GET", "/v1/similarities").json()["bins"]
    undone = house.ask("POST", f"/v1/aliases/{alias['alias_id']}/undo").json()

    assert alias["rule"] in ("prefix", "cosine", "edit_distance")
    assert whole["text"] == long + "Thanks."
    assert sum(one["accepted"] for one in bins) >= 0
    assert undone["status"] == "created"
    assert len(list(paged(house, "/v1/documents", "documents", 10))) == 2
    problem(
        house.ask("POST", f"/v1/aliases/{alias['alias_id']}/undo"), 404, "not_found"
    )


class TestIdempotency:
    """A write that is sent twice is done once."""

    def test_the_same_request_gets_the_same_answer(self, house: House) -> None:
        """Byte by byte, and it says that it is a copy."""
        headers = {"idempotency-key": "one"}
        first = handed(house, [TEXT], headers=headers)
        again = handed(house, [TEXT], headers=headers)

        assert again.content == first.content
        assert again.status_code == first.status_code == 202
        assert again.headers["idempotent-replayed"] == "true"
        assert again.headers["location"] == first.headers["location"]
        assert len(house.ask("GET", "/v1/jobs").json()["jobs"]) == 1

    def test_the_same_key_for_another_request_is_refused(self, house: House) -> None:
        """Otherwise the second would be lost in silence."""
        headers = {"idempotency-key": "one"}
        handed(house, [TEXT], headers=headers)

        response = handed(house, ["Another text."], headers=headers)

        problem(response, 422, "idempotency_key_reused")

    def test_keys_of_two_principals_are_two_keys(self, house: House) -> None:
        """An idempotency key reveals nothing about another caller's request."""
        headers = {"idempotency-key": "one"}
        handed(house, [TEXT], headers=headers)

        other = handed(house, ["Another text."], headers=headers, role="writer")
        elsewhere = handed(house, [TEXT], headers=headers, tenant="globex")

        assert other.status_code == elsewhere.status_code == 202
        assert "idempotent-replayed" not in elsewhere.headers

    def test_a_failed_write_can_be_tried_again(self, house: House) -> None:
        """Only what was done is remembered."""
        headers = {"idempotency-key": "one"}
        problem(
            house.ask("DELETE", "/v1/documents/x", headers=headers), 404, "not_found"
        )
        problem(
            house.ask("DELETE", "/v1/documents/x", headers=headers), 404, "not_found"
        )

    def test_files_are_compared_by_what_is_in_them(self, house: House) -> None:
        """The boundary between the parts does not matter, the bytes do."""
        headers = {"idempotency-key": "one"}

        def upload(data: bytes) -> Response:
            files = [("files", ("a.txt", data))]
            return house.ask(
                "POST", "/v1/documents/files", headers=headers, files=files
            )

        first = upload(b"Some text.")
        assert upload(b"Some text.").content == first.content
        problem(upload(b"Other text."), 422, "idempotency_key_reused")

    def test_after_a_day_a_key_is_free_again(self, house: House) -> None:
        """Replies are not kept for ever."""
        headers = {"idempotency-key": "one"}
        handed(house, [TEXT], headers=headers)
        house.hands.now += 24 * 3600 + 1

        assert handed(house, ["Another text."], headers=headers).status_code == 202

    def test_deleting_twice_with_a_key_is_deleting_once(self, house: House) -> None:
        """The second gets the first one's receipt."""
        name = house.add(TEXT)["document_id"]
        headers = {"idempotency-key": "gone"}

        first = house.ask("DELETE", f"/v1/documents/{name}", headers=headers)
        again = house.ask("DELETE", f"/v1/documents/{name}", headers=headers)

        assert first.json() == again.json()
        assert again.status_code == 200


class TestJobs:
    """Jobs are followed, cancelled, and limited."""

    def test_events_report_progress_and_end(self, house: House) -> None:
        """The last event is how the job ended."""
        job = handed(house, [f"Text number {n}." for n in range(5)]).json()

        stream = house.ask("GET", f"/v1/jobs/{job['job_id']}/events").text

        last = stream.strip().split("\n\n")[-1]
        name, data = last.split("\n")
        assert name == "event: end"
        body = json.loads(data.removeprefix("data: "))
        assert (body["state"], body["done"]) == ("done", 5)

    def test_a_job_of_another_tenant_is_not_there(self, house: House) -> None:
        """It cannot be read, followed or cancelled."""
        job = handed(house, [TEXT]).json()["job_id"]

        for method, path in (
            ("GET", ""),
            ("GET", "/receipts"),
            ("GET", "/events"),
            ("POST", "/cancel"),
        ):
            response = house.ask(method, f"/v1/jobs/{job}{path}", tenant="globex")
            problem(response, 404, "not_found")

    def test_a_waiting_job_can_be_cancelled(self, open_house: OpenHouse) -> None:
        """It never begins, and what was handed in is forgotten."""
        house = open_house()
        with held(house):
            handed(house, ["The first text of all."])
            job = handed(house, [TEXT]).json()["job_id"]
            body = house.ask("POST", f"/v1/jobs/{job}/cancel").json()

        assert body["state"] == "cancelled"
        again = house.ask("GET", f"/v1/jobs/{job}").json()
        assert (again["state"], again["done"]) == ("cancelled", 0)
        with pytest.raises(FileNotFoundError):
            house.service.spool.read(job, "0")

    def test_too_many_unfinished_jobs_are_refused(self, open_house: OpenHouse) -> None:
        """A tenant cannot fill the queue; others still can use it."""
        house = open_house(bounds=Bounds(waiting_jobs=2))
        with held(house):
            codes = [handed(house, [f"Text number {n}."]).status_code for n in range(2)]
            refused = handed(house, ["Text number 3."])
            other = handed(house, ["Text of another."], tenant="globex")

        assert codes == [202, 202]
        problem(refused, 429, "too_many_jobs")
        assert other.status_code == 202

    def test_a_cancelled_job_keeps_what_is_stored(self, house: House) -> None:
        """It stops behind the document that is being stored."""
        job = handed(house, [f"Text number {n}." for n in range(300)]).json()["job_id"]

        house.ask("POST", f"/v1/jobs/{job}/cancel")
        house.ask("GET", f"/v1/jobs/{job}/events")

        body = house.ask("GET", f"/v1/jobs/{job}").json()
        stored = list(paged(house, "/v1/documents", "documents", 200))
        assert body["state"] in ("cancelled", "done")
        assert len(stored) == body["counts"].get("created", 0)


class held:  # noqa: N801 -- read as a word
    """Hold the runner at its next job while something is tried."""

    def __init__(self, house: House) -> None:
        self._runner = house.service.runner
        self._free = threading.Event()
        self._base_of = self._runner.base_of

    def __enter__(self) -> None:
        def wait(tenant: str) -> Any:  # noqa: ANN401 -- a knowledge base
            self._free.wait(120)
            return self._base_of(tenant)

        self._runner.base_of = wait

    def __exit__(self, *ended: object) -> None:
        self._free.set()
        self._runner.base_of = self._base_of


def test_the_ledger_is_that_of_the_library(house: House) -> None:
    """The same lines, the newest first."""
    house.add(TEXT)
    rows: list[LedgerRow] = house.service.base.store.ledger("default")

    over_http = house.ask("GET", "/v1/ledger").json()["ledger"]

    assert [row["no"] for row in over_http] == [row.no for row in reversed(rows)]


def test_a_form_that_stops_in_a_file_is_refused_whole(house: House) -> None:
    """No file of it is taken in, so that none is missed without a word."""
    part = (
        b'--x\r\ncontent-disposition: form-data; name="files"; filename="%s"\r\n\r\n%s'
    )
    cut = part % (b"a.txt", b"the first is whole") + b"\r\n" + part % (b"b.txt", b"the")
    form = {"content-type": "multipart/form-data; boundary=x"}

    refused = house.ask("POST", "/v1/documents/files", content=cut, headers=form)
    whole = house.ask(
        "POST", "/v1/documents/files", content=cut + b"\r\n--x--", headers=form
    )

    reported = problem(refused, 400, "invalid_form")
    assert reported["detail"] == "the multipart body ends before its last boundary"
    assert (whole.status_code, whole.json()["sources"]) == (202, 2)


@pytest.mark.parametrize(
    "kind", ["application/json", "text/plain", "application/x-www-form-urlencoded"]
)
def test_files_not_sent_as_a_form_are_refused_with_advice(
    house: House, kind: str
) -> None:
    """What is missing is not a field, but the form."""
    response = house.ask(
        "POST", "/v1/documents/files", content=b"{}", headers={"content-type": kind}
    )

    answer = problem(response, 415, "unsupported_media_type")
    assert "multipart/form-data" in answer["detail"]
