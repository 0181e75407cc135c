"""A run survives an interrupt, and only a whole one is read as such."""

import json
from pathlib import Path

import pytest

from kept.errors import InputError, UnreadableSourceError
from kept.evaluation.collection import Collection, CollectionPassage, Question
from kept.evaluation.runs import RunWriter, load_run
from kept.evaluation.suite import Ranked, evaluate, plan, ranked_documents
from kept.kernel.record import Decision, Selection, Step, Verdict
from kept.testing.tables import candidates

COLLECTION = Collection(
    name="toy",
    passages=tuple(CollectionPassage(id=d, text=d) for d in "abc"),
    questions=(
        Question(id="1", text="one?", answerable=True),
        Question(id="2", text="two?"),
        Question(id="3", text="three?", answerable=False, kind="far"),
    ),
    qrels={"1": {"a": 1}, "2": {"b": 1, "c": 1}},
)
FOUND = {
    "one?": Ranked(ranking=(("a", 0.9), ("b", 0.5)), confidence=0.9),
    "two?": Ranked(ranking=(("a", 0.9), ("b", 0.9)), confidence=0.4),
    "three?": Ranked(refusal="below_floor", confidence=0.1),
}
PLAN = plan(COLLECTION, measures=["RR", "R@5"], configuration={"k": 2})


def test_every_question_gets_a_record() -> None:
    """Judged questions are measured, the others only noted."""
    seen: list[tuple[int, int]] = []

    run = evaluate(
        COLLECTION, FOUND.__getitem__, PLAN, progress=lambda *n: seen.append(n)
    )

    assert run.means == {"RR": 0.75, "R@5": 0.75}
    assert [(r.correct, r.refusal, r.kind) for r in run.records] == [
        (True, None, ""),
        (True, None, ""),
        (False, "below_floor", "far"),
    ]
    assert [(r.relevant, r.relevant_total) for r in run.records] == [
        (("a",), 1),
        (("b",), 2),
        ((), 0),
    ]
    assert seen == [(1, 3), (2, 3), (3, 3)]
    assert list(run.rankings) == ["1", "2"]


def test_run_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    """File and memory hold the same."""
    run = evaluate(COLLECTION, FOUND.__getitem__, PLAN, out=tmp_path / "r")

    assert load_run(tmp_path / "r") == run
    assert load_run(tmp_path / "r" / "run.jsonl").complete


def test_interrupted_run_goes_on_where_it_stopped(tmp_path: Path) -> None:
    """Questions already answered are not asked again; a torn line is."""
    whole = evaluate(COLLECTION, FOUND.__getitem__, PLAN, out=tmp_path / "whole.jsonl")
    text = (tmp_path / "whole.jsonl").read_bytes()
    path = tmp_path / "torn.jsonl"
    asked: list[str] = []

    def search(question: str) -> Ranked:
        asked.append(question)
        return FOUND[question]

    for length in range(0, len(text) + 1, 7):
        path.write_bytes(text[:length])
        asked.clear()

        run = evaluate(COLLECTION, search, PLAN, out=path)

        assert run == whole
        assert path.read_bytes() == text
        assert len(asked) == 3 - max(0, text[:length].count(b"\n") - 1) or (
            length == len(text)
        )


def test_failing_search_leaves_what_was_done(tmp_path: Path) -> None:
    """An error in the third question keeps the first two."""

    def search(question: str) -> Ranked:
        if question == "three?":
            raise KeyboardInterrupt
        return FOUND[question]

    with pytest.raises(KeyboardInterrupt):
        evaluate(COLLECTION, search, PLAN, out=tmp_path / "r")

    run = load_run(tmp_path / "r")
    assert (len(run.records), run.complete) == (2, False)


def test_other_run_in_the_same_place_is_refused(tmp_path: Path) -> None:
    """Results of two configurations never mix in one file."""
    evaluate(COLLECTION, FOUND.__getitem__, PLAN, out=tmp_path / "r")

    with pytest.raises(InputError, match="its configuration, measures differ"):
        evaluate(COLLECTION, FOUND.__getitem__, plan(COLLECTION), out=tmp_path / "r")


def test_question_is_written_once(tmp_path: Path) -> None:
    """A second record for the same question is refused."""
    record = evaluate(COLLECTION, FOUND.__getitem__, PLAN).records[0]

    with RunWriter(tmp_path / "r", PLAN) as writer:
        writer.add(record)
        with pytest.raises(InputError, match="already has question '1'"):
            writer.add(record)


