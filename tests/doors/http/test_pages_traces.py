"""The trace pages: a funnel whose counts sum, every candidate's way, and why not."""

import re
from html import unescape

import pytest
from browsing import visitor
from house import House

from kept.explain.candidate_steps import funnel_of

QUESTION = "how many days of leave do employees have?"


@pytest.fixture
def asked(house: House) -> House:
    """Return an app that keeps questions, with one asked of three documents."""
    house.ask("PATCH", "/v1/settings", json={"policy": {"keep_questions": True}})
    house.add("Employees have 28 days of leave a year.", title="Handbook <1>")
    house.add("Employees of the shop have leave on Mondays.", title="Shop")
    house.add("The pump TW-C235 costs 410 euro.", title="Prices", source_uri="prices")
    house.search(QUESTION)
    return house


def page(house: House, path: str, role: str = "reader") -> str:
    """Return the text of a page, which must be shown."""
    response = visitor(house, role).get(path)
    assert response.status_code == 200, response.text
    return str(response.text)


def test_the_list_names_questions_and_how_they_ended(asked: House) -> None:
    """The newest first, each with a link to its trace."""
    asked.search("capital altitude of Mongolia")

    text = page(asked, "/traces")

    links = re.findall(r'href="/traces/(\d+)">([^<]*)<', text)
    assert [int(no) for no, _ in links] == [2, 1]
    assert unescape(links[1][1]) == QUESTION
    assert "nothing relevant" in text


def test_filters_narrow_the_list(asked: House) -> None:
    """By words, by outcome and by how it was asked; nothing left is said so."""
    asked.ask("POST", "/v1/ask", json={"question": "what does the pump TW-C235 cost"})

    assert "/traces/1" in page(asked, "/traces?text=LEAVE")
    assert "/traces/2" not in page(asked, "/traces?text=LEAVE")
    assert "/traces/1" not in page(asked, "/traces?kind=ask")
    assert "/traces/2" in page(asked, "/traces?kind=ask&outcome=answered")
    assert "No question matches these filters" in page(asked, "/traces?text=zebra")


def test_long_lists_are_paginated(asked: House) -> None:
    """The next page goes on where this one ends."""
    for number in range(55):
        asked.search(f"question {number} about days of leave")

    first = page(asked, "/traces")
    second = page(asked, "/traces?before=7")

    assert 'href="/traces?before=7"' in first
    assert re.findall(r'href="/traces/(\d+)"', second) == [
        str(n) for n in range(6, 0, -1)
    ]
    assert "Next page" not in second


def test_the_funnel_shows_counts_that_sum(asked: House) -> None:
    """Recalled and added are selected and dropped, in sum and stage by stage."""
    record = asked.search(QUESTION).json()["record"]
    text = page(asked, "/traces/1")

    assert (
        f"{record['recalled']} recalled plus {record['added']} added equals "
        f"{record['selected']} selected plus {record['dropped']} dropped"
    ) in text
    for stage in record["stages"]:
        assert f"{stage['before']} in, {stage['after']} out" in text


def test_every_candidate_shows_its_attributes(asked: House) -> None:
    """Authority, confidence, time horizon, role and type, as far as they are known."""
    asked.add(
        "Employees of the mill have 30 days of leave.",
        type="policy",
        role="metric",
        authority="low",
        confidence=0.0,
        time_horizon="long_term",
    )
    asked.search(QUESTION)

    text = page(asked, "/traces/2")

    for name, value in (
        ("type", "policy"),
        ("role", "metric"),
        ("authority", "low"),
        ("document_confidence", "0"),
        ("time_horizon", "long_term"),
    ):
        assert re.search(rf"<dt>{name}</dt><dd>{value}</dd>", text), name
    assert "<dt>excerpt</dt>" not in text


def test_every_candidate_has_its_way_and_its_signals(asked: House) -> None:
    """Each is an expander with all stages up to its end, and all signals."""
    record = asked.search(QUESTION).json()["record"]
    text = page(asked, "/traces/1")

    for candidate in record["candidates"]:
        assert f'id="{candidate["chunk_id"]}"' in text
    assert text.count("<details") >= len(record["candidates"])
    assert "Calibrated probability that the passage is relevant." in text
    assert "Handbook &lt;1&gt;" in text
    assert "Handbook <1>" not in text


