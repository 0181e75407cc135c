"""Reading: every source gives drafts, and errors in their place."""

import os
from pathlib import Path
from typing import Any

import pytest

from kept.errors import InputError, UnreadableSourceError
from kept.text.draft import Draft, DraftPiece
from kept.text.readers.files import ReadOptions, read_bytes, read_path, walk


def only(items: Any) -> Draft:  # noqa: ANN401 -- any reading
    [draft] = items
    assert isinstance(draft, Draft), draft
    return draft


def error_of(items: Any) -> str:  # noqa: ANN401 -- any reading
    [error] = items
    assert isinstance(error, UnreadableSourceError), error
    return str(error)


def test_markdown_declares_its_fields(tmp_path: Path) -> None:
    """Front matter fills the draft; the body stays as it is."""
    file = tmp_path / "a.md"
    file.write_text("---\ntype: memo\ntags: [x, y]\nowner: Jo\n---\n# Head\n\nBody\n")

    draft = only(read_path(file))

    assert draft == Draft(
        text="# Head\n\nBody\n",
        title="Head",
        source_uri=file.as_posix(),
        type="memo",
        tags=("x", "y"),
        metadata={"owner": "Jo"},
    )


@pytest.mark.parametrize("name", ["a.md.meta.yaml", "a.meta.yml", "a.md.meta.json"])
def test_a_sidecar_goes_over_front_matter_and_options_over_both(
    tmp_path: Path, name: str
) -> None:
    """The later word counts, whether YAML or JSON."""
    (tmp_path / "a.md").write_text("---\ntype: memo\nrole: metric\n---\nBody")
    (tmp_path / name).write_text('{"type": "grant", "authority": "high"}')

    draft = only(
        read_path(
            tmp_path / "a.md",
            options=ReadOptions(fields={"authority": "low", "tags": "x"}),
        )
    )

    assert (draft.type, draft.role) == ("grant", "metric")
    assert (draft.authority, draft.tags) == ("low", ("x",))


@pytest.mark.parametrize(
    ("name", "data", "title"),
    [
        ("a.txt", b"\n\n  First line \nSecond", "First line"),
        ("a.txt", b"x" * 500, "x" * 120),
        ("a.md", b"Intro\n\n## Heading\n\nText", "Heading"),
        ("a.md", b"```\n# code\n```\n\nUnder\n=====\n", "Under"),
        ("a.html", b"<title>T</title><p>p</p><h2>H</h2>", "T"),
        ("a.html", b"<title>T</title><p>p</p>", "T"),
        ("a.html", b"<p>Only a paragraph</p>", "Only a paragraph"),
    ],
)
def test_title_is_declared_or_found(name: str, data: bytes, title: str) -> None:
    """First heading, then the page's title, then the first line."""
    assert only(read_bytes(data, name)).title == title


def test_the_name_of_a_file_does_not_matter(tmp_path: Path) -> None:
    """The same bytes under two names are the same draft but for the source."""
    drafts = [only(read_bytes(b"Same text", name)) for name in ("a.txt", "b.txt")]

    assert drafts[0].source_uri != drafts[1].source_uri
    assert drafts[0].title == drafts[1].title == "Same text"
    assert drafts[0].metadata == drafts[1].metadata == {}


def test_json_lines_give_a_draft_each_and_errors_in_place(tmp_path: Path) -> None:
    """A bad line is reported with its number; the other lines are read."""
    file = tmp_path / "rows.jsonl"
    file.write_bytes(
        b'\xef\xbb\xbf{"_id": "d1", "title": "One", "text": "first", "year": 2020}\n'
        b"{broken\n"
        b"\n"
        b'{"id": 7, "body": "second", "labels": {"sleep": 2, "tired": null}}\n'
        b'"just text"\n'
        b'{"title": "nothing else"}\n'
        b'{"text": "x", "authority": "supreme"}\n'
        b'{"text": "half \\ud800"}\n'
        b'{"text": "\xff"}\n'
        b'{"chunks": ["a", "b"]}\n'
        b'{"text": "x", "team": "half \\ud800"}\n'
        b'{"text": "x", "count": ' + b"1" * 5000 + b"}"
    )

    items = list(read_path(file))

    drafts = [item for item in items if isinstance(item, Draft)]
    assert [d.text for d in drafts] == ["first", "second", "a\n\nb"]
    assert [d.source_uri.partition("#")[2] for d in drafts] == ["d1", "7", "10"]
    assert drafts[0].metadata == {"year": 2020}
    assert drafts[1].labels == {"sleep": 2, "tired": None}
    assert drafts[2].pieces == (DraftPiece("a"), DraftPiece("b"))
    errors = [str(item) for item in items if isinstance(item, InputError)]
    assert [e.removeprefix(f"{file.as_posix()}:").split(":")[0] for e in errors] == [
        "2",
        "5",
        "6",
        "7",
        "8",
        "9",
        "11",
        "12",
    ]
    assert [isinstance(item, Draft) for item in items[:3]] == [True, False, True]


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_tables_give_a_draft_for_each_row(delimiter: str) -> None:
    """The delimiter is that of the header; quoted cells may hold anything."""
    lines = [
        ["id", "Text", "tags", "confidence", "note"],
        ["r1", f'"one{delimiter} two\nthree"', "", "0.5", "n"],
        ["r2", "four", "x", "", ""],
        ["r3", "five", "", "", "", "too many"],
        ["r4", "", "", "", "no text"],
        ["r5", "six"],
    ]
    data = "\r\n".join(delimiter.join(cells) for cells in lines).encode()

    items = list(read_bytes(data, "t.csv"))

    drafts = [item for item in items if isinstance(item, Draft)]
    assert [d.text for d in drafts] == [f"one{delimiter} two\nthree", "four", "six"]
    assert [d.source_uri for d in drafts] == ["t.csv#r1", "t.csv#r2", "t.csv#r5"]
    assert (drafts[0].confidence, drafts[0].metadata) == (0.5, {"note": "n"})
    assert drafts[1].tags == ("x",)
    problems = [i.problem for i in items if isinstance(i, UnreadableSourceError)]
    assert problems == ["6 cells under 5 headings", "no text"]


