"""DOCX: what Word shows, and nothing that it does not."""

import io
import time
from pathlib import Path

import docx
import pytest
from word_files import cell, paragraph, run, word_file, zipped

from kept.errors import UnreadableSourceError
from kept.text.readers.docx import read_docx


def text_of(body: str, **parts: str) -> str:
    return read_docx(word_file(body, **parts), "a.docx")[0]


def made_by_a_library() -> bytes:
    document = docx.Document()
    document.core_properties.title = "Handbook"
    document.add_heading("Leave", level=1)
    document.add_paragraph("Thirty days a year.")
    table = document.add_table(rows=2, cols=2)
    for slot, text in zip(
        (one for row in table.rows for one in row.cells), "abcd", strict=True
    ):
        slot.text = text
    table.cell(1, 0).merge(table.cell(1, 1))
    document.add_heading("Costs", level=2)
    document.add_paragraph("None.")
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


def test_a_word_file_is_read_in_its_order() -> None:
    """Headings are marked, tables stand where they stand, merged cells count once."""
    text, title, notes = read_docx(made_by_a_library(), "a.docx")

    assert (title, notes) == ("Handbook", ())
    assert text == (
        "# Leave\n\nThirty days a year.\n\n| a | b |\n|---|---|\n| c d |  |\n\n"
        "## Costs\n\nNone."
    )


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (
            f"<w:sdt><w:sdtContent>{paragraph('4711 euro.')}</w:sdtContent></w:sdt>",
            "4711 euro.",
        ),
        (
            paragraph(
                "Notice is ",
                "<w:del><w:r><w:delText>two</w:delText></w:r></w:del>",
                f"<w:ins>{run('three')}</w:ins>",
                " weeks.",
            ),
            "Notice is three weeks.",
        ),
        (
            paragraph("It ", f"<w:moveFrom>{run('not')}</w:moveFrom>", "is ")
            + paragraph(f"<w:moveTo>{run('so')}</w:moveTo>"),
            "It is\n\nso",
        ),
        (
            paragraph("One ", properties="<w:rPr><w:del/></w:rPr>")
            + paragraph("line."),
            "One line.",
        ),
        (paragraph("a", run("hidden", "<w:vanish/>"), "b"), "ab"),
        (paragraph(run("ten", "<w:strike/>"), " twelve"), "~~ten~~ twelve"),
        (paragraph("10", run("6", '<w:vertAlign w:val="superscript"/>')), "10^6"),
        (
            paragraph("a", "<w:r><w:br/><w:t>b</w:t><w:tab/><w:t>c</w:t></w:r>"),
            "a\nb c",
        ),
        (
            paragraph(f"<w:fldSimple>{run('field')}</w:fldSimple>")
            + paragraph(f"<w:smartTag>{run('tag')}</w:smartTag>"),
            "field\n\ntag",
        ),
        (
            "<w:sdt><w:sdtPr><w:showingPlcHdr/></w:sdtPr><w:sdtContent>"
            f"{paragraph('Click here to enter text.')}</w:sdtContent></w:sdt>"
            + paragraph("Text."),
            "Text.",
        ),
        (
            paragraph(
                "Boxed:",
                "<w:r><w:pict><w:txbxContent>"
                + paragraph("in a box")
                + "</w:txbxContent></w:pict></w:r>",
            ),
            "Boxed:\n\nin a box",
        ),
        (
            paragraph(
                '<w:r><w:drawing><w:docPr descr="A closed valve"/></w:drawing></w:r>'
            ),
            "![A closed valve]",
        ),
    ],
)  # fmt: skip
def test_text_is_what_word_shows(body: str, text: str) -> None:
    """Controls, insertions, fields and boxes are text; what was deleted is not."""
    assert text_of(body) == text


