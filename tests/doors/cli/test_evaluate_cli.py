"""The evaluation commands: what they print, what they refuse, how they end."""

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from commands import Ran, kept
from kept.evaluation.trec import read_run

PASSAGES = {
    "leave": "Employees have thirty days of annual leave, booked with their manager.",
    "travel": "Train travel is reimbursed in second class upon receipt of the ticket.",
    "bees": "A colony of honey bees survives the winter clustered around its queen.",
}
QUESTIONS = {
    "q1": ("How many days of annual leave do employees have?", "leave"),
    "q2": ("Which class of train travel is reimbursed?", "travel"),
    "q3": ("How does a colony of honey bees survive the winter?", "bees"),
}
FAR = {"_id": "far", "text": "Who won the football world cup?", "answerable": False}


@pytest.fixture(autouse=True)
def _cache_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep what is built out of the user's cache, on the hash embedder."""
    monkeypatch.setenv("KEPT_EVAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("KEPT_EMBEDDER", "hash")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the folder of a small judged collection."""
    small = tmp_path / "small"
    (small / "qrels").mkdir(parents=True)
    corpus = [{"_id": k, "title": k, "text": text} for k, text in PASSAGES.items()]
    queries = [{"_id": k, "text": text} for k, (text, _) in QUESTIONS.items()]
    for name, rows in (("corpus", corpus), ("queries", queries)):
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (small / f"{name}.jsonl").write_text(lines, "utf-8")
    judged = "".join(f"{q}\t{p}\t1\n" for q, (_, p) in QUESTIONS.items())
    head = "query-id\tcorpus-id\tscore\n"
    (small / "qrels" / "test.tsv").write_text(head + judged, "utf-8")
    return small


def added(path: Path, line: str) -> None:
    """Append a line to a file."""
    with path.open("a", encoding="utf-8") as stream:
        stream.write(line + "\n")


def test_eval_prints_metrics_by_name(folder: Path) -> None:
    """Machines read every measure under ``metrics``, as one number."""
    ran = kept("eval", folder, "--json")

    assert ran.code == 0, ran.err
    assert list(ran.json["metrics"]) == ["nDCG@10", "R@100", "RR", "Success@3"]
    assert ran.json["metrics"]["Success@3"] == 1.0
    assert ran.json["guarded"]["refused"] == 0
    assert ran.err == ""


def test_eval_takes_any_measure(folder: Path) -> None:
    """Measures go by their names in ir_measures; hits@k is another for Success@k."""
    ran = kept("eval", folder, "--measure", "P@1", "--measure", "hits@1", "--json")

    assert ran.json["metrics"] == {"P@1": 1.0, "Success@1": 1.0}


def test_eval_is_for_people_by_default(folder: Path) -> None:
    """A table shows the ranking and what is cited, with intervals."""
    ran = kept("eval", folder)

    assert "3 questions, 3 judged, 0 refused" in ran.out
    assert "as cited, guardrails on" in ran.out
    assert "nDCG@10" in ran.out


def test_eval_keeps_its_run(folder: Path, tmp_path: Path) -> None:
    """The folder holds the records, TREC files, traces, a page and JUnit."""
    out = tmp_path / "out"

    ran = kept(
        *("eval", folder, "--out", out, "--traces"),
        *("--html", out / "page.html", "--junit", out / "junit.xml"),
    )

    assert ran.code == 0, ran.err
    assert set(read_run(out / "run.trec")) == set(QUESTIONS)
    assert len(list((out / "traces").glob("*.json"))) == 3
    assert (out / "page.html").read_text().startswith("<!doctype html>")
    ET.parse(out / "junit.xml")  # noqa: S314 -- our own


def test_eval_reports_abstention(folder: Path, tmp_path: Path) -> None:
    """Questions marked unanswerable and those of another set count separately."""
    added(folder / "queries.jsonl", json.dumps(FAR | {"kind": "near"}))
    probe = tmp_path / "other.jsonl"
    probe.write_text('{"question": "Which planet has most moons?"}\n', "utf-8")

    ran = kept("eval", folder, "--probe", probe, "--floor", "0.3", "--json")
    shown = kept("eval", folder, "--probe", probe)

    abstention = ran.json["abstention"]
    assert (abstention["answerable"], abstention["unanswerable"]) == (3, 2)
    assert set(abstention["auroc_by_kind"]) == {"far", "near"}
    assert [row["floor"] for row in abstention["floors"]] == [None, 0.3]
    assert "AUGRC above the optimum" in shown.out


def test_a_folder_of_another_set_can_probe(folder: Path, tmp_path: Path) -> None:
    """A folder stands for the queries in it."""
    other = tmp_path / "other"
    other.mkdir()
    added(other / "queries.jsonl", '{"_id": "x", "text": "Which planet is red?"}')

    ran = kept("eval", folder, "--probe", other, "--json")

    assert ran.json["abstention"]["unanswerable"] == 1


def test_eval_takes_settings_from_a_file(folder: Path, tmp_path: Path) -> None:
    """A settings file configures the preset, and the run is named for it."""
    settings = tmp_path / "strict.yaml"
    settings.write_text("relevance_floor: 1.0\nnear_match_distance: 0.0\n", "utf-8")

    ran = kept("eval", folder, "--settings", settings, "--json")

    assert ran.json["name"] == "default, strict.yaml"
    assert ran.json["configuration"]["overrides"]["relevance_floor"] == 1.0


def test_eval_asks_a_sample(folder: Path) -> None:
    """The limit takes the same questions every time."""
    first, second = (kept("eval", folder, "--limit", "2", "--json") for _ in range(2))

    assert first.json["questions"] == 2
    assert first.out == second.out


@pytest.mark.parametrize(
    ("file", "line", "message"),
    [
        (
            "corpus.jsonl",
            '{"_id": "x", "text": ',
            "corpus.jsonl, line 4: not valid JSON",
        ),
        ("corpus.jsonl", '{"_id": "leave", "text": "x"}', "'leave' comes twice"),
        ("queries.jsonl", '{"_id": "q1", "text": "x"}', "'q1' comes twice"),
        ("queries.jsonl", "[1]", "queries.jsonl, line 4: expected a JSON object"),
        ("queries.jsonl", '{"_id": "x"}', "line 4: no text under 'text' or 'question'"),
        ("qrels/test.tsv", "q1\tleave\thigh", "test.tsv, line 5: the grade is 'high'"),
        ("qrels/test.tsv", "q1", "test.tsv, line 5: expected 3 or 4 columns"),
    ],
)
def test_a_broken_collection_is_reported_with_its_line(
    folder: Path, file: str, line: str, message: str
) -> None:
    """Bad input is one clear sentence, before anything is embedded."""
    added(folder / file, line)

    complaint = kept("eval", folder, "--json").complaint(3)

    assert message in complaint


def test_unknown_judgements_are_counted(folder: Path) -> None:
    """They are reported, and fatal only when asked for."""
    added(folder / "qrels" / "test.tsv", "q1\tnobody\t1")
    added(folder / "qrels" / "test.tsv", "q9\tleave\t1")

    lenient = kept("eval", folder, "--json")
    shown = kept("eval", folder)
    strict = kept("eval", folder, "--strict", "--json")

    [note] = lenient.json["notes"]
    assert "1 judgements name an unknown question and 1 an unknown passage" in note
    assert note in shown.out
    assert "run without strict" in strict.complaint(3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--split", "dev"], "there is no split 'dev'"),
        (["--measure", "beauty"], "there is no measure 'beauty'"),
        (["--preset", "none"], "none"),
        (["--traces"], "give --out FOLDER too"),
        (["--settings", "missing.yaml"], "missing.yaml"),
        (["--probe", "missing.jsonl"], "missing.jsonl"),
    ],
)
def test_options_that_cannot_be_met_are_refused(
    folder: Path, options: list[str], message: str
) -> None:
    """Each says what was met."""
    ran = kept("eval", folder, *options)

    assert ran.code in {2, 3}
    assert message in ran.complaint(ran.code)


