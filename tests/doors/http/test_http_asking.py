"""Asking over HTTP: the same JSON as the command line, cached, audited, explained."""

import json
from typing import Any

import pytest
from house import House, OpenHouse, problem

from commands import kept
from kept.doors.http.settings import Bounds

LEAVE = "Employees have 28 days of leave a year."
QUESTION = "how many days of leave do employees have?"
SMALL_TALK = "hey this is a test message"


@pytest.fixture
def stocked(house: House) -> House:
    """Return an app with three documents."""
    house.add(LEAVE, title="Handbook", source_uri="handbook", tags=["leave"])
    house.add("The pump TW-C235 costs 410 euro.", title="Prices", source_uri="prices")
    house.add("Invoices are paid within 30 days.", source_uri="invoices")
    return house


def same(value: dict[str, Any]) -> dict[str, Any]:
    """Return what does not depend on the clock."""
    return {name: v for name, v in value.items() if name != "timings"}


def events(text: str) -> list[tuple[str, Any]]:
    """Return the events of a stream."""
    found = []
    for block in text.strip().split("\n\n"):
        if block.startswith("event: "):
            name, data = block.split("\n")
            found.append(
                (name.removeprefix("event: "), json.loads(data.removeprefix("data: ")))
            )
    return found


def chunk_of(house: House, question: str = QUESTION) -> str:
    """Return the first chunk that a search selects."""
    chunk: str = house.search(question).json()["selected"][0]["chunk_id"]
    return chunk


@pytest.mark.parametrize("question", [QUESTION, "TW-C235", SMALL_TALK])
def test_search_gives_the_json_of_the_command_line(
    stocked: House, question: str
) -> None:
    """One result, the same through both doors."""
    store = stocked.service.settings.store

    over_http = stocked.search(question, k=2).json()
    typed = kept(
        *("search", question, "-k", 2, "--store", store, "--embedder", "hash"),
        "--json",
    ).json

    assert same(over_http) == same(typed)


def test_ask_gives_the_json_of_the_command_line(stocked: House) -> None:
    """An answer has the same members and the same text."""
    store = stocked.service.settings.store

    over_http = stocked.ask("POST", "/v1/ask", json={"question": QUESTION}).json()
    typed = kept(
        *("ask", QUESTION, "--store", store, "--embedder", "hash", "--json")
    ).json

    assert same(over_http) == same(typed)
    assert over_http["text"].startswith("Employees have 28 days")


def test_why_gives_the_json_of_the_command_line(stocked: House) -> None:
    """The story of a candidate is one story."""
    store = stocked.service.settings.store
    chunk = chunk_of(stocked)

    over_http = stocked.ask(
        "POST", "/v1/why", json={"question": QUESTION, "chunk_id": chunk}
    ).json()
    typed = kept(
        *("why", chunk, QUESTION, "--store", store, "--embedder", "hash", "--json")
    ).json

    assert over_http == typed


def test_why_not_gives_the_json_of_the_command_line(stocked: House) -> None:
    """What keeps a document out, and what would let it in, is the same."""
    store = stocked.service.settings.store

    over_http = stocked.ask(
        "POST", "/v1/why-not", json={"question": QUESTION, "named": "prices"}
    ).json()
    typed = kept(
        *("why-not", "prices", QUESTION, "--store", store, "--embedder", "hash"),
        "--json",
    ).json

    assert over_http == typed
    assert over_http["outcome"] != "selected"


def test_a_streamed_answer_is_the_whole_answer_in_pieces(stocked: House) -> None:
    """First what was found, then the text, and at the end all of it."""
    whole = stocked.ask("POST", "/v1/ask", json={"question": QUESTION}).json()

    response = stocked.ask(
        "POST", "/v1/ask", json={"question": QUESTION, "stream": True}
    )
    reported = events(response.text)

    assert response.headers["content-type"].startswith("text/event-stream")
    assert reported[0][0] == "found"
    pieces = "".join(value["text"] for name, value in reported if name == "piece")
    assert pieces == whole["text"]
    assert reported[-1][0] == "answer"
    answer = reported[-1][1]
    assert answer.pop("trace") == response.headers["kept-trace"]
    assert same(answer) == same(whole)


