"""The command: judgements in, a file, a plot and a floor out."""

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from kept.doors.cli.calibrate import calibrate
from kept.errors import InputError
from kept.kernel.calibration import load
from kept.knowledge_base.base import KnowledgeBase
from kept.knowledge_base.settings import Settings

COLOURS = (
    "red",
    "blue",
    "green",
    "white",
    "black",
    "grey",
    "brown",
    "pink",
    "gold",
    "amber",
    "violet",
    "orange",
)
THINGS = ("valve", "sensor", "cable")

command = typer.Typer()
command.command()(calibrate)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Return a store with a document for each coloured thing."""
    folder = tmp_path / "kb"
    with KnowledgeBase(Settings.of({"store": str(folder), "embedder": "hash"})) as base:
        for number, colour in enumerate(COLOURS):
            for thing in THINGS:
                base.add(
                    f"The {colour} {thing} is kept on shelf {number} of the {thing} "
                    f"room. A {colour} {thing} lasts {number + 3} years in salt water. "
                    f"Supplier {colour}works ships every {thing} crate from the "
                    f"harbour of {colour}haven in autumn."
                )
    return folder


def judged(store: Path, path: Path) -> Path:
    """Write a judgement for each coloured thing."""
    lines = [
        json.dumps(
            {
                "question": f"How long does the {colour} {thing} last in salt water?",
                "text": f"The {colour} {thing} is kept",
                "relevant": True,
            }
        )
        for colour in COLOURS
        for thing in THINGS
    ]
    path.write_text("\n".join(lines), "utf-8")
    return path


def run(store: Path, *arguments: str) -> str:
    """Run the command on the hash embedder and return what it prints."""
    where = ["--store", str(store), "--embedder", "hash"]
    result = CliRunner().invoke(command, [*where, *arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_judgements_give_a_file_that_a_search_can_use(
    store: Path, tmp_path: Path
) -> None:
    """The file is written into the store and belongs to its embedder."""
    path = judged(store, tmp_path / "judged.jsonl")

    output = run(store, "--judgements", str(path))

    calibration = load(store / "calibration.json", "hash-v1:512")
    assert calibration.provenance["fitted_on"][0]["set"] == "judged.jsonl"
    assert calibration.id in output
    assert "promised" in output


def test_alpha_prints_the_floor_and_its_bound(store: Path, tmp_path: Path) -> None:
    """The JSON has the figures before and after, and the floor with its numbers."""
    path = judged(store, tmp_path / "judged.jsonl")
    out = tmp_path / "own.json"

    body = json.loads(
        run(
            store,
            "--judgements",
            str(path),
            "--alpha",
            "0.3",
            "--output",
            str(out),
            "--json",
        )
    )

    assert body["questions"] == len(COLOURS) * len(THINGS)
    assert body["floor"]["bound"] <= 0.3
    assert body["after"]["brier"] < 0.1
    assert Path(body["file"]) == out


def test_a_promise_that_cannot_be_kept_is_not_made(store: Path, tmp_path: Path) -> None:
    """36 questions cannot promise one false citation in a hundred."""
    path = judged(store, tmp_path / "judged.jsonl")

    output = run(store, "--judgements", str(path), "--alpha", "0.01")

    assert "no floor keeps false citations below 1%" in output


def test_a_floor_is_explained_in_words(store: Path, tmp_path: Path) -> None:
    """The variable to set, and what the promise rests on."""
    path = judged(store, tmp_path / "judged.jsonl")

    output = run(store, "--judgements", str(path), "--alpha", "0.3")

    assert "KEPT_RELEVANCE_FLOOR=" in output
    assert "Clopper-Pearson" in output


def test_what_each_setting_cites_is_printed(store: Path, tmp_path: Path) -> None:
    """On questions left out of the fit: deserved citations, answers kept, refusals."""
    path = judged(store, tmp_path / "judged.jsonl")

    output = run(store, "--judgements", str(path))
    as_json = json.loads(run(store, "--judgements", str(path), "--json"))

    assert list(as_json["citing"]) == ["strict", "balanced", "generous"]
    one = as_json["citing"]["balanced"]
    assert one["answerable"] == 36
    assert 0 < one["deserved"] <= one["cited"]
    assert f"{one['deserved']} of {one['cited']}" in output


def test_known_items_need_no_judgements(store: Path) -> None:
    """Questions are made from the documents."""
    body = json.loads(run(store, "--known-items", "30", "--json"))

    assert body["questions"] == 30


@pytest.mark.parametrize("arguments", [(), ("--judgements", "x", "--known-items", "3")])
def test_exactly_one_source_of_questions(
    store: Path, arguments: tuple[str, ...]
) -> None:
    """Neither and both are refused."""
    with pytest.raises(InputError, match="give one of"):
        run(store, *arguments)


def typed(store: Path, questions: Path, replies: str, *options: str) -> str:
    """Judge passages at the terminal, and return what was printed."""
    ran = CliRunner().invoke(
        command,
        [
            *("--ask", "--queries", str(questions), "--store", str(store)),
            *("--embedder", "hash", *options),
        ],
        input=replies,
    )
    if ran.exception is not None and not isinstance(ran.exception, SystemExit):
        raise ran.exception
    return ran.stdout


def asked(path: Path) -> Path:
    """Write questions, one about each coloured thing."""
    lines = [
        f"How long does the {colour} {thing} last in salt water?"
        for colour in COLOURS
        for thing in THINGS
    ]
    path.write_text("\n".join(lines), "utf-8")
    return path


def test_thirty_judgements_at_the_terminal_make_a_calibration(
    store: Path, tmp_path: Path
) -> None:
    """A key each, noted at once; then it says what they bought."""
    output = typed(store, asked(tmp_path / "q.txt"), "y\nn\ny\n" * 10)

    assert "(1 of 30) How long does the red valve last in salt water?" in output
    assert "The red valve is kept on shelf 0" in output
    assert "30 questions, 30 passages recalled for them, 20 relevant" in output
    assert "KEPT_CITE" in output
    assert len((store / "judgements.jsonl").read_text().splitlines()) == 30
    assert load(store / "calibration.json", "hash-v1:512").name == "own"


def test_judging_goes_on_where_it_stopped(store: Path, tmp_path: Path) -> None:
    """What was judged is not asked again; a skipped passage is no judgement."""
    questions = asked(tmp_path / "q.txt")

    with pytest.raises(InputError, match="2 questions are judged; expected at least"):
        typed(store, questions, "y\ns\nwhat?\nn\nq\n")
    again = ""
    with pytest.raises(InputError, match="3 questions are judged"):
        again = typed(store, questions, "y\n")

    noted = (store / "judgements.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(line)["relevant"] for line in noted] == [True, False, True]
    assert again == ""


def test_without_questions_there_is_nothing_to_judge(store: Path) -> None:
    """It says which setting records them, and which option takes a file."""
    with pytest.raises(InputError, match="KEPT_RECORD_QUERIES=text"):
        run(store, "--ask")
