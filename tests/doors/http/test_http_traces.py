"""Traces: every answer names its own, and numbers reveal nothing about others."""

import json
from typing import Any

import pytest
from house import House, OpenHouse, problem

from kept.stores.sqlite.schema import MIGRATIONS
from loopback import piece, serving, streams

QUESTION = "how many days of leave do employees have?"


@pytest.fixture
def stocked(house: House) -> House:
    """Return an app with two documents of a tenant."""
    house.add("Employees have 28 days of leave a year.", title="Handbook")
    house.add("The pump TW-C235 costs 410 euro.", title="Prices")
    return house


def trace(house: House, name: str, tenant: str = "default") -> dict[str, Any]:
    """Return a trace by its name."""
    reported = house.ask("GET", f"/v1/traces/{name}", tenant=tenant)
    assert reported.status_code == 200, reported.text
    whole: dict[str, Any] = reported.json()
    return whole


def test_a_search_names_its_trace_beside_the_answer(stocked: House) -> None:
    """The body stays what it is; the header leads to the path of every candidate."""
    response = stocked.search(QUESTION)

    answer = trace(stocked, response.headers["kept-trace"])

    record, path = response.json()["record"], answer["path"]
    assert "trace" not in response.json()
    assert answer["no"] == 1
    assert {k: path[k] for k in ("recalled", "added", "selected", "dropped")} == {
        k: record[k] for k in ("recalled", "added", "selected", "dropped")
    }
    assert [one["chunk_id"] for one in path["candidates"]] == [
        one["chunk_id"] for one in record["candidates"]
    ]


def test_a_cached_answer_names_the_trace_of_the_first(stocked: House) -> None:
    """Nothing was searched again, so there is nothing else to look at."""
    first = stocked.search(QUESTION)
    again = stocked.search(f"  {QUESTION}")

    assert again.headers["kept-cache"] == "hit"
    assert again.headers["kept-trace"] == first.headers["kept-trace"]
    assert len(stocked.ask("GET", "/v1/traces").json()["traces"]) == 1


def test_an_answer_in_words_names_its_trace(stocked: House) -> None:
    """In the header, and in the stream with what was found and with the answer."""
    whole = stocked.ask("POST", "/v1/ask", json={"question": QUESTION})
    other = {"question": f"{QUESTION} please", "stream": True}
    streamed = stocked.ask("POST", "/v1/ask", json=other)

    name = streamed.headers["kept-trace"]
    data = [
        json.loads(line[6:]) for line in streamed.text.splitlines() if "data" in line
    ]
    assert data[0]["trace"] == data[-1]["trace"] == name
    assert trace(stocked, name)["result"]["kind"] == "ask"
    assert trace(stocked, whole.headers["kept-trace"])["no"] == 1


def test_word_for_word_answers_come_from_the_cache(stocked: House) -> None:
    """The same question is answered once; streamed or not, the text is the same."""
    body = {"question": QUESTION}
    first = stocked.ask("POST", "/v1/ask", json=body)
    again = stocked.ask("POST", "/v1/ask", json=body)
    streamed = stocked.ask("POST", "/v1/ask", json={**body, "stream": True})

    assert [one.headers["kept-cache"] for one in (first, again, streamed)] == [
        "miss",
        "hit",
        "hit",
    ]
    assert again.content == first.content
    assert json.dumps(first.json()["text"], ensure_ascii=False) in streamed.text
    assert [row["cached"] for row in stocked.audit(action="ask")] == [True, True, False]


def test_an_ingest_invalidates_the_cached_answer(stocked: House) -> None:
    """A cached answer is not used after a document was added."""
    body = {"question": QUESTION}
    stocked.ask("POST", "/v1/ask", json=body)
    stocked.add("Employees have 30 days of leave a year since 2026.", title="News")

    again = stocked.ask("POST", "/v1/ask", json=body)

    assert again.headers["kept-cache"] == "miss"


def test_a_tenant_without_documents_leaves_no_trace(house: House) -> None:
    """An unknown tenant has no record, so no trace is named."""
    response = house.search(QUESTION, tenant="nobody")

    assert response.status_code == 200
    assert "kept-trace" not in response.headers


def test_numbers_of_traces_and_ledger_count_within_the_tenant(stocked: House) -> None:
    """Trace numbers do not reveal how busy other tenants are."""
    for text in ("A first text of theirs.", "Another text, about valves."):
        stocked.add(text, tenant="globex")
    for question in ("valves of theirs", "first text of theirs"):
        stocked.search(question, tenant="globex")
    stocked.search(QUESTION)

    def numbers(path: str, key: str, tenant: str) -> list[int]:
        rows = stocked.ask("GET", path, tenant=tenant).json()[key]
        return [row["no"] for row in rows]

    assert numbers("/v1/traces", "traces", "default") == [1]
    assert numbers("/v1/traces", "traces", "globex") == [2, 1]
    assert numbers("/v1/ledger", "ledger", "default") == [2, 1]
    assert numbers("/v1/ledger", "ledger", "globex") == [2, 1]


