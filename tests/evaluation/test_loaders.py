"""Judged data comes in whole, or with the place of its fault."""

import json
import os
from collections.abc import Iterable
from pathlib import Path

import pytest

from kept.errors import InputError, UnreadableSourceError
from kept.evaluation.collection import (
    Question,
    load_collection,
    load_questions,
    load_squad,
)
from kept.evaluation.duplicate_report import load_text_pairs

DATA = Path(os.environ.get("KEPT_DATA", "../shared/data"))


def write_lines(path: Path, records: Iterable[object]) -> None:
    path.write_text("".join(json.dumps(r) + "\n" for r in records), "utf-8")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_lines(
        tmp_path / "corpus.jsonl",
        [{"_id": "d1", "title": "T", "text": "one"}, {"_id": 2, "text": "two"}],
    )
    write_lines(
        tmp_path / "queries.jsonl",
        [
            {"_id": "q1", "text": "first?"},
            {"_id": "q2", "text": "no answer?", "answerable": False},
            {"_id": "q3", "text": "of another split?"},
        ],
    )
    (tmp_path / "qrels").mkdir()
    (tmp_path / "qrels" / "test.tsv").write_text(
        "query-id\tcorpus-id\tscore\nq1\td1\t2\nq1\t2\t0\n"
    )
    return tmp_path


def test_folder_gives_passages_questions_and_judgements(folder: Path) -> None:
    """A BEIR folder is read whole; questions of other splits stay out."""
    collection = load_collection(folder)

    assert [(p.id, p.title, p.text) for p in collection.passages] == [
        ("d1", "T", "one"),
        ("2", "", "two"),
    ]
    assert [q.id for q in collection.questions] == ["q1", "q2"]
    assert collection.qrels == {"q1": {"d1": 2, "2": 0}}
    assert [q.id for q in collection.judged] == ["q1"]
    assert [(q.id, q.answerable, q.kind) for q in collection.marked] == [
        ("q1", True, ""),
        ("q2", False, "near"),
    ]
    assert not collection.unknown


def test_without_a_question_marked_nothing_is_said_of_answers(folder: Path) -> None:
    """Judgements alone make no abstention report; beside a refusable one they do."""
    write_lines(folder / "queries.jsonl", [{"_id": "q1", "text": "first?"}])

    assert load_collection(folder).marked == ()


def test_malformed_line_is_named_by_its_number(folder: Path) -> None:
    """Bad JSON says in which line it stands."""
    with (folder / "corpus.jsonl").open("a") as stream:
        stream.write('\n{"_id": "d3", "text": }\n')

    with pytest.raises(
        UnreadableSourceError, match=r"corpus\.jsonl, line 4: not valid"
    ):
        load_collection(folder)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("[1]", "expected a JSON object, met list"),
        ('{"_id": "x"}', "no text under 'text'"),
        ('{"_id": "x", "text": NaN}', "NaN is not a number"),
        ('{"_id": true, "text": "t"}', "no text under '_id'"),
    ],
)
def test_line_of_the_wrong_shape_is_refused(
    folder: Path, line: str, problem: str
) -> None:
    """Each line is an object with an id and a text."""
    (folder / "corpus.jsonl").write_text(line)

    with pytest.raises(UnreadableSourceError, match=problem):
        load_collection(folder)


def test_text_that_is_not_utf_8_is_named_by_its_line(folder: Path) -> None:
    """Mojibake is refused where it begins."""
    (folder / "queries.jsonl").write_bytes(b'{"_id": "a", "text": "ok"}\n"\xff"\n')

    with pytest.raises(UnreadableSourceError, match="line 2: not UTF-8"):
        load_collection(folder)


