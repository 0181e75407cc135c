"""The Ask page without scripts: a form, an answer, its sources, or a refusal."""

from browsing import visitor
from house import House

from kept.doors.http.pages.ask import segments

LEAVE = (
    "Employees have 28 days of paid leave a year. Unused days may be carried over. "
    "Leave is requested in the portal two weeks ahead."
)
QUESTION = "how many days of paid leave do employees have"


def asked(house: House, question: str = QUESTION, **fields: str) -> str:
    """Ask on the page, and return the page that answers."""
    browser = visitor(house, "reader")
    form = browser.get("/ask")
    response = browser.send(form, "/ask", {"question": question, **fields})
    assert response.status_code == 200, response.text
    return str(response.text)


def test_the_first_page_is_ask(house: House) -> None:
    """The root path redirects to Ask."""
    response = visitor(house).get("/")

    assert (response.status_code, response.headers["location"]) == (303, "/ask")


def test_a_link_fills_the_form_in_and_asks_nothing(house: House) -> None:
    """A question in the address is not asked, so a link costs and records nothing."""
    house.add(LEAVE)
    page = visitor(house).get("/ask", params={"question": '<b>"days"'})

    assert "&lt;b&gt;&#34;days&#34;</textarea>" in page.text
    assert not house.audit(action="ask")


def test_without_documents_the_page_says_where_to_begin(house: House) -> None:
    """There is nothing to ask yet: that is said, with the way to the documents."""
    assert "There is nothing to ask about yet" in visitor(house).get("/ask").text


def test_only_titles_are_offered_to_ask_about(house: House) -> None:
    """The id of a text without a title says nothing to a person."""
    nameless = house.add(LEAVE)["document_id"]
    alone = visitor(house).get("/ask").text
    house.add("The pump costs 410 euro.", title="Prices of pumps")

    page = visitor(house).get("/ask").text

    assert nameless not in alone + page
    assert "There is nothing to ask about yet" not in alone
    assert ">Prices of pumps</a>" in page


def test_an_answer_stands_beside_its_sources(house: House) -> None:
    """Every marker leads to a source, which names its document and its relevance."""
    receipt = house.add(LEAVE, title="Leave & absence", source_uri="handbook/leave")

    page = asked(house)

    assert '<a class="cite" href="#source-1" aria-label="Source 1">1</a>' in page
    assert 'id="source-1"' in page
    assert f'href="/documents/{receipt["document_id"]}#chunk-0"' in page
    assert "Leave &amp; absence" in page
    assert 'aria-describedby="relevance-1"' in page
    assert "deserved a footnote under the answer" in page
    assert "does not say whether the passage is true" in page
    assert "Show the whole passage" in page
    assert "Word for word from the sources" in page


def test_the_question_is_audited_like_any_other(house: House) -> None:
    """A question on the page leaves the row that the API leaves."""
    house.add(LEAVE)

    asked(house)

    [row] = house.audit(action="ask")
    assert (row["outcome"], row["principal"]) == ("answered", "readers")


def test_an_answer_leads_to_its_trace(house: House) -> None:
    """What was recorded of a question is one click away."""
    house.add(LEAVE)

    page = asked(house)

    assert '<a href="/traces/' in page
    assert "How this came about" in page


def test_a_refusal_says_what_to_ask_instead(house: House) -> None:
    """Nothing is cited, and the documents that there are show what can be asked."""
    house.add(LEAVE, title="Leave <and> absence")

    page = asked(house, "what does a zeppelin weigh in kilograms")

    assert "No answer, on purpose" in page
    assert "naming the topic" in page
    assert 'href="/ask?question=Leave%20%3Cand%3E%20absence"' in page
    assert 'id="source-1"' not in page


def test_a_question_without_content_gets_guidance(house: House) -> None:
    """A vague question is turned away with what would help."""
    house.add(LEAVE)

    assert "Ask about something specific" in asked(house, "and what about it?")


def test_options_count(house: House) -> None:
    """How many passages and which tag are asked for is part of the question."""
    house.add("In the north employees have 28 days of paid leave.", tags=["north"])
    house.add(
        "Days of paid leave of employees in the south: 26 and no more.",
        tags=["south"],
        title="South",
    )

    one = asked(house, k="1")
    tagged = asked(house, tag="south", extractive="1")

    assert 'id="source-1"' in one
    assert 'id="source-2"' not in one
    assert '#chunk-0">South</a>' in tagged
    assert 'id="source-2"' not in tagged


def test_a_wrong_field_is_said_and_the_question_stays(house: House) -> None:
    """What was typed is not lost when something about it is wrong."""
    browser = visitor(house)
    form = browser.get("/ask")
    for fields in ({"question": "  "}, {"question": QUESTION, "k": "many"}):
        response = browser.send(form, "/ask", fields)

        assert response.status_code == 422
        assert 'aria-invalid="true"' in response.text
        assert fields["question"] in response.text


def test_only_markers_of_sources_become_numbers() -> None:
    """A text is cut at its markers; what leads nowhere stays text."""
    assert segments("a [1] b[2][9]", 2) == ["a ", 1, " b", 2, "[9]"]
    assert segments("[1]", 1) == [1]
    assert segments("none", 3) == ["none"]
