"""The pages of documents without scripts: handing in, listing, reading, deleting."""

import time

from browsing import Browser, visitor
from house import House, Response


def ended(browser: Browser, path: str) -> Response:
    """Return the page of a job once the job has ended."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        page = browser.get(path)
        if 'http-equiv="refresh"' not in page.text:
            return page
        time.sleep(0.05)
    raise AssertionError(page.text)


def test_files_are_submitted_by_a_form(house: House) -> None:
    """A form with files becomes a job, whose page shows the receipt of each."""
    browser = visitor(house, "writer")
    files = [
        ("files", ("a.txt", b"The canteen opens at eleven and closes at two.")),
        ("files", ("<b>.txt", b"Fire extinguishers are checked every two years.")),
    ]

    sent = browser.send(
        browser.get("/documents"),
        "/documents/files",
        {"tags": "kitchen, <i>"},
        files=files,
    )
    page = ended(browser, sent.headers["location"])

    assert sent.headers["location"].startswith("/documents/jobs/")
    assert page.text.count(">created</span>") == 2
    assert "upload:&lt;b&gt;.txt" in page.text
    assert "2 created" in page.text


def test_a_text_and_a_url_are_submitted_by_forms(house: House) -> None:
    """A text is stored; a URL of a host that is not allowed fails in plain words."""
    browser = visitor(house, "writer")
    shown = browser.get("/documents")
    text = {"text": "The pump is serviced every 2,000 hours.", "title": "Pump"}

    stored = browser.send(shown, "/documents/text", {**text, "tags": "pump"})
    fetched = browser.send(shown, "/documents/url", {"url": "http://example.org/a"})

    assert ">created</span>" in ended(browser, stored.headers["location"]).text
    failed = ended(browser, fetched.headers["location"]).text
    assert "not among the allowed hosts" in failed
    assert "Pump" in browser.get("/documents").text


def test_a_form_that_says_nothing_is_refused(house: House) -> None:
    """No file, an empty text, no URL: each is said on a page."""
    browser = visitor(house, "writer")
    shown = browser.get("/documents")
    for path in ("/documents/files", "/documents/text", "/documents/url"):
        response = browser.send(shown, path, {"text": "", "url": ""})

        assert response.status_code == 422, path
        assert "cannot be used" in response.text


def test_readers_are_offered_nothing_that_they_may_not_do(house: House) -> None:
    """A reader sees no forms, and a form of theirs is refused."""
    receipt = house.add("Employees have 28 days of leave.", title="Leave")
    path = f"/documents/{receipt['document_id']}"
    browser = visitor(house, "reader")

    shown = browser.get("/documents")
    refused = browser.send(shown, f"{path}/delete", {})

    assert 'type="file"' not in shown.text
    assert "Delete" not in browser.get(path).text
    assert refused.status_code == 403
    assert "needs the role writer" in refused.text
    assert "Leave" in browser.get(path).text


def test_the_list_goes_on_page_by_page(house: House) -> None:
    """The newest come first; every document is on exactly one page."""
    for number in range(27):
        text = f"Paragraph {number} is about {'xyz' * (number + 1)}."
        house.add(text, title=f"Paragraph {number} of many")
    browser = visitor(house)

    first = browser.get("/documents").text
    onwards = first.split('rel="next"')[0].rsplit('href="', 1)[1].split('"')[0]
    second = browser.get(onwards).text

    rows = [page.count('<th scope="row"') for page in (first, second)]
    assert rows == [25, 2]
    assert "Paragraph 26 " in first
    assert "Paragraph 0 " in second
    assert "Back to the beginning" in second
    assert 'rel="next"' not in second


def test_the_list_is_narrowed_by_title_and_source(house: House) -> None:
    """A filter looks into titles and sources, and takes its signs literally."""
    house.add("The first is about apples and pears.", title="Fruit 100%")
    house.add("The second is about lorries.", title="Cars", source_uri="Motor/one")
    browser = visitor(house)

    def shown(containing: str) -> str:
        params = {"containing": containing}
        page = browser.get("/documents", params=params).text
        return str(page.split('id="list"')[1])

    assert "Fruit" in shown("fruit")
    assert "Cars" not in shown("fruit")
    assert "Cars" in shown("motor/")
    assert "Fruit" in shown("0%")
    assert "No such document" in shown("C_rs")
    assert "“&lt;x&gt;”" in shown("<x>")


def test_a_document_shows_its_chunks_with_tags_and_labels(house: House) -> None:
    """What is stored of a passage is read beside it."""
    receipt = house.add(
        "I wake at four and lie awake.",
        title="Interview",
        tags=["sleep"],
        labels={"Sleep": 3, "Mood": None},
        metadata={"site": "north <x>"},
        authority="high",
    )

    page = visitor(house, "reader").get(f"/documents/{receipt['document_id']}").text

    assert 'id="chunk-0"' in page
    assert "#sleep" in page
    assert "Sleep: 3" in page
    assert "Mood: none" in page
    assert "north &lt;x&gt;" in page
    assert "high" in page


def test_a_long_document_shows_its_chunks_page_by_page(house: House) -> None:
    """Chunks come twenty at a time, each of them once."""
    text = "\n\n".join(
        f"Section {n}. " + " ".join(f"word{n}x{m}" for m in range(120))
        for n in range(40)
    )
    receipt = house.add(text, title="Long")
    browser = visitor(house)

    seen: list[str] = []
    path = f"/documents/{receipt['document_id']}"
    while path:
        page = browser.get(path).text
        seen += [part.split('"')[0] for part in page.split('id="chunk-')[1:]]
        rest = page.split('rel="next"')
        path = rest[0].rsplit('href="', 1)[1].split('"')[0] if len(rest) > 1 else ""

    assert seen == [str(place) for place in range(receipt["chunks"])]
    assert len(seen) > 20


def test_deleting_asks_first_and_confirms_after(house: House) -> None:
    """The button opens a question; what is sent deletes and leaves a row."""
    receipt = house.add("Employees have 28 days of leave.", title="Leave")
    path = f"/documents/{receipt['document_id']}"
    browser = visitor(house, "writer")
    page = browser.get(path)

    gone = browser.send(page, f"{path}/delete", {})

    assert 'popovertarget="delete"' in page.text
    assert "Delete this document?" in page.text
    assert gone.headers["location"] == "/documents?notice=document-deleted"
    assert "The document is deleted" in browser.get(gone.headers["location"]).text
    assert browser.get(path).status_code == 404
    [row] = house.audit(action="document.delete")
    assert row["target"] == receipt["document_id"]


def test_a_job_can_be_cancelled_on_its_page(house: House) -> None:
    """A job that has ended is not cancelled again, and the page goes on working."""
    house.add("Employees have 28 days of leave.")
    [job] = house.ask("GET", "/v1/jobs").json()["jobs"]
    path = f"/documents/jobs/{job['job_id']}"
    browser = visitor(house, "writer")

    sent = browser.send(browser.get(path), f"{path}/cancel", {})

    assert sent.headers["location"] == f"{path}?notice=job-cancelled"
    assert ">done</span>" in browser.get(path).text
    assert house.audit(action="job.cancel")


def test_all_jobs_are_listed_page_by_page(house: House) -> None:
    """The newest come first, and each is on exactly one page."""
    empty = visitor(house).get("/documents/jobs").text
    for number in range(27):
        body = {"documents": [{"text": f"Note {number}", "source_uri": f"n{number}"}]}
        house.ask("POST", "/v1/documents", json=body)
    browser = visitor(house, "reader")

    first = browser.get("/documents/jobs").text
    onwards = first.split('rel="next"')[0].rsplit('href="', 1)[1].split('"')[0]
    second = browser.get(onwards).text

    assert "There are no jobs yet" in empty
    assert [page.count('class="job"') for page in (first, second)] == [25, 2]
    assert ">n26</a>" in first
    assert ">n0</a>" in second
    assert "Cancel" not in first


def test_what_is_not_here_is_said_on_a_page(house: House) -> None:
    """Unknown documents, jobs and cursors get an error page."""
    browser = visitor(house)

    assert browser.get("/documents/none").status_code == 404
    assert browser.get("/documents/jobs/none").status_code == 404
    assert browser.get("/documents?cursor=x").status_code == 422


def test_a_page_shows_one_tenant_only(house: House) -> None:
    """Neither the list nor the address of a document opens another tenant's."""
    receipt = house.add("The secret of acme.", tenant="acme", title="Secret")
    path = f"/documents/{receipt['document_id']}"
    stranger = visitor(house, "admin", "default")
    operator = visitor(house, "admin", None)

    operator.send(operator.get("/tenant"), "/tenant", {"name": "acme"})

    assert "Secret" not in stranger.get("/documents").text
    assert stranger.get(path).status_code == 404
    assert "Secret" in operator.get("/documents").text
    assert "The secret of acme" in operator.get(path).text


def test_a_form_acts_for_the_tenant_that_it_was_shown_for(house: House) -> None:
    """Choosing another tenant in a second window does not redirect an open form."""
    receipt = house.add("Employees have 28 days of leave.", tenant="acme")
    path = f"/documents/{receipt['document_id']}"
    operator = visitor(house, "admin", None)
    operator.send(operator.get("/tenant"), "/tenant", {"name": "acme"})
    shown = operator.get(path)
    operator.send(operator.get("/tenant"), "/tenant", {"name": "default"})

    gone = operator.send(shown, f"{path}/delete", {})

    assert gone.status_code == 303
