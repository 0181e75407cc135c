"""``kept select``: passages of another retriever, from a file or a pipe."""

import json
from pathlib import Path
from typing import Any

import pytest

from commands import kept

QUESTION = "When does the Leeds office open?"
PASSAGES: list[dict[str, Any]] = [
    {"id": "pump", "text": "The pump TW-C235 costs 410 euro.", "score": 0.1},
    {"id": "leeds", "text": "The Leeds office opens at eight.", "score": 0.4},
    {"text": "The Leeds office opens at  eight.", "score": 0.5},
]


def as_lines(*passages: dict[str, Any]) -> bytes:
    """Return passages as JSON lines."""
    return "".join(json.dumps(one) + "\n" for one in passages).encode()


def test_a_file_and_a_pipe_give_the_same(tmp_path: Path) -> None:
    """The passage that answers is chosen, whatever the other was scored."""
    found = tmp_path / "found.jsonl"
    found.write_bytes(as_lines(*PASSAGES))
    options = ("--scores", "distance", "--embedder", "hash", "--json")

    piped = kept("select", QUESTION, *options, stdin=as_lines(*PASSAGES)).json
    filed = kept("select", QUESTION, found, *options).json

    assert {**piped, "timings": 0} == {**filed, "timings": 0}
    assert [row["chunk_id"] for row in filed["selected"]] == ["leeds"]
    assert filed["record"]["recalled"] == 3


def test_filters_leave_passages_out() -> None:
    """What does not pass is not even in the record."""
    options = ("--scores", "distance", "--embedder", "hash", "--json")
    dated = [{**PASSAGES[0], "metadata": {"year": 2019}}, *PASSAGES[1:2]]

    ran = kept(
        *("select", QUESTION, *options, "--where", "year!=2019"),
        stdin=as_lines(*dated),
    ).json

    assert [row["chunk_id"] for row in ran["selected"]] == ["leeds"]
    assert ran["record"]["recalled"] == 1


def test_people_get_passages_and_the_funnel() -> None:
    """--explain shows each stage and why each passage left."""
    ran = kept(
        *("select", QUESTION, "--scores", "distance", "--embedder", "hash"),
        "--explain",
        stdin=as_lines(*PASSAGES),
    )

    assert ran.code == 0, ran
    assert "The Leeds office opens at eight." in ran.out
    assert "1 dropped repeated" in ran.out
    assert "3 recalled + 0 added = 1 selected + 2 dropped" in ran.out


def test_a_passage_without_title_and_source_is_shown_by_its_id() -> None:
    """What is not known of a passage leaves no gap."""
    ran = kept(
        *("select", QUESTION, "--scores", "distance", "--embedder", "hash"),
        stdin=as_lines(PASSAGES[1]),
    )

    first, _, text = ran.out.splitlines()
    assert first == "[1] (leeds)"
    assert text == "    The Leeds office opens at eight."


def test_a_knowledge_base_weighs_the_words(tmp_path: Path) -> None:
    """--store opens one; its state is in the fingerprint."""
    (tmp_path / "a.txt").write_text("The Leeds office opens at eight.")
    where = ("--store", tmp_path / "kb", "--embedder", "hash")
    assert kept("ingest", tmp_path / "a.txt", *where).code == 0

    found = kept(
        *("select", QUESTION, "--scores", "none", *where, "--json"),
        stdin=as_lines(*PASSAGES),
    ).json

    assert "+" in found["fingerprints"]["knowledge_base"]
    assert found["selected"][0]["chunk_id"] == "leeds"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"nonsense\n", "standard input:1: not JSON"),
        (b'{"text": "a", "rank": 1}\n', "there is no field 'rank' in a passage; known"),
        (b'{"id": "a"}\n', "standard input:1: text: field required"),
        (b'{"text": "a", "score": "high"}\n', "score: input should be a valid number"),
        (b'{"text": "a", "score": NaN}\n', "passage 1 has the score nan"),
        (b'{"text": "a"}\n', "passage 1 has no score"),
    ],
)
def test_a_line_that_is_no_passage_is_named(line: bytes, message: str) -> None:
    """One line on standard error: where, what, and what was expected."""
    ran = kept(
        *("select", QUESTION, "--scores", "rerank", "--embedder", "hash"), stdin=line
    )

    assert message in ran.complaint(3)


def test_the_meaning_of_scores_has_to_be_said() -> None:
    """Nothing is guessed: a distance read as a similarity turns the order around."""
    ran = kept("select", QUESTION, stdin=as_lines(*PASSAGES))

    assert "what the scores mean is not said; expected one of" in ran.complaint(3)
    assert "--scores" in ran.complaint(3)


@pytest.mark.parametrize(
    ("store", "message"),
    [
        ("", "--store (KEPT_STORE) is ''; expected text"),
        ("milvus://127.0.0.1:port/kept", "KEPT_STORE is refused: its port"),
    ],
)
def test_the_store_is_read_as_by_other_commands(store: str, message: str) -> None:
    """An empty one is no folder, and an address is no path."""
    options = ("--scores", "distance", "--embedder", "hash")

    ran = kept("select", QUESTION, *options, "--store", store, stdin=b"")

    assert message in ran.complaint(2)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    """The path and what was expected."""
    ran = kept("select", QUESTION, tmp_path / "none.jsonl", "--scores", "none")

    assert "none.jsonl: it cannot be read" in ran.complaint(3)