def test_unknown_ids_are_counted_and_fatal_only_when_strict(folder: Path) -> None:
    """Judgements of missing ids are reported; strict makes them an error."""
    with (folder / "qrels" / "test.tsv").open("a") as stream:
        stream.write("q1\tnope\t1\nq9\td1\t1\nq9\t2\t1\n")

    collection = load_collection(folder)

    assert (collection.unknown.questions, collection.unknown.passages) == (2, 1)
    assert collection.unknown.examples == ("nope", "q9")
    assert collection.qrels == {"q1": {"d1": 2, "2": 0}}
    with pytest.raises(InputError, match="2 judgements name an unknown question and 1"):
        load_collection(folder, strict=True)


def test_duplicate_ids_are_refused(folder: Path) -> None:
    """Twice the same id would make every figure ambiguous."""
    write_lines(folder / "corpus.jsonl", [{"_id": "d1", "text": "x"}] * 2)

    with pytest.raises(InputError, match="passage id 'd1' comes twice"):
        load_collection(folder)


def test_missing_files_and_splits_are_named(folder: Path) -> None:
    """The error says what is missing and what there is."""
    with pytest.raises(UnreadableSourceError, match="choose one of: test"):
        load_collection(folder, split="dev")

    (folder / "queries.jsonl").unlink()

    with pytest.raises(UnreadableSourceError, match=r"no queries\.jsonl"):
        load_collection(folder)


def test_answerable_must_be_a_truth_value(folder: Path) -> None:
    """A word where true or false belongs is refused."""
    write_lines(
        folder / "queries.jsonl", [{"_id": "q", "text": "t", "answerable": "no"}]
    )

    with pytest.raises(UnreadableSourceError, match="answerable is 'no'"):
        load_collection(folder)


def test_equal_intents_are_relevant_where_nothing_is_judged(tmp_path: Path) -> None:
    """CLINC's folder: passages of the question's intent answer it."""
    write_lines(
        tmp_path / "corpus.jsonl",
        [
            {"_id": "t0", "text": "a", "metadata": {"intent": "greet"}},
            {"_id": "t1", "text": "b", "metadata": {"intent": "pay"}},
            {"_id": "t2", "text": "c"},
        ],
    )
    write_lines(
        tmp_path / "queries.jsonl",
        [
            {"_id": "1", "text": "x", "metadata": {"intent": "pay", "in_scope": True}},
            {"_id": "2", "text": "y", "metadata": {"intent": "oos", "in_scope": False}},
        ],
    )

    collection = load_collection(tmp_path)

    assert collection.qrels == {"1": {"t1": 1}}
    assert [q.answerable for q in collection.questions] == [True, False]


def test_folder_without_judgements_or_intents_has_only_marked_questions(
    folder: Path,
) -> None:
    """Without judgements nothing is relevant."""
    (folder / "qrels" / "test.tsv").unlink()
    (folder / "qrels").rmdir()

    collection = load_collection(folder)

    assert collection.qrels == {}
    assert [q.id for q in collection.questions] == ["q2"]


def test_question_judged_only_by_unknown_passages_stays_out(folder: Path) -> None:
    """Without a known judgement there is nothing to measure."""
    (folder / "qrels" / "test.tsv").write_text("q3 0 nope 1\nq1 0 d1 1\n")

    assert list(load_collection(folder).qrels) == ["q1"]


def test_squad_marks_impossible_questions_as_on_topic(tmp_path: Path) -> None:
    """SQuAD 2: each paragraph is a passage, impossible questions have no answer."""
    answer = {"text": "France", "answer_start": 0}
    questions = [
        {"id": "a", "question": "Where?", "answers": [answer, answer]},
        {"id": "b", "question": "Why?", "answers": [], "is_impossible": True},
    ]
    paragraph = {"context": "France it is.", "qas": questions}
    path = tmp_path / "dev.json"
    path.write_text(json.dumps({"data": [{"title": "N", "paragraphs": [paragraph]}]}))

    collection = load_collection(path)

    assert collection.qrels == {"a": {"p0": 1}}
    assert [(q.answerable, q.kind, q.answers) for q in collection.questions] == [
        (True, "", ("France",)),
        (False, "on_topic", ()),
    ]


