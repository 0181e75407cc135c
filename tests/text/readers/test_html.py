"""HTML: clean text with its blocks apart."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kept.text.readers.html import read_page

# Entities, and elements whose content is text to a browser too.
RAW = re.compile(r"&|textarea|xmp|plaintext|noembed|noframes|title", re.IGNORECASE)
LIVE = re.compile(r"<(?:script|img|svg|iframe|body|input|a|object)\b", re.IGNORECASE)


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<p>one</p><p>two</p>", "one\n\ntwo"),
        ("one<br>two", "one\ntwo"),
        ("<h1>Title</h1>text<h3>Sub</h3>more", "# Title\n\ntext\n\n### Sub\n\nmore"),
        ("<b>bo</b>ld and <i>italic</i>", "bold and italic"),
        ("<ul><li>one<li>two</ul>", "- one\n- two"),
        (
            "<table><tr><th>a</th><th>b</th></tr>\n<tr><td>1</td><td>2</td></tr></table>",
            "a | b\n1 | 2",
        ),
        ("<p>a  lot\n of   space</p>", "a lot of space"),
        ("<pre>def f():\n    return 1</pre>", "def f():\n    return 1"),
        ("5 &lt; 6 &amp; caf&eacute; &#x6771;", "5 < 6 & café 東"),
        ("before<script>alert(1)</script> after", "before after"),
        ("<style>p{color:red}</style>seen", "seen"),
        ("<meta charset=utf-8>after meta", "after meta"),
        ("<link rel=x>after link<hr>after rule", "after link\n\nafter rule"),
        ("<head><meta name=a>kept</head><body>too", "kepttoo"),
        ("<p onclick='evil()'>quiet</p>", "quiet"),
        ("<!-- hidden -->shown", "shown"),
        ("<unknown>inside</unknown>", "inside"),
        ("", ""),
    ],
)
def test_text_of_a_page(html: str, text: str) -> None:
    """Blocks become paragraphs, headings are marked, scripts are gone."""
    assert read_page(html).text == text


def test_title_and_first_heading_are_separate() -> None:
    """The title in the head is no part of the text."""
    page = read_page("<title>In  head</title><p>x</p><h2>First</h2><h1>Second</h1>")

    assert (page.title, page.heading) == ("In head", "First")
    assert "In head" not in page.text


def test_a_page_nested_without_end_is_read() -> None:
    """Depth is no way to break the reader."""
    assert read_page("<div>" * 5000 + "deep" + "</div>" * 5000).text == "deep"


@given(st.text())
def test_any_string_can_be_read_as_a_page(html: str) -> None:
    """Broken markup is still some page."""
    text = read_page(html).text

    assert text == text.strip()


@given(st.text(st.characters(exclude_characters="<>&", exclude_categories=["C"])))
def test_text_without_markup_keeps_its_words(text: str) -> None:
    """Nothing is lost on the way through the sanitiser."""
    assert read_page(text).text.split() == text.split()


@pytest.mark.evaluation_data
def test_payloads_leave_no_markup_that_runs(evaluation_data: Path) -> None:
    """Tags of a payload are gone; what it spells with entities is text, not markup."""
    payloads = evaluation_data / "xss" / "xss-payload-list.txt"
    for payload in payloads.read_text("utf-8").splitlines():
        page = read_page(f"<p>before</p>{payload}<p>after")
        assert "before" in page.text
        if not RAW.search(payload):
            assert not LIVE.search(page.text), payload