@pytest.mark.parametrize(
    ("number", "line", "problem"),
    [
        (0, "{}", "line 1: not the run of a run"),
        (1, "{", "line 2: not the query of a run"),
        (
            1,
            '{"query": {"question_id": 1}}',
            "line 2: question_id is 1; Input should be",
        ),
        (1, '{"query": {"question_id": "1", "x": 1}}', "line 2: x is 1; Unexpected"),
        (1, '{"query": {"question_id": "2"}}', "id '2' comes twice"),
    ],
)
def test_damaged_line_is_named(
    tmp_path: Path, number: int, line: str, problem: str
) -> None:
    """Reading checks every line."""
    evaluate(COLLECTION, FOUND.__getitem__, PLAN, out=tmp_path / "r.jsonl")
    lines = (tmp_path / "r.jsonl").read_text().splitlines()
    lines[number] = line
    (tmp_path / "r.jsonl").write_text("\n".join(lines) + "\n")

    with pytest.raises(InputError, match=problem):
        load_run(tmp_path / "r.jsonl")


def test_confidence_that_is_not_a_number_is_refused(tmp_path: Path) -> None:
    """NaN does not get into a file."""
    found = {q: Ranked(confidence=float("nan")) for q in FOUND}

    with pytest.raises(InputError, match="confidence of question 1 is nan"):
        evaluate(COLLECTION, found.__getitem__, PLAN, out=tmp_path / "r")


def test_missing_empty_and_newer_runs_are_refused(tmp_path: Path) -> None:
    """Each error says what to do."""
    with pytest.raises(InputError, match="No such file"):
        load_run(tmp_path / "nope")
    (tmp_path / "e.jsonl").touch()
    with pytest.raises(InputError, match="the run is empty"):
        load_run(tmp_path / "e.jsonl")
    evaluate(COLLECTION, FOUND.__getitem__, PLAN, out=tmp_path / "n.jsonl")
    text = (tmp_path / "n.jsonl").read_text()
    (tmp_path / "n.jsonl").write_text(text.replace('"format": 1', '"format": 2'))
    with pytest.raises(InputError, match="format 2"):
        load_run(tmp_path / "n.jsonl")


def test_file_is_plain_json_lines(tmp_path: Path) -> None:
    """Other tools can read it."""
    evaluate(COLLECTION, FOUND.__getitem__, PLAN, out=tmp_path / "r.jsonl")

    lines = [json.loads(s) for s in (tmp_path / "r.jsonl").read_text().splitlines()]

    assert [next(iter(line)) for line in lines] == ["run", *["query"] * 3, "end"]
    assert lines[-1] == {"end": {"queries": 3}}


def test_selection_becomes_a_ranking_of_documents_with_its_record() -> None:
    """A document has its best chunk's score, and decisions name documents."""
    x, y, z = candidates("""
        x 0.9 doc=a
        y 0.7 doc=b
        z 0.8 doc=a
    """)
    gone = candidates("g 0.1 doc=c")
    drop = Decision("g", Verdict.DROPPED, "score_floor", {"score": 0.1})
    selection = Selection((x, z, y), gone, (Step("score_floor", 4, 3, (drop,)),))

    found = ranked_documents(
        selection, document_id=lambda c: f"doc-{c.document.id}", confidence=0.9
    )

    assert found.ranking == (("doc-a", 0.9), ("doc-b", 0.7))
    assert [(s.stage, s.before, s.after) for s in found.funnel] == [
        ("score_floor", 4, 3)
    ]
    [touch] = found.touches
    assert (touch.document_id, touch.verdict, touch.evidence) == (
        "doc-c",
        "dropped",
        {"score": 0.1},
    )


def test_funnel_of_a_run_sums_its_questions(tmp_path: Path) -> None:
    """Stage by stage, over all questions."""
    step = Step("top_k", 5, 2)
    found = ranked_documents(
        Selection((), (), (step, Step("floor", 2, 1))), document_id=lambda c: c.id
    )

    run = evaluate(COLLECTION, lambda _: found, PLAN)

    assert [(s.stage, s.before, s.after) for s in run.funnel] == [
        ("top_k", 15, 6),
        ("floor", 6, 3),
    ]


def test_error_is_an_unreadable_source(tmp_path: Path) -> None:
    """A damaged file is another error than a wrong request."""
    (tmp_path / "r.jsonl").write_text("{}\n")

    with pytest.raises(UnreadableSourceError):
        load_run(tmp_path / "r.jsonl")