def test_a_collection_without_a_judged_question_is_refused(folder: Path) -> None:
    """There is nothing to ask."""
    (folder / "qrels" / "test.tsv").write_text("x 0 y 1\n", "utf-8")

    assert "there is none to ask" in kept("eval", folder).complaint(3)


def trec_files(tmp_path: Path, run: str) -> tuple[Path, Path]:
    """Write judgements and a run."""
    qrels, ranked = tmp_path / "qrels.txt", tmp_path / "run.trec"
    qrels.write_text("q1 0 a 1\nq2 0 b 1\n", "utf-8")
    ranked.write_text(run, "utf-8")
    return qrels, ranked


def test_a_run_of_another_system_is_measured(tmp_path: Path) -> None:
    """A question that the run left out is worth 0."""
    qrels, run = trec_files(tmp_path, "q1 Q0 a 1 2.5 other\nq1 Q0 c 2 1.5 other\n")

    ran = kept("eval", "trec", qrels, run, "--measure", "RR", "--json")
    kept("eval", "trec", qrels, run, "--measure", "RR", "--out", tmp_path / "kept")
    again = kept(
        "eval", "trec", qrels, run, "--measure", "RR", "--out", tmp_path / "kept"
    )

    assert ran.json["metrics"] == {"RR": 0.5}
    assert "0.5000" in again.out


