"""HTML: clean text with its blocks apart."""

import re
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kept.text.readers.html import read_page

# Entities, and elements whose content is text to a browser too.
RAW = re.compile(
    r"&|textarea|xmp|plaintext|noembed|noframes|title|alt=.*<", re.IGNORECASE
)
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
            "| a | b |\n|---|---|\n| 1 | 2 |",
        ),
        ("<p>a  lot\n of   space</p>", "a lot of space"),
        ("<pre>def f():\n    return 1</pre>", "```\ndef f():\n    return 1\n```"),
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


@pytest.mark.parametrize(
    ("html", "title"),
    [
        ("<title>In  head</title><p>x</p>", "In head"),
        ("<title>Leave — Handbook</title><main><h1>Leave</h1>x</main>", "Leave"),
        ("<title>Leave | Handbook</title><p>x</p>", "Leave"),
        ("<title>Salt - a history - Site</title><p>x</p>", "Salt - a history"),
        ("<title>MDN | Arrays</title><h2>Arrays</h2><p>x</p>", "Arrays"),
        ("<title>20.8. Logs</title><h2>20.8. Logs</h2><h3>Where</h3>", "20.8. Logs"),
        (
            (
                "<title>Arrays</title><nav><h3>Navigation</h3></nav>"
                "<h1>Arrays<a class=headerlink href=#x>¶</a></h1><p>x</p>"
            ),
            "Arrays",
        ),
        (
            (
                "<meta property=og:site_name content=Site><title>Arrays | Site</title>"
                "<h1>Site</h1><p>x</p>"
            ),
            "Arrays",
        ),
        ("<h3>Only this</h3><p>x</p>", "Only this"),
        ("<p>nothing</p>", ""),
    ],
)
def test_a_page_is_called_what_it_calls_itself(html: str, title: str) -> None:
    """The heading of the content counts, or the title without its site's name."""
    assert read_page(html).title == title


@pytest.mark.parametrize(
    "furniture",
    [
        "<nav><a href=/>Prev</a> | <a href=/>Up</a></nav>",
        "<div role=navigation>Menu of this site</div>",
        "<div class='breadcrumb'>Home > Menu of this site</div>",
        "<header><p>Menu of this site</p></header>",
        "<footer>Report a bug</footer>",
        "<div class=sphinxsidebar><h3>Contents</h3>Menu of this site</div>",
        "<div id=cookie-banner>We use cookies</div>",
        "<aside><a href=/x>Menu</a> <a href=/y>of this site</a></aside>",
        "<ul><li><a href=1>One</a><li><a href=2>Two</a><li><a href=3>Three</a></ul>",
        "<div class=toplang>Languages: <a href=en>en</a> <a href=fr>fr</a></div>",
        "<div hidden>Menu of this site</div>",
        "<p style='display: none'>Menu of this site</p>",
    ],
)
def test_what_leads_around_a_page_is_no_text(furniture: str) -> None:
    """Menus, breadcrumbs, footers, language bars and lists of links are left out."""
    said = "The gate is open from nine to five, and on Saturdays until noon. " * 5
    body = f"{furniture}<h1>Opening hours</h1><p>{said}</p>{furniture}"

    page = read_page(f"<title>Hours</title><body>{body}")

    assert page.text == f"# Opening hours\n\n{said.strip()}"


@pytest.mark.parametrize(
    "content",
    [
        "<section id=cookies><h2>Cookies</h2><p>Bake for ten minutes.</p></section>",
        "<div class=social-security><p>Paid by the employer.</p></div>",
        "<aside class=note><p>Only on Tuesdays.</p></aside>",
        "<article><header><p>By the staff of the house.</p></header></article>",
        "<div class=sidebar><p>" + "A box with a longer text. " * 20 + "</p></div>",
    ],
)
def test_content_that_is_named_like_furniture_stays(content: str) -> None:
    """A name counts only as a whole word, and not against a text of some length."""
    said = "<p>" + "The gate is open from nine to five. " * 20 + "</p>"

    whole = read_page(content).text.split()

    assert whole
    assert set(whole) <= set(read_page(said + content).text.split())


def test_a_page_of_links_keeps_them() -> None:
    """Where there is next to nothing else, lists of links are the content."""
    links = "".join(f"<li><a href={n}.html>Chapter {n}</a>" for n in range(9))

    assert "Chapter 7" in read_page(f"<h1>Contents</h1><ul>{links}</ul>").text


def test_a_page_is_kept_whole_rather_than_lost() -> None:
    """If little would be left, everything is, and the reader says so."""
    menu = "".join(f"<p class=menubar>Item {n} of a long list.</p>" for n in range(40))

    page = read_page(f"<div class=sharing>{menu}</div><p>Short.</p>")

    assert "Item 7" in page.text
    assert page.whole
    assert page.notes == ("kept whole: its main content is 1% of the page",)


