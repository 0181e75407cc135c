"""The pages of the ledger: what became of each text, differences, and undo."""

from browsing import visitor
from house import House

from kept.doors.http.pages.ledger import measured
from kept.ingest.duplicates import NOTED_MISSES

TEXT = (
    "Employees have 28 days of paid leave a year. Unused days may be carried over "
    "until the end of March. Leave is requested in the portal two weeks ahead.\n"
    "Who falls ill during leave gets those days back, with a certificate."
)


def test_the_ledger_shows_rule_and_similarity(house: House) -> None:
    """A reused text names its rule, its similarity and the document it became."""
    house.add(TEXT, title="Leave", source_uri="one")
    near = house.add(f"{TEXT} Truly.", source_uri="two")
    house.add(TEXT, source_uri="three")

    page = visitor(house, "reader").get("/ledger").text

    assert near["rule"] == "prefix"
    assert "same opening" in page
    assert f"{near['similarity']:.3f}" in page
    assert "exact copy" in page
    assert page.count(">reused</span>") == 2
    assert f'href="/ledger/aliases/{near["alias_id"]}"' in page


def test_the_ledger_names_what_was_declared_otherwise(house: House) -> None:
    """The same text under another title is described, and may be looked for."""
    house.add(TEXT, title="Leave", source_uri="one")
    house.add(TEXT, title="Days off", source_uri="one", metadata={"<b>": 1})

    page = visitor(house).get("/ledger?status=described").text

    assert ">described</span>" in page
    assert "changed: title, metadata.&lt;b&gt;" in page


def test_the_ledger_is_narrowed_by_status(house: House) -> None:
    """Only lines of one kind, or a page that says there are none."""
    house.add(TEXT, title="Leave", source_uri="one")
    house.add(TEXT, source_uri="two")
    browser = visitor(house)

    reused = browser.get("/ledger?status=reused").text

    assert ">created</span>" not in reused
    assert ">reused</span>" in reused
    assert "No receipt is failed" in browser.get("/ledger?status=failed").text
    assert ">created</span>" in browser.get("/ledger?status=<x>").text


def test_a_narrowed_ledger_goes_on_page_by_page(house: House) -> None:
    """Each line is on exactly one page, also behind a filter."""
    for number in range(52):
        house.add(
            f"Paragraph {number}: {'xyz' * (number + 1)}.", source_uri=f"n{number}"
        )
        house.add(
            f"Paragraph {number}: {'xyz' * (number + 1)}.", source_uri=f"m{number}"
        )
    browser = visitor(house)

    first = browser.get("/ledger?status=created").text
    onwards = first.split('rel="next"')[0].rsplit('href="', 1)[1].split('"')[0]
    second = browser.get(onwards.replace("&amp;", "&")).text

    assert first.count(">created</span>") == 50
    assert second.count(">created</span>") == 2
    assert ">reused</span>" not in first + second


def test_an_empty_ledger_says_so(house: House) -> None:
    """Before the first document there is a sentence instead of an empty table."""
    assert "The ledger is empty" in visitor(house).get("/ledger").text


def test_a_reused_text_stands_beside_its_document(house: House) -> None:
    """What differs is marked on both sides, what is the same is not."""
    house.add(TEXT, title="Leave", source_uri="one")
    near = house.add(f"{TEXT} Printed from <intranet>.", title="Copy", source_uri="two")

    page = visitor(house, "reader").get(f"/ledger/aliases/{near['alias_id']}").text

    assert "<mark> Printed from &lt;intranet&gt;.</mark>" in page
    assert "The document that is kept" in page
    assert "(fewer than 32 needed)" in page
    assert "Undo" not in page


def test_only_a_bound_that_was_passed_is_shown_as_needed() -> None:
    """A few characters at the end of a short text are a trifle without the other."""
    reported = {"delta_chars": 13, "under": 32, "whole_text_above": 0.95}

    short = dict(measured({**reported, "whole_text": 0.92}))
    long = dict(measured({**reported, "whole_text": 0.99}))

    assert short["Characters more"] == "13 (fewer than 32 needed)"
    assert short["Whole texts alike"] == "0.92"
    assert long["Whole texts alike"] == "0.99 (more than 0.95 needed)"


def test_undo_sets_a_text_apart(house: House) -> None:
    """After undo the text is a document, and the ledger knows that it was reused."""
    house.add(TEXT, title="Leave", source_uri="one")
    near = house.add(f"{TEXT} Truly.", title="Copy", source_uri="two")
    path = f"/ledger/aliases/{near['alias_id']}"
    browser = visitor(house, "writer")

    sent = browser.send(browser.get(path), f"{path}/undo", {})

    page = browser.get(sent.headers["location"]).text
    assert "a document of its own now" in page
    assert "undone" in page
    assert browser.get(path).status_code == 404
    assert "Copy" in browser.get("/documents").text
    assert house.audit(action="alias.undo")


def test_undo_of_an_exact_copy_forgets_it(house: House) -> None:
    """An exact copy cannot be a document of its own, and the page says what it did."""
    house.add(TEXT, title="Leave", source_uri="one")
    same = house.add(TEXT, source_uri="two")
    path = f"/ledger/aliases/{same['alias_id']}"
    browser = visitor(house, "writer")

    sent = browser.send(browser.get(path), f"{path}/undo", {})

    assert "exact copy is forgotten" in browser.get(sent.headers["location"]).text


def test_a_near_miss_is_shown(house: House) -> None:
    """A text that was nearly reused says of which document, and why it was not."""
    house.add(TEXT, title="Leave of 28", source_uri="one")
    other = house.add(TEXT.replace("28", "30"), source_uri="two")

    page = visitor(house).get("/ledger").text

    assert other["evidence"]["near_misses"]
    assert "1 near miss" in page
    assert "but differs in: " in page


def test_of_many_near_misses_the_page_shows_some_and_counts_all(house: House) -> None:
    """A text of a template that many share does not fill the page."""
    for number in range(12):
        house.add(TEXT.replace("28", str(40 + number)), source_uri=f"{number}")

    page = visitor(house).get("/ledger").text

    assert "11 near misses" in page
    assert f"<li>{11 - NOTED_MISSES} more</li>" in page
    assert page.count("but differs in: ") == sum(
        min(number, NOTED_MISSES) for number in range(12)
    )
