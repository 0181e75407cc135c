"""Documents with readers, over HTTP: what one may not read is as if it was not."""

from collections.abc import Iterator

import pytest
from house import House, Response, problem

from kept.errors import InputError
from kept.evaluation.access_check import AccessCheck
from kept.stores.service.keys import Key, Role

HIDDEN = "The board moves the pump works to Leeds in March."
OPEN = "Employees have 28 days of leave a year, five more after ten years."
QUESTION = "Where does the board move the pump works?"


class Guests:
    """Clients with keys of their own in a house."""

    def __init__(self, house: House) -> None:
        self.house = house

    def key(self, name: str, role: str = "reader", **given: object) -> dict[str, str]:
        """Return the headers of a key that was made for somebody."""
        body = {"principal": name, "role": role, **given}
        made = self.house.ask("POST", "/v1/keys", json=body)
        assert made.status_code == 201, made.text
        return {"authorization": f"Bearer {made.json()['key']}"}

    def ask(
        self, who: dict[str, str], method: str, path: str, body: object = None
    ) -> Response:
        """Send a request as somebody."""
        return self.house.client.request(method, path, headers=who, json=body)

    def found(self, who: dict[str, str], question: str = QUESTION) -> list[str]:
        """Return the passages that somebody finds."""
        found = self.ask(who, "POST", "/v1/search", {"question": question}).json()
        return [one["text"] for one in found["selected"]]


@pytest.fixture
def guests(house: House) -> Iterator[Guests]:
    """Return clients of a house with an open and a secret document."""
    house.add(OPEN, readers=["everyone"], source_uri="open")
    house.add(HIDDEN, readers=["group:board", "user:ann"], source_uri="secret")
    return Guests(house)


def test_groups_and_names_decide_what_is_found(guests: Guests) -> None:
    """A member of the group and the named user find it, others do not."""
    board = guests.key("bob", groups=["board"])
    ann = guests.key("ann")
    eve = guests.key("eve", groups=["sales"])

    assert guests.found(board) == [HIDDEN]
    assert guests.found(ann) == [HIDDEN]
    assert guests.found(eve) == []


def test_an_admin_reads_everything_unless_it_has_groups(guests: Guests) -> None:
    """Administering and reading are two things."""
    admin = guests.key("root", "admin")
    keeper = guests.key("keeper", "admin", groups=["facilities"])
    clerk = guests.key("clerk", "reader", groups=["*"])

    assert guests.found(admin) == [HIDDEN]
    assert guests.found(keeper) == []
    assert guests.found(clerk) == [HIDDEN]


def test_a_key_that_reads_everything_asks_on_behalf_of_a_user(guests: Guests) -> None:
    """The header narrows; a key with groups of its own may not use it."""
    backend = guests.key("backend", groups=["*"])
    eve = guests.key("eve")

    for reader, expected in (
        ("user:ann", [HIDDEN]),
        ("user:eve, group:board", [HIDDEN]),
        ("user:eve, group:sales", []),
    ):
        assert guests.found({**backend, "kept-reader": reader}) == expected
    widened = guests.ask(
        {**eve, "kept-reader": "group:board"},
        "POST",
        "/v1/search",
        {"question": QUESTION},
    )
    problem(widened, 403, "forbidden")


def test_answers_are_cached_for_their_reader(guests: Guests) -> None:
    """One key that asks for two users gets two answers."""
    backend = guests.key("backend", groups=["*"])

    first = guests.found({**backend, "kept-reader": "user:ann"})
    second = guests.found({**backend, "kept-reader": "user:eve"})

    assert (first, second) == ([HIDDEN], [])


def test_a_key_that_does_not_read_everything_makes_none(guests: Guests) -> None:
    """It could give itself the name or the groups of others."""
    keeper = guests.key("keeper", "admin", groups=["facilities"])

    body = {"principal": "ann", "role": "reader"}
    refused = guests.ask(keeper, "POST", "/v1/keys", body)

    problem(refused, 403, "forbidden")


def test_documents_without_readers_are_closed(house: House) -> None:
    """Once one document has readers, the others are for keys that read everything."""
    house.add(OPEN)
    guests = Guests(house)
    eve = guests.key("eve")
    question = "How many days of leave do employees have?"
    before = guests.found(eve, question)

    house.add(HIDDEN, readers=["group:board"])

    assert before == [OPEN]
    assert guests.found(eve, question) == []
    assert house.ask("GET", "/v1/settings").json()["closed"] is True
    assert len(house.ask("GET", "/v1/documents").json()["documents"]) == 2
    assert guests.ask(eve, "GET", "/v1/documents").json()["documents"] == []


def test_a_document_that_may_not_be_read_is_not_changed(guests: Guests) -> None:
    """A writer cannot delete what it cannot read, nor retire it by its source."""
    writer = guests.key("eve", "writer")
    rows = guests.house.ask("GET", "/v1/documents").json()["documents"]
    [secret] = [row for row in rows if row["source_uri"] == "secret"]

    gone = guests.ask(writer, "DELETE", f"/v1/documents/{secret['document_id']}")
    pruned = guests.ask(writer, "POST", "/v1/documents/prune", {"prefix": "sec"})

    problem(gone, 404, "not_found")
    assert pruned.json() == {"receipts": []}
    assert len(guests.house.ask("GET", "/v1/documents").json()["documents"]) == 2


