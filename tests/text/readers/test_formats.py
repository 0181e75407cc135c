"""Formats: PDF, DOCX and front matter."""

import io
import zipfile
from pathlib import Path

import docx
import pytest

from kept.errors import UnreadableSourceError
from kept.text.readers.formats import (
    parse_yaml,
    read_docx,
    read_pdf,
    split_front_matter,
)


def word_file() -> bytes:
    document = docx.Document()
    document.core_properties.title = "Handbook"
    document.add_heading("Leave", level=1)
    document.add_paragraph("Thirty days a year.")
    table = document.add_table(rows=2, cols=2)
    for cell, text in zip(
        (cell for row in table.rows for cell in row.cells), "abcd", strict=True
    ):
        cell.text = text
    table.cell(1, 0).merge(table.cell(1, 1))
    document.add_heading("Costs", level=2)
    document.add_paragraph("None.")
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


def test_a_word_file_is_read_in_its_order() -> None:
    """Headings are marked, tables stand where they stand, merged cells count once."""
    text, title = read_docx(word_file(), "a.docx")

    assert title == "Handbook"
    assert text == ("# Leave\n\nThirty days a year.\n\na | b\nc d\n\n## Costs\n\nNone.")


@pytest.mark.parametrize("data", [b"no zip", b"PK\x03\x04 cut short"])
def test_a_broken_word_file_is_refused(data: bytes) -> None:
    """What is no archive is no Word file."""
    with pytest.raises(UnreadableSourceError, match="Word file"):
        read_docx(data, "a.docx")


def test_an_archive_that_is_no_word_file_is_refused() -> None:
    """A zip file with another ending is not taken for DOCX."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("hello.txt", "hello")

    with pytest.raises(UnreadableSourceError, match="broken"):
        read_docx(out.getvalue(), "a.docx")


@pytest.mark.parametrize("data", [b"%PDF-1.4 cut short", b"no pdf", b"%PDF-"])
def test_a_broken_pdf_is_refused(data: bytes) -> None:
    """The message says what to do."""
    with pytest.raises(UnreadableSourceError, match=r"a.pdf: .*broken.*save it anew"):
        read_pdf(data, "a.pdf")


@pytest.mark.evaluation_data
def test_real_pdfs_give_text_or_a_reason(evaluation_data: Path) -> None:
    """Encrypted files and files without text are rejected by name."""
    outcome: dict[str, str] = {}
    for path in sorted((evaluation_data / "awkward" / "pdf").iterdir()):
        try:
            text, _ = read_pdf(path.read_bytes(), path.name)
            outcome[path.stem] = text[:7]
        except UnreadableSourceError as error:
            outcome[path.stem] = error.problem

    for encrypted in (
        "aes-128",
        "aes-128-m",
        "aes-256",
        "aes-256-m",
        "rc4-40",
        "rc4-128",
    ):
        assert outcome[encrypted] == "this PDF is encrypted"
    assert outcome["base"] == "Secret!"
    assert "no text" in outcome["simple2"]


@pytest.mark.evaluation_data
def test_real_word_files_are_read(evaluation_data: Path) -> None:
    """None of them breaks the reader, blank ones give blank text."""
    for path in sorted((evaluation_data / "awkward" / "docx").iterdir()):
        text, _ = read_docx(path.read_bytes(), path.name)
        assert text == text.strip()


def test_front_matter_is_parsed_and_the_body_is_verbatim() -> None:
    """What follows the second fence is the text, to the character."""
    fields, body = split_front_matter(
        "---\ntitle: A\ntags: [x]\n---\n\n Body\n", "a.md"
    )

    assert fields == {"title": "A", "tags": ["x"]}
    assert body == "\n Body\n"


@pytest.mark.parametrize(
    "text",
    [
        "no fence",
        "---\nnever closed",
        "---\n\nA rule above\n\n---\n",
        "----\na: 1\n----\n",
    ],
)
def test_a_rule_is_no_front_matter(text: str) -> None:
    """A line of dashes may just be a line."""
    assert split_front_matter(text, "a.md") == ({}, text)


def test_broken_front_matter_is_refused() -> None:
    """Declarations are not dropped in silence."""
    with pytest.raises(UnreadableSourceError, match="no YAML"):
        split_front_matter("---\ntitle: a: b: c\n---\nBody", "a.md")


def test_declarations_must_be_a_mapping() -> None:
    """A list declares nothing."""
    with pytest.raises(UnreadableSourceError, match="a list"):
        parse_yaml("- a\n- b", "a.meta.yaml")
    assert parse_yaml("", "a.meta.yaml") == {}