@pytest.mark.parametrize(
    ("run", "message"),
    [
        ("", "the run is empty"),
        ("q1 Q0 a 1 nan x\n", "line 1: the score is 'nan'"),
        ("q1 Q0 a 1 2 x\nq1 Q0 a 2 1 x\n", "line 2: a is ranked twice"),
        ("q1 a 1\n", "line 1: expected 6 columns, met 3"),
    ],
)
def test_a_broken_run_is_reported_with_its_line(
    tmp_path: Path, run: str, message: str
) -> None:
    """Scores that are no numbers and documents ranked twice are refused."""
    assert message in kept("eval", "trec", *trec_files(tmp_path, run)).complaint(3)


def runs(folder: Path, tmp_path: Path) -> tuple[Path, Path]:
    """Keep a run with the default floors, and one that cites nothing."""
    settings = tmp_path / "strict.yaml"
    settings.write_text(
        "relevance_floor: 1.0\nnear_match_distance: 0.0\nkeyword_protection: null\n",
        "utf-8",
    )
    kept("eval", folder, "--out", tmp_path / "a", "--traces")
    kept("eval", folder, "--settings", settings, "--out", tmp_path / "b", "--traces")
    return tmp_path / "a", tmp_path / "b"


def test_compare_prints_the_difference_and_its_cause(
    folder: Path, tmp_path: Path
) -> None:
    """Refusals are blamed on the refusal, question by question."""
    before, after = runs(folder, tmp_path)

    ran = kept("compare", before, after, "--json")

    comparison = ran.json["comparison"]
    assert comparison["deltas"][0]["losses"] == 3
    assert comparison["blame"][0]["stage"] == "refusal"
    assert comparison["by_query"][0]["trace_after"].startswith("file://")
    assert ran.code == 0


def test_a_gate_that_does_not_hold_ends_with_20(folder: Path, tmp_path: Path) -> None:
    """A build server sees the gate as a failed test."""
    before, after = runs(folder, tmp_path)
    gate = ("--gate", "nDCG@10 >= -0.005")
    files = ("--junit", tmp_path / "g.xml", "--html", tmp_path / "g.html")

    failed = kept("compare", before, after, *gate, *files)
    passed = kept("compare", before, before, *gate)

    assert (failed.code, passed.code) == (20, 0)
    assert "failed" in failed.out
    assert ET.parse(tmp_path / "g.xml").getroot().get("failures") == "1"  # noqa: S314
    assert "Gates failed" in (tmp_path / "g.html").read_text("utf-8")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["{a}", "{missing}"], "No such file or directory"),
        (["{a}", "{a}", "--gate", "better"], "'better' is no gate"),
        (["{a}", "{a}", "--gate", "P@7 >= 0"], "do not share the measure 'P@7'"),
    ],
)
def test_a_comparison_that_cannot_be_made_is_refused(
    folder: Path, tmp_path: Path, arguments: list[str], message: str
) -> None:
    """The message says what there is."""
    kept("eval", folder, "--out", tmp_path / "a")
    paths = {"a": tmp_path / "a", "missing": tmp_path / "missing"}

    ran = kept("compare", *(each.format(**paths) for each in arguments))

    assert message in ran.complaint(3)