def test_a_receipt_does_not_say_what_a_hidden_document_holds(guests: Guests) -> None:
    """Whoever submits a text for others does not learn whether they have it."""
    writer = guests.key("eve", "writer")
    body = {"documents": [{"text": HIDDEN, "readers": ["group:board", "user:ann"]}]}

    job = guests.ask(writer, "POST", "/v1/documents?wait=60", body).json()

    assert job["counts"] == {"created": 1}
    [receipt] = job["receipts"]
    assert (receipt["status"], receipt["document_id"]) == ("created", None)
    assert (receipt["rule"], receipt["evidence"]) == (None, {})
    own = guests.house.ask("GET", f"/v1/jobs/{job['job_id']}").json()
    assert own["counts"] == {"reused": 1}


def test_jobs_and_traces_are_those_of_their_principal(guests: Guests) -> None:
    """Others' jobs name documents, and others' traces passages."""
    eve = guests.key("eve", "writer")
    body = {"documents": [{"text": OPEN, "readers": ["user:eve"]}]}
    guests.ask(eve, "POST", "/v1/documents?wait=60", body)
    guests.found(eve)
    guests.found(guests.key("ann"))

    jobs = guests.ask(eve, "GET", "/v1/jobs").json()["jobs"]
    traces = guests.ask(eve, "GET", "/v1/traces").json()["traces"]
    every_job = guests.house.ask("GET", "/v1/jobs").json()["jobs"]
    other = next(job["job_id"] for job in every_job if job["principal"] != "eve")

    assert [job["principal"] for job in jobs] == ["eve"]
    assert [trace["no"] for trace in traces] == [1]
    assert len(guests.house.ask("GET", "/v1/traces").json()["traces"]) == 2
    for rest in ("", "/receipts", "/events"):
        refused = guests.ask(eve, "GET", f"/v1/jobs/{other}{rest}")
        problem(refused, 404, "not_found")


def test_the_audit_names_no_documents_to_those_who_may_not_read_them(
    guests: Guests,
) -> None:
    """An admin with groups sees who did something, but not what was asked or found."""
    keeper = guests.key("keeper", "admin", groups=["facilities"])
    guests.found(guests.key("ann"))

    rows = guests.ask(keeper, "GET", "/v1/audit").json()["audit"]
    others = [row for row in rows if row["principal"] == "ann"]

    assert [row["action"] for row in others] == ["search"]
    assert {row["question_sha256"] for row in others} == {None}
    assert not any("cited" in row or "trace" in row for row in others)


def test_the_check_finds_nothing_in_a_service_as_it_is(house: House) -> None:
    """Outsiders of every role see the same before and after, and no planted word."""
    report = AccessCheck(house.client.request, house.key("admin", None), None)()

    assert report.findings == ()
    assert report.requests > 200
    assert {"search", "why not", "pages", "audit"} <= set(report.surfaces)
    documents = house.ask("GET", "/v1/documents", tenant=report.tenant).json()
    assert documents["documents"] == []
    keys = house.ask("GET", "/v1/keys", tenant=None).json()["keys"]
    assert {
        key["revoked_at"] is None for key in keys if "audit" in key["principal"]
    } == {False}


def test_the_check_finds_a_service_that_filters_nothing(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If groups were forgotten, every surface would show it."""
    key = house.key("admin", None)
    check = AccessCheck(house.client.request, key, None)
    monkeypatch.setattr(Key, "asker", None)

    report = check()

    leaking = {finding.surface for finding in report.findings}
    assert {"search", "ask", "documents", "why not", "vector stores"} <= leaking
    assert "shows" in "\n".join(report.lines())


def test_the_check_refuses_a_tenant_that_it_would_close(house: House) -> None:
    """Documents without readers would be closed to all by the planted ones."""
    house.add(OPEN)

    with pytest.raises(InputError, match="would be closed"):
        AccessCheck(house.client.request, house.key(), "default")()
    with pytest.raises(InputError, match="reads everything"):
        AccessCheck(house.client.request, house.key("reader"), "default")


@pytest.mark.parametrize("role", list(Role))
def test_who_reads_is_part_of_the_session(house: House, role: Role) -> None:
    """A client can ask what it may read."""
    session = house.ask("GET", "/v1/session", role=role).json()

    assert session["reads_everything"] is (role is Role.ADMIN)
    assert session["groups"] == []


def test_readers_are_assigned_over_http(guests: Guests) -> None:
    """A connector says who may read what; what it may not read does not exist."""
    eve = guests.key("eve")
    connector = guests.key("connector", "writer", groups=["*"])
    blind = guests.key("blind", "writer")
    body = {"sources": [{"source_uri": "secret", "readers": ["user:eve"]}]}

    refused = guests.ask(blind, "PUT", "/v1/documents/readers", body)
    assigned = guests.ask(connector, "PUT", "/v1/documents/readers", body)

    problem(refused, 404, "not_found")
    assert [row["status"] for row in assigned.json()["receipts"]] == ["superseded"]
    assert guests.found(eve) == [HIDDEN]
    assert guests.house.audit(action="document.readers")[0]["target"] == "secret"