def test_a_row_without_a_text_column_becomes_its_cells() -> None:
    """A price list is a text too: each cell under its heading."""
    draft = only(read_bytes(b"part,price,note\nTW-C235,410,\n", "t.csv"))

    assert draft.text == "part: TW-C235\nprice: 410"
    assert draft.metadata == {"part": "TW-C235", "price": "410"}


@pytest.mark.parametrize(
    ("name", "data", "problem"),
    [
        ("a.txt", b"", "empty"),
        ("a.txt", b" \n ", "empty"),
        ("a.jsonl", b"", "empty"),
        ("a.csv", b"", "empty"),
        ("a.pdf", b"", "empty"),
        ("a.txt", b"\0\1\2" * 50, "binary"),
        ("a.pdf", b"%PDF-1.7 nonsense", "broken"),
        ("a.docx", b"nonsense", "Word file"),
        ("a.html", b"<script>only()</script>", "no text"),
        ("a.md", b"---\ntitle: only\n---\n", "no text"),
    ],
)
def test_bad_input_gives_one_clear_error(name: str, data: bytes, problem: str) -> None:
    """Nothing is raised, nothing is read wrong."""
    assert problem in error_of(read_bytes(data, name))


def test_a_missing_file_and_a_bad_sidecar_are_errors_too(tmp_path: Path) -> None:
    """Whatever goes wrong comes out of the same door."""
    (tmp_path / "a.txt").write_text("text")
    (tmp_path / "a.txt.meta.yaml").write_text("confidence: 7")
    (tmp_path / "b.txt").write_text("text")
    (tmp_path / "b.txt.meta.json").write_text("{")

    assert "cannot be opened" in error_of(read_path(tmp_path / "none.txt"))
    assert "confidence" in error_of(read_path(tmp_path / "a.txt"))
    assert "b.txt.meta.json" in error_of(read_path(tmp_path / "b.txt"))


@pytest.mark.parametrize(
    ("name", "content_type", "data", "text"),
    [
        ("stdin", "", b"plain", "plain"),
        ("stdin", "", b"<!DOCTYPE html><p>page", "page"),
        ("stdin", "", b"---\ntype: memo\n---\nbody", "body"),
        ("page", "text/html; charset=windows-1252", b"<p>f\xfcr", "für"),
        ("x.bin", "text/plain; charset=koi8-r", "привет".encode("koi8-r"), "привет"),
    ],
)
def test_format_is_detected_by_type_name_or_first_bytes(
    name: str, content_type: str, data: bytes, text: str
) -> None:
    """Standard input and uploads have no ending."""
    assert only(read_bytes(data, name, content_type=content_type)).text == text


def test_the_encoding_is_kept_and_can_be_stated() -> None:
    """An uncertain file is read once its encoding is stated."""
    data = "naïve čas".encode("cp1250", "replace")

    draft = only(read_bytes(data, "a.txt", options=ReadOptions(encoding="cp1250")))

    assert draft.encoding == "cp1250"


def test_folders_are_walked_in_order_and_the_rest_is_reported(tmp_path: Path) -> None:
    """Names decide the order; hidden files and sidecars are passed over."""
    for name in ("b.txt", "a/z.md", "a/y.csv", ".hidden.txt", ".git/x.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    for name in ("b.txt.meta.yaml", "c.png", "Makefile", "B.TXT"):
        (tmp_path / name).touch()
    (tmp_path / "a" / "loop").symlink_to(tmp_path)
    skipped: list[str] = []

    found = list(
        walk(
            [tmp_path, tmp_path / "c.png"],
            on_skip=lambda path, reason: skipped.append(f"{path.name}: {reason}"),
        )
    )

    names = [path.relative_to(tmp_path).as_posix() for path in found]
    assert names == ["B.TXT", "a/y.csv", "a/z.md", "b.txt", "c.png"]
    assert skipped == [
        "Makefile: no ending is no known format",
        "loop: a link back to a folder above it",
        "c.png: .png is no known format",
    ]


@pytest.mark.skipif(os.name == "nt", reason="names are text there")
def test_a_name_that_is_no_text_is_spelled_out(tmp_path: Path) -> None:
    """A store of text can hold any name."""
    file = tmp_path / os.fsdecode(b"caf\xe9.txt")
    file.write_text("text")

    draft = only(read_path(file))

    assert draft.source_uri.endswith("caf\\xe9.txt")


@pytest.mark.evaluation_data
def test_real_pages_are_read(evaluation_data: Path) -> None:
    """Manuals in a dozen languages come out as text with a title, scripts gone."""
    for path in sorted((evaluation_data / "awkward" / "html").iterdir()):
        draft = only(read_path(path))
        assert draft.title
        assert "function(" not in draft.text[:2000]


@pytest.mark.evaluation_data
def test_real_markdown_is_read(evaluation_data: Path) -> None:
    """Every page with front matter gives a draft titled by it."""
    pages = sorted((evaluation_data / "mdn").rglob("*.md"))[:300]
    for page in pages:
        draft = only(read_path(page))
        assert draft.title
        assert not draft.text.startswith("---")
