"""kept references: from labelled transcripts to the block for a prompt."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from commands import ROOT, kept
from kept.few_shot import examples as examples_few_shot
from kept.few_shot.questionnaire import phq8

BRIEF = """
name: Mood
prefix: M_
scores: {0: fine, 1: low}
items:
  Mood: {about: how the person feels, keywords: [sad, happy]}
"""


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the store in the test's own folder, on the hash embedder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KEPT_STORE", str(tmp_path / "references"))
    monkeypatch.setenv("KEPT_EMBEDDER", "hash")


@pytest.fixture
def built() -> None:
    """Build the references that come with Kept."""
    build(examples_few_shot.INTERVIEWS)


def build(*arguments: object, code: int = 0) -> dict[str, str]:
    """Build references and return what became of each participant."""
    ran = kept("references", "build", *arguments, "--json")
    assert ran.code == code, ran
    return {
        line["source_uri"].removeprefix("transcript:"): line["status"]
        for line in ran.lines
    }


def write(name: str, *rows: dict[str, Any]) -> Path:
    """Write rows as JSON lines."""
    path = Path(name)
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


def chosen(**evidence: object) -> Any:  # noqa: ANN401 -- JSON
    """Return the references for some evidence, with their record."""
    path = write("evidence.json", {"evidence": evidence})
    return kept("references", "for", path, "--json").json


def test_references_are_built_and_built_again_without_work() -> None:
    """The same transcripts are known; nothing is embedded twice."""
    first, second = (build(examples_few_shot.INTERVIEWS) for _ in range(2))

    names = [f"R0{n}" for n in range(1, 7)]
    assert first == dict.fromkeys(names, "created")
    assert second == dict.fromkeys(names, "unchanged")


def test_people_read_who_became_a_reference() -> None:
    """One line each, and how many in the end."""
    ran = kept("references", "build", examples_few_shot.INTERVIEWS)

    assert ran.out.splitlines()[0] == "created    R01, 3 chunks"
    assert ran.out.splitlines()[-1] == "6 created"


def test_the_block_for_a_prompt_is_printed(built: None) -> None:
    """Items in their order, each reference under its score."""
    ran = kept("references", "for", examples_few_shot.EVIDENCE)

    heads = [line for line in ran.out.splitlines() if line.startswith("(PHQ8_")]
    assert ran.out.startswith("<Reference Examples>\n\n(PHQ8_NoInterest Score: ")
    assert ran.out.endswith("\n\n</Reference Examples>\n")
    assert [head.split()[0][6:] for head in heads] == [
        item
        for item in phq8().keys
        if item in ("NoInterest", "Sleep", "Tired", "Failure", "Concentrating")
        for _ in range(2)
    ]


def test_the_record_has_every_candidate_of_every_item(built: None) -> None:
    """All references are weighed for each item, not only the nearest few."""
    shown = chosen(Sleep="I wake at four every night", Tired=["no energy at all"])

    assert set(shown["items"]) == {"Sleep", "Tired"}
    for item in shown["items"].values():
        assert item["record"]["recalled"] == 22
        assert item["record"]["selected"] + item["record"]["dropped"] == 22
    assert shown["text"].count("Score:") == 4


def test_too_little_evidence_is_reported(built: None) -> None:
    """An item that is not searched for does not vanish in silence."""
    path = write("evidence.json", {"Sleep": "I wake at four", "Tired": "yes"})

    ran = kept("references", "for", path)

    assert ran.err == "kept: too little evidence to search for: Tired\n"
    assert "PHQ8_Tired" not in ran.out


def test_nothing_left_prints_nothing(
    built: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The block is left out, not printed empty."""
    monkeypatch.setenv("EMBEDDING_MIN_REFERENCE_SIMILARITY", "1.0")

    ran = kept("references", "for", examples_few_shot.EVIDENCE)

    assert (ran.code, ran.out) == (0, "")


def test_a_participant_of_the_evaluation_is_refused_as_reference() -> None:
    """Split integrity is checked when references are built."""
    split = Path("split.txt")
    split.write_text("# held out\nR02\n r05  # twice\n")

    ran = kept(
        *("references", "build", examples_few_shot.INTERVIEWS),
        *("--evaluation-split", split),
    )

    assert "evaluation split are among the references: R02, R05" in ran.complaint(3)