def test_candidates_are_filtered_by_reason_and_state(asked: House) -> None:
    """Only those of the reason are listed; the funnel stays whole."""
    record = asked.search(QUESTION).json()["record"]
    [first, *_] = record["candidates"]
    gone = [c["chunk_id"] for c in record["candidates"] if c["state"] == "dropped"]
    reason = next(
        d["reason"]
        for stage in record["stages"]
        for d in stage["decisions"]
        if d["verdict"] == "dropped"
    )

    dropped = page(asked, f"/traces/1?reason={reason}")
    chosen = page(asked, "/traces/1?state=selected")

    assert f'id="{first["chunk_id"]}"' not in dropped
    assert any(f'id="{chunk}"' in dropped for chunk in gone)
    assert f'id="{first["chunk_id"]}"' in chosen
    assert not any(f'id="{chunk}"' in chosen for chunk in gone)


def test_why_not_names_stage_numbers_and_the_smallest_change(asked: House) -> None:
    """The form is answered on the same page, and the audit hears of it."""
    browser = visitor(asked, "reader")
    form = browser.get("/traces/1")

    response = browser.send(form, "/traces/1/why-not", {"named": "prices"})

    reported = asked.ask(
        "POST", "/v1/why-not", json={"question": QUESTION, "named": "prices"}
    ).json()
    assert response.status_code == 200
    assert "Prices" in response.text
    change = (reported["changes"] or reported["pairs"])[0]
    assert change["settings"][0]["variable"] in response.text
    assert asked.audit(action="why_not")[-1]["target"] == "prices"


def test_why_not_refuses_what_it_cannot_explain(asked: House) -> None:
    """Nothing named is said beside the field; nothing known is a page of its own."""
    browser = visitor(asked, "reader")
    form = browser.get("/traces/1")

    empty = browser.send(form, "/traces/1/why-not", {"named": " "})
    unknown = browser.send(form, "/traces/1/why-not", {"named": "no-such-thing"})

    assert (empty.status_code, unknown.status_code) == (422, 404)
    assert "Name a document" in empty.text
    assert "no-such-thing" in unknown.text


def test_without_text_the_path_is_shown_and_the_question_asked_for(
    house: House,
) -> None:
    """What happened is kept without a word; why-not wants the same question."""
    house.add("Employees have 28 days of leave a year.", title="Handbook")
    house.add("The pump TW-C235 costs 410 euro.", source_uri="prices")
    name = house.search(QUESTION).headers["kept-trace"]
    browser = visitor(house, "reader")
    form = browser.get(f"/traces/{name}")

    other = {"named": "prices", "question": "something else entirely"}
    wrong = browser.send(form, "/traces/1/why-not", other)
    right = browser.send(
        form, "/traces/1/why-not", {"named": "prices", "question": QUESTION}
    )

    assert "Handbook" in form.text
    assert "From recalled to selected" in form.text
    assert QUESTION not in form.text
    assert "its digest differs" in wrong.text
    assert right.status_code == 200
    assert 'class="absence"' in right.text


def forget_paths(house: House) -> None:
    """Let every trace be as old as those whose paths are no longer kept."""
    house.service.base.last_queries(1)
    with house.service.base.store.database.writing() as connection:
        connection.execute("UPDATE queries SET path = NULL")


def test_a_trace_that_lost_its_path_is_run_again_or_says_what_is_kept(
    house: House,
) -> None:
    """Older traces keep counts only; with text they are run again today."""
    house.add("Employees have 28 days of leave a year.", title="Handbook")
    house.search(QUESTION)
    forget_paths(house)

    assert "The path of every candidate is no longer kept" in page(house, "/traces/1")

    house.ask("PATCH", "/v1/settings", json={"policy": {"keep_questions": True}})
    house.search(f"{QUESTION} please")
    forget_paths(house)
    text = page(house, "/traces/2")
    assert "as run today" in text
    assert "identical" in text


def test_traces_of_others_are_not_there(asked: House) -> None:
    """Neither in the list nor by number or id."""
    asked.add("A text of theirs, about valves.", tenant="globex")
    name = asked.search("valves of theirs", tenant="globex").headers["kept-trace"]

    browser = visitor(asked, "reader")

    assert "valves" not in browser.get("/traces").text
    assert browser.get(f"/traces/{name}").status_code == 404
    assert browser.get("/traces/2").status_code == 404


def test_a_gated_question_has_an_empty_funnel(asked: House) -> None:
    """Nothing was searched, and the page says so."""
    name = asked.search("hello").headers["kept-trace"]

    assert "Nothing was searched" in page(asked, f"/traces/{name}")


def test_a_funnel_that_does_not_sum_says_so() -> None:
    """The page would show the fault rather than hide it."""
    path = {
        "recalled": 2,
        "added": 0,
        "selected": 1,
        "dropped": 0,
        "stages": [],
        "candidates": [],
    }

    assert not funnel_of(path, {}).sums
    assert funnel_of({**path, "dropped": 1}, {}).sums
