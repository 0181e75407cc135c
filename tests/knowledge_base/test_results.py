"""The Python door: paths in, results with attributes that display themselves."""

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
from kept.errors import InputError, NotFoundError, SettingsError
from kept.knowledge_base.base import KnowledgeBase
from kept.knowledge_base.results import SearchResult
from kept.search.render import found_json
from kept.search.retrieve import Request

QUESTION = "How many days of leave do employees have?"
HOSTILE = "<script>alert(1)</script>"


@pytest.fixture
def base(tmp_path: Path) -> Iterator[KnowledgeBase]:
    """Return a knowledge base filled from a folder."""
    folder = tmp_path / "handbook"
    folder.mkdir()
    (folder / "leave.md").write_text(
        "# Leave\n\nEmployees have 28 days of leave, five more after ten years.\n"
    )
    (folder / "hostile.txt").write_text(f"Leave days and {HOSTILE} of employees.\n")
    (folder / "invoices.txt").write_text("Invoice INV-49302 was paid in March.\n")
    with kept.open(tmp_path / "kb", create=True, embedder="hash") as opened:
        opened.ingest(folder)
        yield opened


def test_a_folder_is_ingested_by_its_name(tmp_path: Path) -> None:
    """A path, a string or a list of either; the receipts count themselves."""
    one, other = tmp_path / "one.txt", tmp_path / "other.txt"
    one.write_text("The heron fishes at dawn by the old mill.")
    other.write_text("The dipper walks under water in the cold stream.")

    where = str(tmp_path / "kb")

    with kept.open(where, create=True, embedder="hash") as base:
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

    with kept.open(tmp_path / "kb", create=True, embedder="hash") as base:
        found = base.ingest(tmp_path.glob("*.txt"))

    assert repr(found) == "2 texts: 2 created"


def test_a_file_that_is_missing_raises_before_anything_is_stored(
    base: KnowledgeBase, tmp_path: Path
) -> None:
    """A typing error is an error, and not one failed receipt among many."""
    there = tmp_path / "there.txt"
    there.write_text("The heron fishes at dawn by the old mill.")
    before = len(base.documents())

    with pytest.raises(InputError, match=r"there is no file or folder '.*typo\.txt'"):
        base.ingest([there, tmp_path / "typo.txt"])

    assert len(base.documents()) == before


@pytest.mark.parametrize("handed", [None, b"one.txt", [3], [Path(), b"b"]])
def test_what_is_no_name_is_refused(base: KnowledgeBase, handed: Any) -> None:  # noqa: ANN401 -- whatever is given
    """Nothing is passed over in silence."""
    with pytest.raises(InputError, match="was submitted; expected the name"):
        base.ingest(handed)