def test_a_participant_is_no_reference_for_themselves(built: None) -> None:
    """Split integrity is checked again when references are chosen."""
    evidence = {"participant": "r02", "evidence": {"Sleep": "I wake at three"}}
    path = write("evidence.json", evidence)

    ran = kept("references", "for", path)

    assert "are among the references: R02" in ran.complaint(3)


def test_who_is_taken_out_of_the_transcripts_is_let_go(built: None) -> None:
    """After a build the references are those of its transcripts and no others."""
    rows = examples_few_shot.INTERVIEWS.read_text().splitlines()
    fewer = Path("fewer.jsonl")
    fewer.write_text("\n".join(rows[1:]))

    statuses = build(fewer)
    shown = chosen(Sleep="Like a log, seven hours and I am up before the alarm.")

    assert statuses["R01"] == "deleted"
    assert shown["items"]["Sleep"]["record"]["recalled"] == 19


def test_a_label_that_changes_makes_another_version(built: None) -> None:
    """The text is the same, but what is shown for it is not."""
    lines = examples_few_shot.INTERVIEWS.read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    rows[1]["labels"]["Sleep"] = 1
    night = "I wake at three nearly every night and then I lie awake"

    before = chosen(Sleep=night)["entries"][0]["label"]
    statuses = build(write("changed.jsonl", *rows))
    after = chosen(Sleep=night)["entries"][0]["label"]

    assert (before, after) == (3, 1)
    assert statuses == {f"R0{n}": "unchanged" for n in range(1, 7)} | {
        "R02": "superseded"
    }


def test_chunks_may_come_cut_labelled_and_tagged() -> None:
    """Per-chunk labels go before the participant's, and tags are supplied."""
    rows = {
        "participant": "P1",
        "labels": {"Sleep": 1, "Tired": 2},
        "chunks": [
            {"text": "I sleep all day long", "labels": {"Sleep": 3}, "tags": ["Tired"]},
            "I sleep at night only",
        ],
    }
    build(write("cut.jsonl", rows))

    shown = chosen(Sleep="I sleep all day long")

    assert [e["label"] for e in shown["entries"]] == [3, 1]
    [first, _] = shown["items"]["Sleep"]["selected"]
    assert first["tags"] == ["Tired", "Sleep"]