def test_the_whole_page_can_be_asked_for() -> None:
    """Menus are text then, and nothing is noted."""
    html = "<nav>Prev</nav><p>" + "Text. " * 60

    assert read_page(html).notes == ("1% of the page left out",)
    assert read_page(html, whole_page=True).text.startswith("Prev\n\nText.")
    assert read_page(html, whole_page=True).notes == ()


def test_a_term_stands_above_its_definition() -> None:
    """What belongs to a definition is indented below it."""
    html = (
        "<dl><dt><code>idle_limit</code> (integer)</dt><dd><p>Ends a session.</p>"
        "<pre>idle_limit = 5</pre></dd><dt>a<dt>b<dd>Both of them.</dl>"
    )

    assert read_page(html).text == (
        "idle_limit (integer)\n: Ends a session.\n\n  ```\n  idle_limit = 5\n  ```"
        "\n\na\nb\n: Both of them."
    )


def test_spans_fill_the_cells_that_they_cover() -> None:
    """A cell over rows is repeated, headings over columns too; the rest stay empty."""
    html = (
        "<table><caption>Prices</caption><thead><tr><th rowspan=2>Plan</th>"
        "<th colspan=2>2025</th></tr><tr><th>Q1</th><th>Q2</th></tr></thead>"
        "<tr><td rowspan=2>Small</td><td>1</td><td>2</td></tr><tr><td>3</td><td></td>"
        "</tr><tr><td colspan=2>Large</td><td>a|b</td></tr></table>"
    )

    assert read_page(html).text.splitlines() == [
        "Prices",
        "| Plan | 2025 Q1 | 2025 Q2 |",
        "|---|---|---|",
        "| Small | 1 | 2 |",
        "| Small | 3 |  |",
        "| Large |  | a\\|b |",
    ]


def test_a_table_that_only_places_blocks_is_no_table() -> None:
    """One cell beside another, with headings in them, are blocks."""
    html = "<table><tr><td><h2>Left</h2>one</td><td><p>right</td></tr></table>"

    assert read_page(html).text == "## Left\n\none\n\nright"


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<a href=other.html>inside</a>", "inside"),
        ("<a href=#below>below</a>", "below"),
        ("<a href=https://a.example/b>docs</a>", "[docs](https://a.example/b)"),
        ("<a href=forms/leave.pdf>the form</a>", "[the form](forms/leave.pdf)"),
        ("<a href=mailto:a@b.example>a@b.example</a>", "a@b.example"),
        ("<a href=mailto:a@b.example>Ann</a>", "[Ann](a@b.example)"),
        ("<a href='javascript:alert(1)'>click</a>", "click"),
        ("<img alt='A valve, closed' src=v.png>", "![A valve, closed]"),
        ("<img alt=logo.png src=logo.png>", ""),
        ("10<sup>6</sup> units<sup><a href=#n>2</a></sup>", "10^6 units2"),
        ("<del>ten</del> twelve", "~~ten~~ twelve"),
        ("<ol start=3><li>c<li value=7>g<li>h</ol>", "3. c\n7. g\n8. h"),
        ("<ul><li>a<ul><li>b</ul><li>c</ul>", "- a\n  - b\n- c"),
        ("<ul><li><p>a</p><p>b</p></ul>", "- a\n\n  b"),
        (
            "<pre class='lang-sql extra'>SELECT 1</pre>",
            "```sql\nSELECT 1\n```",
        ),
        ("<pre>a ``` b</pre>", "````\na ``` b\n````"),
        ("<div class=note><h3>Note</h3>Mind it.</div>", "Note\n\nMind it."),
    ],
)
def test_what_carries_meaning_survives(html: str, text: str) -> None:
    """Targets of links, descriptions, powers, numbers and code are text."""
    assert read_page(html).text == text


@pytest.mark.parametrize(
    "bomb",
    [
        "<div>" * 40_000 + "deep",
        "<ul><li>" * 40_000 + "deep",
        "<table><tr><td>" * 3_000 + "deep",
        "<b><font>" * 40_000 + "deep",
        "<nav class=menu>" * 20_000 + "<main>deep",
        "<div class=content>" * 40_000 + "deep",
        "<table><tr><td colspan=100000000>a<td rowspan=100000000>deep</table>",
        "<table>" + "<tr><td rowspan=9999>deep" * 5_000,
        "<dl><dt>a<dd>" * 20_000 + "deep",
    ],
)
def test_time_grows_with_the_size_of_a_page(bomb: str) -> None:
    """No nesting and no span takes more than a moment."""
    start = time.thread_time()

    assert "deep" in read_page(bomb).text

    assert time.thread_time() - start < 5


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
    """Tags of a payload are gone.

    What it spells with entities or describes an image with is text, not markup.
    """
    payloads = evaluation_data / "xss" / "xss-payload-list.txt"
    for payload in payloads.read_text("utf-8").splitlines():
        page = read_page(f"<p>before</p>{payload}<p>after")
        assert "before" in page.text
        if not RAW.search(payload):
            assert not LIVE.search(page.text), payload
