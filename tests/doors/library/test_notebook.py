"""A knowledge base for people: paths in, answers that show themselves."""

import asyncio
import json
import runpy
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from rich.console import Console

import kept
from kept._runtime import PANDAS, Extra
from kept.doors.library import Base, Selected
from kept.errors import InputError, NotFoundError, SettingsError
from kept.knowledge_base.base import KnowledgeBase
from kept.search.render import found_json

QUESTION = "How many days of leave do employees have?"
HOSTILE = "<script>alert(1)</script>"


@pytest.fixture
def base(tmp_path: Path) -> Iterator[Base]:
    """Return a knowledge base filled from a folder."""
    folder = tmp_path / "handbook"
    folder.mkdir()
    (folder / "leave.md").write_text(
        "# Leave\n\nEmployees have 28 days of leave, five more after ten years.\n"
    )
    (folder / "hostile.txt").write_text(f"Leave days and {HOSTILE} of employees.\n")
    (folder / "invoices.txt").write_text("Invoice INV-49302 was paid in March.\n")
    with kept.open(tmp_path / "kb", embedder="hash") as opened:
        opened.ingest(folder)
        yield opened


def test_a_folder_is_ingested_by_its_name(tmp_path: Path) -> None:
    """A path, a string or a list of either; the receipts count themselves."""
    one, other = tmp_path / "one.txt", tmp_path / "other.txt"
    one.write_text("The heron fishes at dawn by the old mill.")
    other.write_text("The dipper walks under water in the cold stream.")

    where = str(tmp_path / "kb")

    with kept.open(where, embedder="hash") as base:
        first = base.ingest(str(one))
        both = base.ingest([one, other])

    assert repr(first) == "1 text: 1 created"
    assert repr(base) == f"<the knowledge base {where!r} of the tenant 'default'>"
    assert sorted(r.status for r in both) == ["created", "unchanged"]
    assert "one.txt" in both._repr_html_()


def test_names_may_come_one_by_one(tmp_path: Path) -> None:
    """What a glob yields is taken in at once, as a list of it is."""
    (tmp_path / "one.txt").write_text("The heron fishes at dawn by the old mill.")
    (tmp_path / "other.txt").write_text("The dipper walks under water in the stream.")

    with kept.open(tmp_path / "kb", embedder="hash") as base:
        found = base.ingest(tmp_path.glob("*.txt"))

    assert repr(found) == "2 texts: 2 created"


@pytest.mark.parametrize("handed", [None, b"one.txt", [3], [Path("a"), b"b"]])
def test_what_is_no_name_is_refused(base: Base, handed: Any) -> None:  # noqa: ANN401 -- whatever is given
    """Nothing is passed over in silence."""
    with pytest.raises(InputError, match="was handed in; expected the name"):
        base.ingest(handed)