def test_sweep_marks_the_frontier(folder: Path) -> None:
    """Every combination has its quality, its refusals and its cost."""
    options = ("--set", "relevance_floor=0.1,0.9")

    ran = kept("sweep", folder, *options, "--json")
    shown = kept("sweep", folder, *options)

    assert [p["settings"] for p in ran.json["points"]] == [
        {"relevance_floor": 0.1},
        {"relevance_floor": 0.9},
    ]
    assert "2 combinations" in shown.out


def test_a_grid_that_counts_nowhere_is_refused(folder: Path) -> None:
    """The message says how a grid is written."""
    ran = kept("sweep", folder, "--set", "relevance_floor=0.5:0.1:0.1")

    assert "write from:to:step" in ran.complaint(3)


def fixture_run(*options: object) -> Ran:
    """Run a fixture of our own."""
    return kept("eval", "fixture", "viewpoints", *options)


def test_a_fixture_ends_with_its_verdict(tmp_path: Path) -> None:
    """Accepted is 0; the arms, the shares and JUnit are there."""
    ran = fixture_run("--json", "--junit", tmp_path / "f.xml")
    shown = fixture_run()

    assert (ran.code, ran.json["verdict"], ran.json["exit_code"]) == (0, "passed", 0)
    assert ran.json["shares"]["oracle"] == 1.0
    assert ET.parse(tmp_path / "f.xml").getroot().get("failures") == "0"  # noqa: S314
    assert "Verdict: passed" in shown.out


@pytest.mark.parametrize(
    ("text", "questions", "code"),
    [
        ("The depot is closed on Fridays in June.", [("When?", "at noon")], 20),
        ("  ", [("When?", "at noon")], 21),
        ("Yes.", [], 22),
    ],
)
def test_a_fixture_that_fails_ends_with_why(
    tmp_path: Path, text: str, questions: list[tuple[str, str]], code: int
) -> None:
    """20 is below acceptance, 21 not ingested, 22 nothing to ask."""
    asked = [{"question": q, "expected": e} for q, e in questions]
    file = tmp_path / "f.json"
    file.write_text(
        json.dumps({"name": "f", "document": {"text": text}, "questions": asked}),
        "utf-8",
    )
    crowd = tmp_path / "crowd"
    crowd.mkdir()

    ran = kept("eval", "fixture", file, "--distractors", crowd, "--json")

    assert (ran.code, ran.json["exit_code"]) == (code, code)


def test_an_unknown_fixture_names_ours() -> None:
    """The message lists the fixtures that Kept brings."""
    output = kept("eval", "fixture", "nothing").complaint(3)

    assert "acquisition, noisy, viewpoints" in output


def test_a_crowd_that_is_not_there_is_refused() -> None:
    """The message names the option."""
    assert "check --distractors" in fixture_run("--distractors", "no/where").complaint(
        3
    )


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    """Return a file with a duplicate and another pair."""
    text = "The depot is closed on public holidays and on the last Friday of June."
    rows = [
        {"first": text, "second": text + "!", "duplicate": True},
        {"first": text, "second": "Owls hunt at night.", "duplicate": False},
    ]
    file = tmp_path / "pairs.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return file