def test_filters_narrow_the_search(stocked: House) -> None:
    """Only what the filters let through can be found."""
    found = stocked.search(QUESTION, filters={"tags": ["price"]}).json()

    assert found["selected"] == []
    assert found["refused"]["reason"] == "nothing_relevant"


def test_a_wrong_date_is_rejected(stocked: House) -> None:
    """A filter that is none is refused in plain words."""
    response = stocked.search(QUESTION, filters={"since": "yesterday"})

    assert "expected a date" in problem(response, 422, "invalid_input")["detail"]


def test_limits_of_a_question(open_house: OpenHouse) -> None:
    """Too long, empty, or asking for too much is refused."""
    house = open_house(bounds=Bounds(question_chars=20, k=3))

    long = problem(house.search("x" * 21), 422, "invalid_input")
    empty = problem(house.search("  "), 422, "invalid_input")
    many = problem(house.search("a question", k=4), 422, "invalid_input")
    problem(house.search("a question", k=0), 422, "invalid_request")
    problem(house.search("a question", preset="other"), 422, "invalid_setting")

    assert "at most 20" in long["detail"]
    assert "empty" in empty["detail"]
    assert "at most 3" in many["detail"]


class TestCache:
    """An answer is cached per caller, as long as the state is unchanged."""

    def outcome(self, house: House, question: str = QUESTION, **more: Any) -> str:  # noqa: ANN401 -- of a search
        """Search and say whether the answer was remembered."""
        outcome: str = house.search(question, **more).headers["kept-cache"]
        return outcome

    def test_the_same_question_hits(self, stocked: House) -> None:
        """Spaces make no other question."""
        first = stocked.search(QUESTION)
        again = stocked.search(QUESTION)
        spaced = stocked.search(f"  {QUESTION.replace(' ', '   ')} ")

        assert first.headers["kept-cache"] == "miss"
        assert again.headers["kept-cache"] == "hit"
        assert again.json() == first.json()
        assert spaced.headers["kept-cache"] == "hit"
        assert spaced.json()["query"] == f"  {QUESTION.replace(' ', '   ')} "

    def test_an_entry_lives_for_180_seconds(self, stocked: House) -> None:
        """It is there just before, and gone then."""
        self.outcome(stocked)
        stocked.hands.now += 179.9
        assert self.outcome(stocked) == "hit"

        stocked.hands.now += 0.1

        assert self.outcome(stocked) == "miss"

    def test_an_ingest_misses(self, stocked: House) -> None:
        """What is new can be found at once; the same documents have the same answer."""
        self.outcome(stocked)
        receipt = stocked.add("Trainees have 30 days of leave a year.")
        assert self.outcome(stocked) == "miss"
        assert self.outcome(stocked) == "hit"

        stocked.ask("DELETE", f"/v1/documents/{receipt['document_id']}")

        assert self.outcome(stocked) == "hit"
        assert "Trainees" not in stocked.search(QUESTION).text

    def test_another_ingest_of_another_tenant_does_not(self, stocked: House) -> None:
        """The cache reveals nothing about other tenants."""
        self.outcome(stocked)

        stocked.add("Trainees have 30 days of leave.", tenant="globex")

        assert self.outcome(stocked) == "hit"

    def test_every_part_of_the_key_counts(self, stocked: House) -> None:
        """Another k, filter, preset, principal or tenant is another question."""
        self.outcome(stocked)

        assert self.outcome(stocked, k=2) == "miss"
        assert self.outcome(stocked, filters={"tags": ["leave"]}) == "miss"
        assert self.outcome(stocked, preset="tenant_kb") == "miss"
        assert self.outcome(stocked, tenant="globex") == "miss"
        other = stocked.ask(
            "POST", "/v1/search", role="reader", json={"question": QUESTION}
        )
        assert other.headers["kept-cache"] == "miss"
        assert self.outcome(stocked) == "hit"

    def test_another_configuration_misses(self, stocked: House) -> None:
        """A setting that changes an answer changes the key."""
        self.outcome(stocked)

        changed = stocked.ask("PATCH", "/v1/settings", json={"set": {"top_k": 3}})

        assert changed.is_success, changed.text
        assert self.outcome(stocked) == "miss"

    def test_a_revoked_key_does_not_reach_it(self, stocked: House) -> None:
        """Authorisation comes before the cache is read."""
        token = stocked.key("reader")
        headers = {"x-api-key": token}
        body = {"question": QUESTION}
        assert stocked.client.post("/v1/search", headers=headers, json=body).is_success

        stocked.service.access.revoke(token.split("_")[1])

        response = stocked.client.post("/v1/search", headers=headers, json=body)
        problem(response, 401, "unauthenticated")


