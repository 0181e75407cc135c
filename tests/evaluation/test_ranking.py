"""An evaluation measures both orders, keeps its run, and goes on where it stopped."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kept.errors import InputError
from kept.evaluation.collection import Collection, load_collection, load_questions
from kept.evaluation.corpus import Corpus, corpus_of
from kept.evaluation.report import notes_of, report_of, summary_of
from kept.evaluation.runs import load_linked_run, load_run
from kept.evaluation.system import (
    Evaluation,
    Place,
    Setup,
    divided,
    evaluated,
    settings_file,
)
from kept.evaluation.trec import read_run
from kept.knowledge_base.settings import Settings

STRICT_FLOOR = {
    "relevance_floor": 1.0,
    "near_match_distance": 0.0,
    "keyword_protection": None,
}


def silent(step: str, done: int, total: int) -> None:
    """Report no progress."""


@contextmanager
def opened(folder: Path, settings: Settings) -> Iterator[tuple[Collection, Corpus]]:
    """Open a collection and its corpus."""
    collection = load_collection(folder)
    with corpus_of(collection, settings, on_step=silent) as corpus:
        yield collection, corpus


def run(
    folder: Path,
    settings: Settings,
    setup: Setup | None = None,
    out: Path | None = None,
    *,
    traces: bool = False,
) -> Evaluation:
    """Evaluate a collection from its folder."""
    place = Place(out, traces) if out else None
    with opened(folder, settings) as (collection, corpus):
        return evaluated(
            collection, corpus, setup or Setup(), out=place, on_step=silent
        )


def test_every_judged_question_is_measured(folder: Path, settings: Settings) -> None:
    """Each question names its passage nearly word for word, so each is found."""
    evaluation = run(folder, settings)

    assert evaluation.plain.means["Success@3"] == 1.0
    assert [r.question_id for r in evaluation.guarded.records] == [
        "q1",
        "q2",
        "q3",
        "q4",
    ]


def test_metrics_are_those_of_the_plain_order(folder: Path, settings: Settings) -> None:
    """What the guardrails hold back is reported beside the ranking, not in it."""
    evaluation = run(folder, settings, Setup(overrides=STRICT_FLOOR))

    summary = summary_of(evaluation).as_data()

    assert summary["metrics"] == evaluation.plain.means
    assert summary["guarded"]["metrics"]["R@100"] < summary["metrics"]["R@100"]
    change = {
        d["measure"]: d["difference"]["estimate"] for d in summary["guarded"]["change"]
    }
    assert change["R@100"] < 0
    assert summary["guarded"]["refused"] == len(
        [r for r in evaluation.guarded.records if r.refusal]
    )
    assert json.loads(json.dumps(summary)) == summary


def test_a_run_is_kept_with_its_trec_files(
    folder: Path, settings: Settings, tmp_path: Path
) -> None:
    """Other tools read the same rankings."""
    evaluation = run(folder, settings, out=tmp_path / "run")

    kept = load_run(tmp_path / "run")
    trec = read_run(tmp_path / "run" / "plain.trec")

    assert kept == evaluation.guarded
    assert {q: [d for d, _ in r] for q, r in trec.items()} == {
        q: [d for d, _ in r] for q, r in evaluation.plain.rankings.items()
    }


def test_an_interrupted_run_goes_on(
    folder: Path, settings: Settings, tmp_path: Path
) -> None:
    """Questions that were answered are not asked again, and the end is the same."""
    out = tmp_path / "run"
    whole = run(folder, settings, out=out)
    lines = (out / "run.jsonl").read_bytes().splitlines(keepends=True)
    (out / "run.jsonl").write_bytes(b"".join(lines[:3]) + b'{"query": {"quest')
    (out / "plain.jsonl").unlink()

    again = run(folder, settings, out=out)

    assert (again.guarded.records, again.plain.records) == (
        whole.guarded.records,
        whole.plain.records,
    )


def test_a_place_with_another_run_is_refused(
    folder: Path, settings: Settings, tmp_path: Path
) -> None:
    """Two configurations never mix in one file."""
    run(folder, settings, out=tmp_path / "run")

    with pytest.raises(InputError, match="another run"):
        run(folder, settings, Setup(overrides=STRICT_FLOOR), tmp_path / "run")


def test_traces_hold_the_whole_record(
    folder: Path, settings: Settings, tmp_path: Path
) -> None:
    """A comparison links to both records of a question."""
    run(folder, settings, out=tmp_path / "a", traces=True)
    run(folder, settings, Setup(overrides=STRICT_FLOOR), tmp_path / "b", traces=True)

    before, after = (load_linked_run(tmp_path / name) for name in "ab")
    report = report_of(after, against=before)

    assert report.comparison is not None
    [first, *_] = report.comparison.by_query
    assert first.trace_before is not None
    record = json.loads(Path(first.trace_before.removeprefix("file://")).read_text())
    assert record["query"] == first.question
    assert record["record"]["stages"][0]["stage"] == "fuse_absolute"


def test_questions_of_another_set_are_unanswerable(
    folder: Path, settings: Settings, probes: Path
) -> None:
    """With probes, abstention is reported beside the ranking."""
    with opened(folder, settings) as (collection, corpus):
        probed = collection.probed(load_questions(probes))
        evaluation = evaluated(probed, corpus, Setup(), on_step=silent)

    report = summary_of(evaluation, floors=[0.2]).report.abstention

    assert report is not None
    assert (report.answerable, report.unanswerable) == (4, 2)
    assert [f.floor for f in report.floors] == [None, 0.2]
    assert report.auroc is not None
    assert report.auroc.estimate > 0.5


def test_what_could_not_be_used_is_said(folder: Path) -> None:
    """Unknown judgements and passages without text are counted."""
    with (folder / "qrels" / "test.tsv").open("a") as stream:
        stream.write("q1\tnobody\t1\n")

    notes = notes_of(load_collection(folder), 2)

    assert "unknown passage (such as nobody)" in notes[0]
    assert notes[1] == "2 passages have no text and were not ingested"


def test_settings_are_divided_between_the_base_and_its_preset(tmp_path: Path) -> None:
    """One file holds both; variables are as good as names."""
    path = tmp_path / "s.yaml"
    path.write_text(
        "KEPT_CHUNK_CHARS: 300\nrelevance_floor: 0.4\nwithout_stages: [diversity]\n",
        "utf-8",
    )

    base, preset = divided(settings_file(path))

    assert base == {"chunk_chars": 300}
    assert preset == {"relevance_floor": 0.4, "without_stages": ["diversity"]}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: [", "not valid YAML"),
        ("- 1", "expected names and values"),
        ("", "NoneType"),
    ],
)
def test_a_settings_file_of_another_shape_is_refused(
    tmp_path: Path, text: str, problem: str
) -> None:
    """The message says what was met."""
    path = tmp_path / "s.yaml"
    path.write_text(text, "utf-8")

    with pytest.raises(InputError, match=problem):
        settings_file(path)


def test_a_settings_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    """The message names the path."""
    with pytest.raises(InputError, match=r"nothing\.yaml"):
        settings_file(tmp_path / "nothing.yaml")
