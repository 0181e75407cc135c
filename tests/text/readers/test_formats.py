"""Formats: PDF and front matter."""

from pathlib import Path

import pytest

from kept.errors import UnreadableSourceError
from kept.text.readers.formats import parse_yaml, read_pdf, split_front_matter


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