class TestAudit:
    """Every answer, refusal and write leaves a row."""

    def test_an_answer_leaves_what_it_rests_on(self, stocked: House) -> None:
        """Who, what, fingerprints and the numbers, but not the question."""
        found = stocked.search(QUESTION).json()

        row = stocked.audit(action="search")[0]

        assert row["outcome"] == "answered"
        assert (row["principal"], row["role"]) == ("admins", "admin")
        assert row["knowledge_base"] == found["fingerprints"]["knowledge_base"]
        assert row["configuration"] == found["fingerprints"]["configuration"]
        best = found["selected"][0]["signals"]
        assert row["relevanceTop"] == best["relevance"]
        assert row["vectorMax"] == best["cosine"]
        assert row["keywordMax"] == best["bm25"]
        assert row["combinedTop"] == best["fused"]
        assert row["usedRerank"] in (True, False)
        assert row["rerankMs"] is None or row["rerankMs"] >= 0
        assert row["filteredByFloor"] in (True, False)
        counts = row["counts"]
        assert counts["recalled"] + counts["added"] == (
            counts["selected"] + counts["dropped"]
        )
        assert row["question"] is None
        assert len(row["question_sha256"]) == 64

    def test_a_refusal_leaves_its_reason(self, stocked: House) -> None:
        """Also where nothing was searched."""
        stocked.search(SMALL_TALK)

        assert stocked.audit(action="search")[0]["outcome"] == "query_quality"

    def test_an_answer_from_the_cache_leaves_a_row_too(self, stocked: House) -> None:
        """Who asked is written down, however it was answered."""
        stocked.search(QUESTION)
        stocked.search(QUESTION)

        rows = stocked.audit(action="search")

        assert [row["cached"] for row in rows] == [True, False]

    def test_writes_leave_rows(self, stocked: House) -> None:
        """Documents, keys and settings."""
        stocked.ask("POST", "/v1/keys", json={"principal": "x", "role": "reader"})
        stocked.ask("PATCH", "/v1/settings", json={"set": {"top_k": 3}})
        receipt = stocked.add("Something to delete again.")
        stocked.ask("DELETE", f"/v1/documents/{receipt['document_id']}")

        actions = [row["action"] for row in stocked.audit()]

        assert actions[:4] == [
            *("document.delete", "document.create"),
            *("settings.change", "key.create"),
        ]

    def test_the_question_is_kept_only_where_allowed(self, stocked: House) -> None:
        """With redaction, what is personal is blotted out before it is stored."""
        personal = "is jane@example.org allowed 28 days of leave?"
        stocked.search(personal)
        assert stocked.audit()[0]["question"] is None

        stocked.ask("PATCH", "/v1/settings", json={"policy": {"keep_questions": True}})
        stocked.search(personal, k=3)
        kept_question = stocked.audit(action="search")[0]["question"]
        stocked.ask("PATCH", "/v1/settings", json={"policy": {"redact_personal": True}})
        stocked.search(personal, k=4)
        redacted = stocked.audit(action="search")[0]["question"]

        assert kept_question == personal
        assert "jane@example.org" not in redacted
        assert "days of leave" in redacted

    def test_asking_leaves_how_the_answer_was_made(self, stocked: House) -> None:
        """Streamed or not."""
        for stream in (False, True):
            body = {"question": QUESTION, "stream": stream}
            stocked.ask("POST", "/v1/ask", json=body)

        rows = stocked.audit(action="ask")

        assert [row["kind"] for row in rows] == ["extractive", "extractive"]
        assert rows[0]["citations"] >= 1

    def test_rows_count_within_the_tenant(self, stocked: House) -> None:
        """The numbers of one tenant's rows say nothing about another's."""
        stocked.search(QUESTION, tenant="globex")

        rows = stocked.ask("GET", "/v1/audit", tenant="globex").json()["audit"]

        assert [row["no"] for row in rows] == [1]