@pytest.mark.parametrize("folder", [None, b"kb", 3])
def test_a_folder_that_is_no_path_is_refused(
    folder: Any,  # noqa: ANN401 -- whatever is given
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A variable that is not set makes no folder called None."""
    monkeypatch.chdir(tmp_path)

    with pytest.raises(SettingsError, match=r"the path is .*; expected a folder"):
        kept.open(folder, embedder="hash")
    assert not list(tmp_path.iterdir())


def test_a_path_without_a_knowledge_base_is_opened_only_to_create_one(
    tmp_path: Path,
) -> None:
    """A typing error makes no empty knowledge base that answers nothing."""
    typo = tmp_path / "typo"

    with pytest.raises(InputError, match=r"there is no knowledge base .*create=True"):
        kept.open(typo, embedder="hash")
    assert not typo.exists()

    with kept.open(typo, create=True, embedder="hash") as kb:
        kb.add("The heron fishes at dawn by the old mill.")
    with kept.open(typo, embedder="hash") as kb:
        assert len(kb.documents()) == 1


def test_a_passage_has_what_a_program_needs_as_attributes(tmp_path: Path) -> None:
    """Text, title, source, relevance and metadata; the text is its ``str``."""
    text = "Employees have 28 days of leave a year."
    with kept.open(tmp_path / "kb", create=True, embedder="hash") as kb:
        [receipt] = kb.add(
            text, title="Leave", source_uri="hr/leave", metadata={"year": 2025}
        )
        [passage] = kb.search(QUESTION)

    assert (passage.text, passage.title, passage.source) == (text, "Leave", "hr/leave")
    assert (str(passage), passage.document_id) == (text, receipt.document_id)
    assert passage.metadata == {"year": 2025}
    assert passage.relevance is not None
    assert 0.0 < passage.relevance <= 1.0
    assert passage.id in repr(passage)
    assert passage.to_json()["chunk_id"] == passage.id


def test_a_result_prints_its_passages_and_nothing_of_the_record(
    base: KnowledgeBase,
) -> None:
    """``print`` gives what a person reads: some lines, not the whole record."""
    found = base.search(QUESTION)
    asked = base.ask(QUESTION)
    refused = base.search("Who won the world cup final in football?")

    assert str(found).startswith("[1] ")
    assert found[0].text in str(found)
    assert len(str(found)) < sum(len(p.text) for p in found) + 200 * len(found)
    assert str(asked).startswith(asked.text)
    assert len(repr(asked)) < 200
    assert asked.citations
    assert asked.citations[0].title in asked._repr_html_()
    assert str(refused) == refused.refused.message if refused.refused else False


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({"metadata": {"team": "hr"}}, ["Leave"]),
        ({"metadata": {"team": "sales"}}, []),
        ({"tags": ["leave"], "none_of": [{"metadata": {"team": "sales"}}]}, ["Leave"]),
    ],
)
def test_filters_may_be_a_plain_dict(
    filters: dict[str, Any], found: list[str], tmp_path: Path
) -> None:
    """They read as the JSON of the HTTP API does."""
    with kept.open(tmp_path / "kb", create=True, embedder="hash") as kb:
        kb.add(
            "Employees have 28 days of leave a year.",
            title="Leave",
            tags=["leave"],
            metadata={"team": "hr"},
        )

        assert [p.title for p in kb.search(QUESTION, filters=filters)] == found


def test_a_filter_that_is_no_filter_says_where_metadata_belongs(
    base: KnowledgeBase,
) -> None:
    """The likeliest mistake is a key of the metadata at the top."""
    with pytest.raises(InputError, match=r"no filter 'team'.*\{\"metadata\": \{"):
        base.search(QUESTION, filters={"team": "hr"})


def test_documents_are_listed_updated_and_deleted(tmp_path: Path) -> None:
    """A new declaration keeps the vectors; a new text replaces the document."""
    with kept.open(tmp_path / "kb", create=True, embedder="hash") as kb:
        kb.add(
            "Employees have 28 days of leave a year.",
            title="Leave",
            source_uri="hr/leave",
            tags=["leave"],
            metadata={"year": 2024, "draft": True},
        )
        [stored] = kb.documents()
        described = kb.update(
            stored.document.id, metadata={"year": 2025, "draft": None}
        )
        [after] = kb.documents()
        replaced = kb.update(
            stored.document.id, text="Employees have 30 days of leave a year."
        )
        [newest] = kb.documents()
        found = kb.search(QUESTION, filters={"tags": ["leave"]})
        kb.delete(newest.document.id)
        left = kb.documents()

    assert described.status == "described"
    assert dict(after.document.metadata) == {"year": 2025}
    assert after.document.title == "Leave"
    assert replaced.status == "superseded"
    assert [p.text for p in found] == ["Employees have 30 days of leave a year."]
    assert found[0].metadata == {"year": 2025}
    assert left == []


def test_an_update_refuses_to_cut_a_document_otherwise(tmp_path: Path) -> None:
    """Chunks that came already cut are not cut again behind the caller's back."""
    with kept.open(tmp_path / "kb", create=True, embedder="hash") as kb:
        [receipt] = kb.add("One is odd. Two is even.", pieces=("One is odd.", "Two"))

        with pytest.raises(InputError, match="was cut in another way"):
            kb.update(str(receipt.document_id), title="Figures")


def test_pruning_retires_what_is_gone(tmp_path: Path) -> None:
    """By the folder that was walked, or by a list of the sources that are left."""
    folder = tmp_path / "handbook"
    folder.mkdir()
    (folder / "one.txt").write_text("The heron fishes at dawn by the old mill.")
    (folder / "two.txt").write_text("The dipper walks under water in the stream.")
    with kept.open(tmp_path / "kb", create=True, embedder="hash") as kb:
        kb.ingest(folder)
        (folder / "two.txt").unlink()
        kept_all = kb.ingest(folder)
        pruned = kb.ingest(folder, prune=True)
        kb.add("Invoices are paid within 30 days.", source_uri="crm/1")
        kb.add("Refunds take one week after that.", source_uri="crm/2")
        by_list = kb.prune("crm/", keep={"crm/2"})
        left = {one.document.source_uri for one in kb.documents()}

    assert [r.status for r in kept_all] == ["unchanged"]
    assert [r.status for r in pruned] == ["unchanged", "deleted"]
    assert [(r.status, r.source_uri) for r in by_list] == [("deleted", "crm/1")]
    assert left == {"crm/2", str(folder / "one.txt")}


def test_an_empty_prefix_prunes_nothing(base: KnowledgeBase) -> None:
    """All sources begin with it, which nobody means."""
    with pytest.raises(InputError, match="the prefix is empty"):
        base.prune("")


def test_a_selection_reads_as_a_sentence(base: KnowledgeBase) -> None:
    """The question, and what is cited for it."""
    found = base.search(QUESTION)

    assert repr(found).startswith(f"{len(found)} passages for {QUESTION!r}: ")
    assert "Leave" in repr(found)


def test_a_refusal_is_false_and_says_why(base: KnowledgeBase) -> None:
    """Nothing to cite is nothing to count on."""
    found = base.search("Who won the world cup final in football?")

    assert not found
    assert len(found) == 0
    assert repr(found).endswith(": nothing_relevant")
    assert "Nothing to cite" in found._repr_html_()
    assert "refused: nothing_relevant" in str(found.explain())


def test_it_is_the_same_answer_as_through_every_other_door(base: KnowledgeBase) -> None:
    """What shows itself is the found thing itself."""
    shown = base.search(QUESTION)
    plain = base.rerun(Request(question=QUESTION))

    as_shown, as_plain = shown.to_json(), found_json(plain)
    as_shown.pop("timings")
    as_plain.pop("timings")
    assert json.dumps(as_shown) == json.dumps(as_plain)
    assert [p.id for p in shown] == [c.id for c in plain.selection.candidates]


def test_the_funnel_adds_up_and_is_drawn(base: KnowledgeBase) -> None:
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


def test_one_candidate_is_explained(base: KnowledgeBase) -> None:
    """By its id; an unknown one is refused."""
    found = base.search(QUESTION)

    [chosen, *_] = found
    assert "selected: place 1" in str(found.explain(chosen.id))
    with pytest.raises(NotFoundError):
        found.explain("nobody:0000")


def test_why_not_is_explained_in_sentences(base: KnowledgeBase) -> None:
    """A document is named by its id."""
    [invoice] = [
        stored.document
        for stored in base.store.documents(base.tenant)
        if stored.document.source_uri.endswith("invoices.txt")
    ]

    reported = str(base.why_not(invoice.id, QUESTION))

    assert invoice.id in reported


def test_markup_in_a_passage_is_text(base: KnowledgeBase) -> None:
    """Nothing that was ingested becomes HTML."""
    found = base.search(QUESTION)

    assert any(HOSTILE in passage.text for passage in found)
    assert HOSTILE not in found._repr_html_()
    assert "&lt;script&gt;" in found._repr_html_()


def test_the_terminal_gets_a_table(base: KnowledgeBase) -> None:
    """Relevance as a word, markup as text."""
    stream = StringIO()

    Console(file=stream, width=160).print(base.search(QUESTION))

    assert "good" in stream.getvalue()
    assert HOSTILE in stream.getvalue()


def test_every_candidate_is_a_row(base: KnowledgeBase) -> None:
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


def test_there_are_twins_for_an_event_loop(base: KnowledgeBase, tmp_path: Path) -> None:
    """Search, ask and ingest, each away from the loop."""
    late = tmp_path / "late.txt"
    late.write_text("Parental leave of employees lasts 14 months.")

    async def all_three() -> tuple[SearchResult, str, int]:
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
    example = Path(__file__).parents[2] / "docs" / "examples" / "notebook.py"
    names = runpy.run_path(str(example))

    assert names["looked_at"](tmp_path).endswith("1 selected")