def test_headers_footers_and_notes_are_read() -> None:
    """Each header and footer once, page numbers not, notes below their paragraphs."""
    body = (
        paragraph("Paid", '<w:r><w:footnoteReference w:id="2"/></w:r>', " at once.")
        + paragraph("The end.")
        + '<w:sectPr><w:headerReference w:type="default" r:id="header1"/>'
        '<w:footerReference w:type="default" r:id="footer1"/></w:sectPr>'
    )

    text = text_of(
        body,
        header1=paragraph("Contract 4711/B"),
        footer1=paragraph("Page 1 of 12") + paragraph("Signed in Kiel"),
        footnotes=f'<w:footnote w:id="2">{paragraph("Within 30 days.")}</w:footnote>',
    )

    assert text == (
        "Contract 4711/B\n\nPaid[^2] at once.\n\n[^2]: Within 30 days.\n\nThe end.\n\n"
        "Signed in Kiel"
    )


NUMBERING = """
<w:abstractNum w:abstractNumId="0">
  <w:lvl w:ilvl="0"><w:start w:val="1"/><w:numFmt w:val="decimal"/>
    <w:lvlText w:val="%1."/></w:lvl>
  <w:lvl w:ilvl="1"><w:start w:val="1"/><w:numFmt w:val="decimal"/>
    <w:lvlText w:val="%1.%2"/></w:lvl>
  <w:lvl w:ilvl="2"><w:start w:val="1"/><w:numFmt w:val="lowerLetter"/>
    <w:lvlText w:val="(%3)"/></w:lvl>
  <w:lvl w:ilvl="3"><w:start w:val="4"/><w:numFmt w:val="upperRoman"/>
    <w:lvlText w:val="%4"/></w:lvl>
</w:abstractNum>
<w:abstractNum w:abstractNumId="1">
  <w:lvl w:ilvl="0"><w:numFmt w:val="bullet"/><w:lvlText w:val="o"/></w:lvl>
</w:abstractNum>
<w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num>
<w:num w:numId="2"><w:abstractNumId w:val="1"/></w:num>
<w:num w:numId="3"><w:abstractNumId w:val="0"/>
  <w:lvlOverride w:ilvl="0"><w:startOverride w:val="7"/></w:lvlOverride></w:num>
"""
STYLES = """
<w:style w:styleId="H1"><w:name w:val="heading 1"/>
  <w:pPr><w:numPr><w:numId w:val="1"/></w:numPr></w:pPr></w:style>
<w:style w:styleId="Clause"><w:name w:val="Clause"/><w:basedOn w:val="H1"/></w:style>
<w:style w:styleId="Loop"><w:name w:val="Loop"/><w:basedOn w:val="Loop"/></w:style>
<w:style w:styleId="T1"><w:name w:val="toc 1"/></w:style>
"""


def item(text: str, number: int, level: int) -> str:
    inner = f'<w:ilvl w:val="{level}"/><w:numId w:val="{number}"/>'
    return paragraph(text, properties=f"<w:numPr>{inner}</w:numPr>")


def styled(text: str, style: str) -> str:
    return paragraph(text, properties=f'<w:pStyle w:val="{style}"/>')


def test_numbers_of_lists_are_those_that_word_shows() -> None:
    """Levels, letters and Roman numbers; a heading has its number, too."""
    body = (
        styled("Terms", "H1")
        + item("Payment", 1, 1)
        + item("by card", 1, 2)
        + item("in cash", 1, 2)
        + item("coins", 1, 3)
        + item("Delivery", 1, 1)
        + styled("Law", "Clause")
        + item("once", 2, 0)
        + item("again", 3, 0)
        + styled("Loose", "Loop")
    )

    assert text_of(body, numbering=NUMBERING, styles=STYLES) == (
        "# 1. Terms\n\n  1.1 Payment\n    (a) by card\n    (b) in cash\n"
        "      IV coins\n"
        "  1.2 Delivery\n\n# 2. Law\n\n- once\n7. again\n\nLoose"
    )


def test_a_table_of_contents_is_left_out_and_said_to_be() -> None:
    """Its lines are the headings once more."""
    body = styled("Terms 1", "T1") + styled("Terms", "H1") + paragraph("Text.")

    text, _, notes = read_docx(word_file(body, styles=STYLES), "a.docx")

    assert text == "# Terms\n\nText."
    assert notes == ("table of contents left out",)