def test_without_minhash_the_other_rules_are_shown(
    pairs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was left out is said first."""
    monkeypatch.setattr("kept.evaluation.duplicate_report.BASELINE", "no_such_package")

    ran = kept("eval", "duplicates", pairs)

    assert ran.out.startswith("MinHash was left out")


def test_duplicates_are_held_against_pairs(pairs: Path) -> None:
    """Every rule has its curve, beside MinHash."""
    ran = kept("eval", "duplicates", pairs, "--json")
    shown = kept("eval", "duplicates", pairs)

    names = [rule["rule"] for rule in ran.json["rules"]]
    assert names[0] == "as ingested"
    assert ran.json["duplicates"] == 1
    assert "as ingested: AUROC" in shown.out


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", "there are no pairs"),
        ('{"first": "a"}', "line 1: second is missing (there is: first)"),
        ('{"first": "a", "second": "b", "duplicate": 1}', "duplicate is 1"),
        ('{"first": "a", "second": "b"}', "neither a label nor a similarity"),
    ],
)
def test_broken_pairs_are_reported_with_their_line(
    tmp_path: Path, line: str, message: str
) -> None:
    """Bad input is one clear sentence."""
    file = tmp_path / "pairs.jsonl"
    file.write_text(line + "\n", "utf-8")

    assert message in kept("eval", "duplicates", file).complaint(3)


def test_ordinal_ratings_are_measured_by_item_and_coverage(tmp_path: Path) -> None:
    """The mean error of what was answered, and how much was."""
    rows = [
        {"participant": "p1", "item": "Sleep", "prediction": 2, "truth": 2},
        {"participant": "p1", "item": "Tired", "prediction": 3, "truth": 1},
        {"participant": "p2", "item": "Sleep", "prediction": 1, "truth": 1},
        {"participant": "p2", "item": "Tired", "prediction": None, "truth": 0},
    ]
    file = tmp_path / "ratings.jsonl"
    file.write_text("\n".join(json.dumps(row) for row in rows))

    shown = json.loads(kept("eval", "ordinal", file, "--json").out)
    output = kept("eval", "ordinal", file).out

    assert shown["coverage"]["estimate"] == 0.75
    assert round(shown["mae"]["estimate"], 9) == round(2 / 3, 9)
    assert shown["mae_by_item"]["Sleep"]["estimate"] == 0.0
    assert "MAE" in output


def ratings_file(path: Path, error: int) -> Path:
    """Write ratings of six participants that are all off by *error*."""
    rows = [
        {"participant": f"p{n}", "item": "Sleep", "prediction": error, "truth": 0}
        for n in range(6)
    ]
    path.write_text("\n".join(json.dumps(row) for row in rows))
    return path


@pytest.mark.parametrize("command", [("eval", "ordinal"), ("compare",)])
def test_two_ratings_are_compared_and_gated(
    command: tuple[str, ...], tmp_path: Path
) -> None:
    """The change with its interval and p value, and exit code 20 below a gate."""
    worse = ratings_file(tmp_path / "before.jsonl", 2)
    better = ratings_file(tmp_path / "after.jsonl", 1)

    shown = kept(*command, worse, better, "--gate", "high(AURC) <= 0")
    failed = kept(*command, better, worse, "--gate", "AURC <= 0", "--json")

    assert shown.code == 0
    assert "after against before: 6 ratings of 6 participants" in shown.out
    assert "-1.0000 [-1.0000, -1.0000]" in shown.out
    assert failed.code == 20
    data = json.loads(failed.out)
    assert (data["passed"], data["gates"][0]["value"]) == (False, 1.0)
    assert {d["measure"]: d["p_value"] for d in data["deltas"]}["AURC"] == 2 / 2**6


def test_ratings_have_neither_a_page_nor_a_gate_without_a_second_file(
    tmp_path: Path,
) -> None:
    """Each is said, not left out in silence."""
    file = ratings_file(tmp_path / "ratings.jsonl", 1)

    page = kept("compare", file, file, "--html", tmp_path / "page.html")
    gate = kept("eval", "ordinal", file, "--gate", "AURC <= 0")

    assert "for ratings there is --json" in page.complaint(3)
    assert "give both" in gate.complaint(3)


def test_a_rating_that_is_none_is_named_by_its_line(tmp_path: Path) -> None:
    """The line, the field, the value and what was expected."""
    file = tmp_path / "ratings.jsonl"
    file.write_text('{"participant": "p", "item": "Sleep", "prediction": "2"}\n')

    ran = kept("eval", "ordinal", file)

    assert ran.code == 3
    assert "prediction is '2'" in ran.err