class TestTraces:
    """What is kept of queries, and running them again."""

    def test_without_permission_only_fingerprints_are_kept(
        self, stocked: House
    ) -> None:
        """There is nothing to run again then."""
        stocked.search(QUESTION)

        [trace] = stocked.ask("GET", "/v1/traces").json()["traces"]
        again = stocked.ask("POST", f"/v1/traces/{trace['no']}/replay").json()

        assert trace["question"] is None
        assert again["outcome"] == "not_recorded"
        assert again["found"] is None

    def test_a_recorded_query_runs_again_and_is_identical(self, stocked: House) -> None:
        """With the tenant's permission, the trace can be had once more."""
        stocked.ask("PATCH", "/v1/settings", json={"policy": {"keep_questions": True}})
        found = stocked.search(QUESTION).json()

        [trace] = stocked.ask("GET", "/v1/traces").json()["traces"]
        read = stocked.ask("GET", f"/v1/traces/{trace['no']}").json()
        again = stocked.ask("POST", f"/v1/traces/{trace['no']}/replay").json()

        assert {name: read[name] for name in trace} == trace
        assert again["outcome"] == "identical"
        assert same(again["found"]) == same(found)

    def test_a_trace_of_another_tenant_is_not_there(self, stocked: House) -> None:
        """Not even its number."""
        stocked.search(QUESTION)
        [trace] = stocked.ask("GET", "/v1/traces").json()["traces"]

        response = stocked.ask("GET", f"/v1/traces/{trace['no']}", tenant="globex")

        problem(response, 404, "not_found")

    def test_other_settings_can_be_tried_on_recorded_questions(
        self, stocked: House
    ) -> None:
        """What would come and go is shown, and nothing is saved."""
        stocked.ask("PATCH", "/v1/settings", json={"policy": {"keep_questions": True}})
        both = "days of leave of employees and days until invoices are paid"
        found = stocked.search(both).json()["selected"]
        before = stocked.ask("GET", "/v1/settings").json()

        reported = stocked.ask(
            "POST", "/v1/settings/preview", json={"set": {"top_k": 1}}
        ).json()

        assert len(found) == 2
        assert (reported["questions"], reported["different"]) == (1, 1)
        [moved] = reported["differences"][0]["moved"]
        assert (moved["kind"], moved["chunk_id"]) == ("lost", found[1]["chunk_id"])
        assert stocked.ask("GET", "/v1/settings").json() == before
        [row] = stocked.audit(action="settings.preview")
        assert (row["outcome"], row["questions"]) == ("answered", 1)
        assert row["set"] == {"top_k": 1}


def test_settings_say_where_they_come_from(stocked: House) -> None:
    """A tenant's own count at once, and unknown ones are refused."""
    changed = stocked.ask("PATCH", "/v1/settings", json={"set": {"top_k": 3}}).json()
    rows = {row["name"]: row for row in changed["preset_settings"]}

    response = stocked.ask("PATCH", "/v1/settings", json={"set": {"top_k": -1}})
    unknown = stocked.ask("PATCH", "/v1/settings", json={"set": {"nothing": 1}})
    judged = {"set": {"validation_enable": True}}
    alone = stocked.ask("PATCH", "/v1/settings", json=judged)
    shown = stocked.ask(
        "POST", "/v1/settings/preview", json={**judged, "questions": ["a b c"]}
    )
    back = stocked.ask("PATCH", "/v1/settings", json={"unset": ["top_k"]}).json()

    assert (rows["top_k"]["value"], rows["top_k"]["origin"]) == (3, "tenant")
    problem(response, 422, "invalid_setting")
    problem(unknown, 422, "invalid_setting")
    assert "no judge" in problem(alone, 422, "invalid_setting")["detail"]
    assert "no judge" in problem(shown, 422, "invalid_setting")["detail"]
    rows = {row["name"]: row for row in back["preset_settings"]}
    assert rows["top_k"]["origin"] == "default"


def test_references_need_references(stocked: House) -> None:
    """Without any, the answer says how they are made."""
    body = {"evidence": {"Sleep": ["I wake at four every night"]}}

    response = stocked.ask("POST", "/v1/references", json=body)

    assert "references" in problem(response, 422, "invalid_input")["detail"]