def test_merged_cells_of_a_table_keep_their_columns() -> None:
    """A cell over rows is repeated; deleted rows are gone, inserted ones are not."""
    restart, goes_on = '<w:vMerge w:val="restart"/>', "<w:vMerge/>"
    both = cell("both", '<w:gridSpan w:val="2"/>')
    header, inserted, deleted = (
        f"<w:trPr><w:{name}/></w:trPr>" for name in ("tblHeader", "ins", "del")
    )
    rows = (
        f"<w:tr>{header}{cell('Plan')}{cell('Price')}{cell('Seats')}</w:tr>"
        f"<w:tr>{cell('Small', restart)}{cell('12')}{cell('')}</w:tr>"
        f"<w:tr>{inserted}{cell('', goes_on)}{cell('')}{cell('3')}</w:tr>"
        f"<w:tr>{deleted}{cell('Old')}{cell('1')}{cell('1')}</w:tr>"
        '<w:tr><w:trPr><w:gridBefore w:val="1"/></w:trPr>'
        f"{both}</w:tr>"
    )

    assert text_of(f"<w:tbl>{rows}</w:tbl>").splitlines() == [
        "| Plan | Price | Seats |",
        "|---|---|---|",
        "| Small | 12 |  |",
        "| Small |  | 3 |",
        "|  | both |  |",
    ]


@pytest.mark.parametrize("data", [b"no zip", b"PK\x03\x04 cut short"])
def test_a_broken_word_file_is_refused(data: bytes) -> None:
    """What is no archive is no Word file."""
    with pytest.raises(UnreadableSourceError, match="Word file"):
        read_docx(data, "a.docx")


@pytest.mark.parametrize(
    "files",
    [
        {"hello.txt": "hello"},
        {"_rels/.rels": "<a><b"},
        {"_rels/.rels": "<!DOCTYPE x [<!ENTITY a 'b'>]><x>&a;</x>"},
    ],
)
def test_an_archive_that_is_no_word_file_is_refused(files: dict[str, str]) -> None:
    """A ZIP file with another ending is not taken for DOCX, nor are entities read."""
    with pytest.raises(UnreadableSourceError, match="broken"):
        read_docx(zipped(files), "a.docx")


WIDE = cell("deep", '<w:gridSpan w:val="100000000"/>') + cell("b")
TALL = f"<w:tr>{cell('deep', '<w:vMerge/>') * 3}</w:tr>"
LISTED = '<w:numPr><w:numId w:val="9"/></w:numPr>'
TAGGED = "<w:smartTag>" * 100 + run("deep") + "</w:smartTag>" * 100


@pytest.mark.parametrize(
    "body",
    [
        f"<w:tbl><w:tr>{WIDE}</w:tr><w:tr>{cell('c')}</w:tr></w:tbl>",
        f"<w:tbl>{TALL * 2_000}</w:tbl>",
        f"<w:p>{TAGGED}</w:p>",
        paragraph("deep", properties=LISTED) * 20_000,
    ],
    ids=["wide", "tall", "tagged", "listed"],
)
def test_time_grows_with_the_size_of_a_file(body: str) -> None:
    """No span and no nesting takes more than a moment."""
    start = time.thread_time()

    assert "deep" in text_of(body)

    assert time.thread_time() - start < 5


def test_controls_nested_without_end_are_refused() -> None:
    """Depth is no way to break the reader."""
    body = "<w:sdt><w:sdtContent>" * 20_000 + "</w:sdtContent></w:sdt>" * 20_000

    with pytest.raises(UnreadableSourceError, match="broken"):
        text_of(body)


@pytest.mark.evaluation_data
def test_real_word_files_are_read(evaluation_data: Path) -> None:
    """Every file of a test suite is read, and those with text have some."""
    texts = {
        path.stem: read_docx(path.read_bytes(), path.name)[0]
        for path in (evaluation_data / "awkward" / "docx").glob("*.docx")
    }

    assert texts["num-having-numbering-part"].startswith("1. Paragraph having")
    assert texts["hdr-header-footer"].startswith("Header for section-1")
    assert "[awesome hyperlink](http://yahoo.com/)" in texts["par-hyperlinks"]