def test_file_that_is_not_squad_is_refused(tmp_path: Path) -> None:
    """The error says what was expected."""
    path = tmp_path / "x.json"
    path.write_text("[]")

    with pytest.raises(UnreadableSourceError, match="not a SQuAD 2 file"):
        load_squad(path)


def test_questions_of_another_set_are_far_and_unanswerable(folder: Path) -> None:
    """Probes join as unanswerable, and judged questions become answerable."""
    (folder / "other.jsonl").write_text('{"question": "moon?", "answer": ["1972"]}\n')
    [probe] = load_questions(folder / "other.jsonl")

    collection = load_collection(folder).probed([probe])

    assert probe == Question(id="1", text="moon?", answers=("1972",))
    assert [(q.id, q.answerable, q.kind) for q in collection.marked] == [
        ("q1", True, ""),
        ("q2", False, "near"),
        ("probe:1", False, "far"),
    ]


def test_limited_questions_depend_on_ids_alone(folder: Path) -> None:
    """The same questions are chosen in whatever order they stand."""
    records = [{"_id": f"q{i}", "text": "?", "answerable": True} for i in range(50)]
    write_lines(folder / "queries.jsonl", records)
    first = load_collection(folder).limited(5)
    write_lines(folder / "queries.jsonl", reversed(records))
    second = load_collection(folder).limited(5)

    assert len(first.questions) == 5
    assert {q.id for q in first.questions} == {q.id for q in second.questions}


def test_fingerprint_changes_with_a_single_grade(folder: Path) -> None:
    """Two collections with the same fingerprint hold the same."""
    before = load_collection(folder).fingerprint
    assert load_collection(folder).fingerprint == before

    (folder / "qrels" / "test.tsv").write_text("q1 0 d1 1\n")

    assert load_collection(folder).fingerprint != before


def test_text_pairs_carry_label_or_similarity(tmp_path: Path) -> None:
    """A pair says whether, or how much, its texts are the same."""
    path = tmp_path / "pairs.jsonl"
    write_lines(
        path,
        [
            {"first": "a", "second": "b", "duplicate": False},
            {"path": "p", "old_text": "a", "new_text": "a", "jaccard5": 1},
        ],
    )

    pairs = load_text_pairs(path)

    assert [(p.id, p.duplicate, p.similarity) for p in pairs] == [
        ("1", False, None),
        ("p", None, 1.0),
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "no pairs"),
        ('{"first": "a", "second": "b", "duplicate": 1}', "duplicate is 1"),
        ('{"first": "a", "second": "b", "similarity": "x"}', "similarity is 'x'"),
    ],
)
def test_bad_text_pairs_are_refused(tmp_path: Path, text: str, problem: str) -> None:
    """The error says what stood there."""
    path = tmp_path / "pairs.jsonl"
    path.write_text(text)

    with pytest.raises(InputError, match=problem):
        load_text_pairs(path)


@pytest.mark.evaluation_data
@pytest.mark.parametrize(
    ("name", "passages", "judged", "unanswerable"),
    [
        ("scifact", 5183, 300, 0),
        ("nfcorpus", 3633, 323, 0),
        ("squad2_dev", 646, 2910, 3168),
        ("clinc150_retrieval", 15000, 4500, 1000),
    ],
)
def test_real_collections_load_whole(
    name: str, passages: int, judged: int, unanswerable: int
) -> None:
    """The sets that people use are read without loss."""
    if not (DATA / name).is_dir():
        pytest.skip(f"no {name} under {DATA}; set KEPT_DATA to the evaluation data")

    collection = load_collection(DATA / name)

    assert len(collection.passages) == passages
    assert len(collection.judged) == judged
    assert sum(q.answerable is False for q in collection.questions) == unanswerable