@pytest.mark.parametrize("folder", [None, b"kb", 3])
def test_a_folder_that_is_no_path_is_refused(
    folder: Any,  # noqa: ANN401 -- whatever is given
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A variable that is not set makes no folder called None."""
    monkeypatch.chdir(tmp_path)

    with pytest.raises(SettingsError, match=r"the folder is .*; expected a path"):
        kept.open(folder, embedder="hash")
    assert not list(tmp_path.iterdir())


def test_a_selection_reads_as_a_sentence(base: Base) -> None:
    """The question, and what is cited for it."""
    found = base.search(QUESTION)

    assert repr(found).startswith(f"{len(found)} passages for {QUESTION!r}: ")
    assert "Leave" in repr(found)


def test_a_refusal_is_false_and_says_why(base: Base) -> None:
    """Nothing to cite is nothing to count on."""
    found = base.search("Who won the world cup final in football?")

    assert not found
    assert len(found) == 0
    assert repr(found).endswith(": nothing_relevant")
    assert "Nothing to cite" in found._repr_html_()
    assert "refused: nothing_relevant" in str(found.explain())


def test_it_is_the_same_answer_as_through_every_other_door(base: Base) -> None:
    """What shows itself is the found thing itself."""
    shown = base.search(QUESTION)
    plain = KnowledgeBase.search(base, QUESTION)

    as_shown, as_plain = shown.to_json(), found_json(plain)
    as_shown.pop("timings")
    as_plain.pop("timings")
    assert json.dumps(as_shown) == json.dumps(as_plain)
    assert [p["chunk_id"] for p in shown] == [c.id for c in plain.selection.candidates]


def test_the_funnel_adds_up_and_is_drawn(base: Base) -> None:
    """Recalled and added are selected and dropped, in words and in the picture."""
    found = base.search(QUESTION)
    reported = found.explain()

    selection = found.selection
    total = (
        f"{selection.recalled} recalled + 0 added = "
        f"{len(selection.candidates)} selected + {len(selection.dropped)} dropped"
    )
    assert reported.lines[-1] == total
    drawn = reported._repr_html_()
    assert drawn.startswith("<svg")
    assert drawn.count("<g>") == len(selection.trace) + 1


def test_one_candidate_is_explained(base: Base) -> None:
    """By its id; an unknown one is refused."""
    found = base.search(QUESTION)

    [chosen, *_] = found
    assert "selected: place 1" in str(found.explain(chosen["chunk_id"]))
    with pytest.raises(NotFoundError):
        found.explain("nobody:0000")


def test_why_not_is_explained_in_sentences(base: Base) -> None:
    """A document is named by its id."""
    [invoice] = [
        stored.document
        for stored in base.store.documents(base.tenant)
        if stored.document.source_uri.endswith("invoices.txt")
    ]

    reported = str(base.why_not(invoice.id, QUESTION))

    assert invoice.id in reported


def test_markup_in_a_passage_is_text(base: Base) -> None:
    """Nothing that was ingested becomes HTML."""
    found = base.search(QUESTION)

    assert any(HOSTILE in passage["text"] for passage in found)
    assert HOSTILE not in found._repr_html_()
    assert "&lt;script&gt;" in found._repr_html_()


def test_the_terminal_gets_a_table(base: Base) -> None:
    """Relevance as a percentage, markup as text."""
    stream = StringIO()

    Console(file=stream, width=160).print(base.search(QUESTION))

    assert "%" in stream.getvalue()
    assert HOSTILE in stream.getvalue()


def test_every_candidate_is_a_row(base: Base) -> None:
    """Selected first, each dropped one with its stage and reason."""
    found = base.search(QUESTION)
    frame, table = found.to_pandas(), found.to_arrow()

    selection = found.selection
    assert isinstance(frame, pd.DataFrame)
    assert isinstance(table, pa.Table)
    assert len(frame) == table.num_rows == selection.recalled + selection.added
    assert frame["state"].tolist()[: len(found)] == ["selected"] * len(found)
    dropped = frame[frame["state"] == "dropped"]
    assert dropped["dropped_by"].notna().all()
    assert dropped["reason"].notna().all()
    assert frame.loc[0, "relevance"] == selection.candidates[0].signals["relevance"]


def test_a_missing_extra_is_named_with_its_command() -> None:
    """What to install is said."""
    absent = Extra("frames", "no-such-package-of-ours", "1", "2")

    with pytest.raises(SettingsError, match=r'pip install "kept-rag\[frames\]"'):
        absent.demand()
    PANDAS.demand()


def test_there_are_twins_for_an_event_loop(base: Base, tmp_path: Path) -> None:
    """Search, ask and ingest, each away from the loop."""
    late = tmp_path / "late.txt"
    late.write_text("Parental leave of employees lasts 14 months.")

    async def all_three() -> tuple[Selected, str, int]:
        receipts = await base.aingest(late)
        found = await base.asearch("How long is parental leave of employees?")
        asked = await base.aask("How long is parental leave of employees?")
        return found, asked.answer.text, len(receipts)

    found, text, count = asyncio.run(all_three())

    assert count == 1
    assert found
    assert "14 months" in text


def test_the_example_runs(tmp_path: Path) -> None:
    """The example that the types are checked of does what it says."""
    example = Path(__file__).parents[3] / "docs" / "examples" / "notebook.py"
    names = runpy.run_path(str(example))

    assert names["looked_at"](tmp_path).endswith("1 selected")