def test_cursors_of_documents_do_not_reveal_their_age(stocked: House) -> None:
    """Ages count all tenants' documents, so they are masked; pages still fit."""
    for place in range(3):
        stocked.add(f"Text number {place} about valves.", tenant="globex")
    seen: list[str] = []
    cursor: str | None = None
    for _ in range(3):
        params = {"limit": "1"} | ({"cursor": cursor} if cursor else {})
        page = stocked.ask(
            "GET", "/v1/documents", params=params, tenant="globex"
        ).json()
        seen += [one["document_id"] for one in page["documents"]]
        cursor = page["next_cursor"]

    whole = stocked.ask("GET", "/v1/documents", tenant="globex").json()["documents"]
    assert seen == [one["document_id"] for one in whole]
    assert cursor is None


def test_a_trace_of_another_tenant_is_not_found_by_its_id(stocked: House) -> None:
    """Nor by anything that is no name of a trace."""
    name = stocked.search(QUESTION).headers["kept-trace"]

    for other in (name, "1", "0", "9" * 40, "t", "%20"):
        response = stocked.ask("GET", f"/v1/traces/{other}", tenant="globex")
        problem(response, 404, "not_found")


def test_paths_hold_no_words_unless_the_tenant_allows_it(stocked: House) -> None:
    """Evidence in words may repeat what was asked, so it is left out."""
    body = {"filters": {"tags": ["secret-tag"]}, "preset": "few_shot", "item": "Sleep"}
    name = stocked.search(QUESTION, **body).headers["kept-trace"]

    assert "Sleep" not in json.dumps(trace(stocked, name))


def test_older_stores_get_numbers_of_their_own(house: House) -> None:
    """The migration counts within each tenant, in the order of the rows."""
    import apsw  # noqa: PLC0415 -- only here

    old = apsw.Connection(":memory:")
    for script in MIGRATIONS[:2]:
        old.execute(script)
    for tenant in (1, 2, 1):
        old.execute(
            "INSERT INTO queries (tenant_no, at, preset, question_sha256, request,"
            " knowledge_base, configuration, code, result_sha256, result)"
            " VALUES (?, '', '', '', '{}', '', '', '', '', '{}')",
            (tenant,),
        )
        old.execute(
            "INSERT INTO ledger (tenant_no, at, status, source_uri, chunks, chars,"
            " chars_left_out, evidence) VALUES (?, '', '', '', 0, 0, 0, '{}')",
            (tenant,),
        )

    old.execute(MIGRATIONS[2])

    for table in ("queries", "ledger"):
        rows = old.execute(f"SELECT tenant_no, number FROM {table} ORDER BY no")  # noqa: S608 -- ours
        assert rows.fetchall() == [(1, 1), (2, 1), (1, 2)]


def test_aliases_and_chunks_are_paginated(house: House) -> None:
    """The next page goes on behind the one before, to the end."""
    text = "\n\n".join(
        f"Paragraph {n} tells of valve {n}. " + "word " * 150 for n in range(5)
    )
    document = house.add(text, title="Long")["document_id"]
    for place in range(3):
        house.add(text, title="Long", source_uri=f"copy/{place}")

    def paged(path: str, key: str) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = []
        cursor = None
        while True:
            params = {"limit": "2"} | ({"cursor": cursor} if cursor else {})
            page = house.ask("GET", path, params=params).json()
            rows += page[key]
            cursor = page["next_cursor"]
            if cursor is None:
                return rows

    chunks = paged(f"/v1/documents/{document}/chunks", "chunks")
    aliases = paged("/v1/aliases", "aliases")

    assert [one["ord"] for one in chunks] == list(range(len(chunks)))
    assert len(chunks) >= 5
    assert sorted(one["source_uri"] for one in aliases) == [
        f"copy/{n}" for n in range(3)
    ]


def test_what_a_model_writes_is_not_remembered(
    open_house: OpenHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may say something else the next time; word for word it is remembered."""
    received = streams(piece("28 days [1]."), piece("", "stop"), "[DONE]")
    with serving(received) as model:
        monkeypatch.setenv("KEPT_LLM_MODEL", "loopback")
        monkeypatch.setenv("KEPT_LLM_BASE_URL", model.url)
        house = open_house()
        house.add("Employees have 28 days of leave a year.", title="Handbook")

        def cached(**more: object) -> str:
            body = {"question": QUESTION, **more}
            response = house.ask("POST", "/v1/ask", json=body)
            assert response.status_code == 200, response.text
            return str(response.headers["kept-cache"])

        assert [cached(), cached()] == ["miss", "miss"]
        assert [cached(extractive=True), cached(extractive=True)] == ["miss", "hit"]
        assert len(model.requests) == 2