def test_tags_narrow_the_references(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Keywords from a file tag whole words; the filter keeps tagged chunks only."""
    tags = Path("tags.yaml")
    tags.write_text("Sleep: [lying awake]\n")
    chunks = ["I sleep so badly these days", "lying awake again and again"]
    row = {"participant": "P1", "labels": {"Sleep": 2}, "chunks": chunks}
    build(write("rows.jsonl", row), "--tags", tags)
    monkeypatch.setenv("EMBEDDING_ENABLE_ITEM_TAG_FILTER", "true")

    shown = chosen(Sleep="I sleep so badly these days")

    assert [row["text"] for row in shown["items"]["Sleep"]["selected"]] == chunks[1:]


def test_any_questionnaire_works() -> None:
    """A YAML of items and scores is all that is needed."""
    Path("mood.yaml").write_text(BRIEF)
    row = {"participant": "P1", "labels": {"Mood": 1}, "lines": ["I am sad today"]}
    build(write("rows.jsonl", row), "--questionnaire", "mood.yaml")
    evidence = write("evidence.json", {"Mood": "so very sad"})

    ran = kept("references", "for", evidence, "--questionnaire", "mood.yaml")

    assert ran.out == (
        "<Reference Examples>\n\n(M_Mood Score: 1)\nI am sad today\n\n"
        "</Reference Examples>\n"
    )


def test_another_questionnaire_than_that_of_the_build_is_refused(
    built: None,
) -> None:
    """Labels of one questionnaire are not shown as those of another."""
    Path("mood.yaml").write_text(BRIEF)
    evidence = write("evidence.json", {"Mood": "so very sad"})

    ran = kept("references", "for", evidence, "--questionnaire", "mood.yaml")

    assert "were built for PHQ-8" in ran.complaint(3)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"participant": "P1", "lines": []}, "participant 'P1' says nothing"),
        ({"participant": "P1", "lines": ["x"], "labels": {"Nap": 1}}, "no item 'Nap'"),
        ({"participant": "P1", "lines": ["x"], "labels": {"Sleep": 4}}, "label 4"),
        ({"lines": ["x"]}, "needs a participant"),
    ],
)
def test_what_cannot_be_a_reference_is_refused_before_anything_is_stored(
    row: dict[str, Any], said: str
) -> None:
    """A build is all of the transcripts or none."""
    ran = kept("references", "build", write("rows.jsonl", row))

    assert said in ran.complaint(3)
    assert not Path("references").exists()


def test_files_that_are_not_there_are_named() -> None:
    """Each with what was expected."""
    assert "no file 'gone.jsonl'" in kept(
        "references", "build", "gone.jsonl"
    ).complaint(3)
    build(examples_few_shot.INTERVIEWS)
    assert "gone.json" in kept("references", "for", "gone.json").complaint(3)
    assert "gone.txt" in kept("references", "extract", "gone.txt").complaint(3)
    split = ("--evaluation-split", "gone.txt")
    ran = kept("references", "build", examples_few_shot.INTERVIEWS, *split)
    assert "gone.txt" in ran.complaint(3)


@pytest.mark.parametrize("text", ["[1]", "{", '{"evidence": 3}'])
def test_evidence_of_another_shape_is_refused(text: str, built: None) -> None:
    """The message shows what it looks like."""
    Path("evidence.json").write_text(text)

    assert "evidence.json" in kept("references", "for", "evidence.json").complaint(3)


def test_a_store_without_references_says_how_to_make_them() -> None:
    """Ordinary documents are no references."""
    Path("note.txt").write_text("I wake at four every night.")
    kept("ingest", "note.txt")

    ran = kept("references", "for", examples_few_shot.EVIDENCE)

    assert "'kept references build' makes them" in ran.complaint(3)


def test_documents_beside_references_are_never_chosen(built: None) -> None:
    """Only what was labelled is an example, however near a note may be."""
    Path("note.txt").write_text("I wake at four every night.")
    kept("ingest", "note.txt")

    shown = chosen(Sleep="I wake at four every night.")

    assert shown["items"]["Sleep"]["record"]["recalled"] == 22


def test_quotes_are_found_by_keywords_without_a_model() -> None:
    """Every quote is a line of the transcript, and feeds 'references for'."""
    lines = ["How are the nights?", "I cannot fall asleep.", "No energy either."]
    Path("T07.txt").write_text("\n".join(lines))

    shown = kept("references", "extract", "T07.txt", "--json").json
    output = kept("references", "extract", "T07.txt").out

    assert shown["participant"] == "T07"
    assert shown["evidence"]["Sleep"] == ["I cannot fall asleep."]
    assert "Sleep\n    I cannot fall asleep.\n" in output


def test_an_embedder_of_another_dimension_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """EMBEDDING_DIMENSION states how long vectors must be."""
    monkeypatch.setenv("EMBEDDING_DIMENSION", "7")

    ran = kept("references", "build", examples_few_shot.INTERVIEWS)

    assert "EMBEDDING_DIMENSION is 7" in ran.complaint(2)


def test_the_demo_shows_the_whole_way() -> None:
    """Invented interviews in, a block for a prompt out, and how it was chosen."""
    ran = kept("references", "demo", "--store", "demo")

    assert ran.code == 0
    assert "</Reference Examples>" in ran.out
    assert "Sleep: label_required 22 → 22, top_k 22 → 2" in ran.out


def test_two_sources_of_scores_are_one_too_many() -> None:
    """Either a file or the model."""
    ran = kept(
        *("references", "build", examples_few_shot.INTERVIEWS),
        *("--scores", "s.json", "--score-with-llm"),
    )

    assert "exclude each other" in ran.complaint(3)


def test_the_guide_shows_what_happens() -> None:
    """Every command of the page runs on its own files and prints what it shows."""
    page = (ROOT / "docs" / "how-to" / "few-shot-references.md").read_text("utf-8")
    interviews, evidence = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    Path("interviews.jsonl").write_text(interviews)
    Path("evidence.json").write_text(evidence)
    Path("held-out.txt").write_text("T01\n")
    Path("T01.txt").write_text("I wake at four and that is the end of the night")

    for command, shown in re.findall(
        r"```console\n\$ kept (.*?)\n(.*?)```", page, re.DOTALL
    ):
        ran = kept(*command.partition(" > ")[0].split())
        beginning, more, _ = shown.partition("…")
        assert ran.code == 0
        assert ran.out.startswith(beginning)
        assert more or not shown or ran.out == shown
