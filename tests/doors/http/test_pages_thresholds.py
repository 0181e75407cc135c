"""The thresholds page: scores as they fell, and another value on trial."""

import re

import pytest
from browsing import Browser, visitor
from house import House, Response

QUESTION = "how many days of leave do employees have?"
BOTH = "days of leave of employees and days until invoices are paid"


@pytest.fixture
def asked(house: House) -> House:
    """Return an app that keeps questions, with one that two passages answer."""
    house.ask("PATCH", "/v1/settings", json={"policy": {"keep_questions": True}})
    house.add("Employees have 28 days of leave a year.", title="Handbook <1>")
    house.add("Invoices are paid within 30 days.", title="Invoices")
    house.search(BOTH)
    return house


def tried(browser: Browser, setting: str, value: str, **more: str) -> Response:
    """Try a value on the page."""
    form = browser.get("/thresholds")
    fields = {"setting": setting, "value": value, **more}
    return browser.send(form, "/thresholds/preview", fields)


def test_scores_are_counted_as_accepted_and_rejected(asked: House) -> None:
    """Every candidate is in the histogram once, by whether it was selected."""
    record = asked.search(BOTH).json()["record"]
    asked.search("capital and altitude of Mongolia")

    text = visitor(asked, "reader").get("/thresholds").text

    [accepted, rejected] = re.findall(
        r"Calibrated relevance: (\d+) accepted, (\d+) rejected", text
    )[0]
    assert int(accepted) == record["selected"]
    assert int(rejected) == record["dropped"] + 2
    assert "The same as a table" in text
    assert "the floor of now" in text


def test_nothing_asked_yet_is_said(house: House) -> None:
    """An empty page says what would fill it."""
    assert "No scores yet" in visitor(house, "reader").get("/thresholds").text


def test_a_value_is_tried_on_recorded_questions(asked: House) -> None:
    """The preview lists what would change, with its stage, and saves nothing."""
    before = asked.ask("GET", "/v1/settings").json()

    response = tried(visitor(asked), "top_k", "1")

    assert response.status_code == 200
    assert re.search(r"leaves place 2 <[^>]*>· by trim_top_n", response.text)
    assert asked.ask("GET", "/v1/settings").json() == before


def test_a_value_is_tried_on_typed_questions(asked: House) -> None:
    """One a line; what is typed is shown again and never as markup."""
    response = tried(
        visitor(asked),
        "KEPT_RELEVANCE_FLOOR",
        "1",
        questions=f"{QUESTION}\n\n<b>days of leave</b> of employees",
    )

    assert "<b>2</b> questions asked" in response.text
    assert len(asked.audit(action="settings.preview")) == 1
    assert "&lt;b&gt;days of leave&lt;/b&gt;" in response.text
    assert "<b>days" not in response.text


def test_a_value_out_of_bounds_is_refused_with_the_bounds(asked: House) -> None:
    """The page says what is accepted; nothing is tried and nothing is saved."""
    browser = visitor(asked)

    preview = tried(browser, "relevance_floor", "7")
    many = tried(browser, "relevance_floor", "0.5", questions="a\n" * 51)
    form = browser.get("/thresholds")
    saved = browser.send(
        form, "/thresholds/save", {"setting": "relevance_floor", "value": "-1"}
    )

    assert [one.status_code for one in (preview, many, saved)] == [422, 422, 422]
    assert "expected a number from 0 to 1" in preview.text
    assert "at most 50 questions" in many.text
    assert "expected a number from 0 to 1" in saved.text


def test_what_was_tried_can_be_saved(asked: House) -> None:
    """The tenant has the setting from then on, and the audit says who did it."""
    browser = visitor(asked)
    form = browser.get("/thresholds")

    response = browser.send(
        form, "/thresholds/save", {"setting": "relevance_floor", "value": "0.4"}
    )

    assert response.status_code == 303
    onwards = browser.get(response.headers["location"]).text
    assert "The setting is saved" in onwards
    assert "Now <strong>0.4</strong>, set by this tenant" in onwards
    assert asked.audit()[0]["set"] == {"relevance_floor": "0.4"}


def test_trying_and_saving_are_for_admins(asked: House) -> None:
    """A reader sees the histograms and that the rest needs another role."""
    browser = visitor(asked, "reader")
    form = browser.get("/thresholds")

    assert "needs the role admin" in form.text
    for path in ("/thresholds/preview", "/thresholds/save"):
        fields = {"setting": "top_k", "value": "1"}
        assert browser.send(form, path, fields).status_code == 403


def test_without_kept_questions_the_page_asks_for_some(house: House) -> None:
    """There is nothing recorded to run again, and the page says why."""
    house.add("Employees have 28 days of leave a year.")
    house.search(QUESTION)
    browser = visitor(house)

    response = tried(browser, "top_k", "1")

    assert "The text of questions is not kept" in browser.get("/thresholds").text
    assert "There is no question to try it on" in response.text


def test_scores_of_others_are_not_counted(asked: House) -> None:
    """Histograms are of one tenant."""
    asked.add("A text of theirs, about valves.", tenant="globex")
    asked.search("valves of theirs", tenant="globex")

    text = visitor(asked, "reader", "globex").get("/thresholds").text

    assert "the latest 1 question." in text
    assert "Calibrated relevance: 1 accepted, 0 rejected" in text


def test_openings_that_were_compared_are_shown(house: House) -> None:
    """The similarities that decide about near duplicates are counted beside."""
    house.add("The minutes of the meeting of the board in March, held in Leeds.")
    house.add("The minutes of the meeting of the board in March, held in Kiel.")

    text = visitor(house, "reader").get("/thresholds").text

    assert "Texts compared as near duplicates" in text
