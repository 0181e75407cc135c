"""The explaining commands: people read sentences, machines read JSON."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import apsw
import pytest
from typer.testing import CliRunner

from kept.doors.cli.app import whole_app
from kept.errors import InputError, NotFoundError, SettingsError
from kept.knowledge_base.base import KnowledgeBase
from kept.knowledge_base.settings import Settings

QUESTION = "When does the Leeds office open?"
FLOORLESS = {
    "KEPT_RELEVANCE_FLOOR": "0",
    "KEPT_NEAR_MATCH_DISTANCE": "0",
    "KEPT_TOP_K": "2",
}
FACTS = [
    "The Leeds office opens at eight and closes at six.",
    "The Kiel office opens at nine and closes at five.",
    "A lost laptop is reported to security within one hour.",
]


@pytest.fixture
def store(base: KnowledgeBase, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a small knowledge base, which the commands use."""
    for fact in FACTS:
        base.add(fact, title=fact[:10], type="memo")
    base.close()
    monkeypatch.setenv("KEPT_STORE", str(base.store.folder))
    monkeypatch.setenv("KEPT_EMBEDDER", "hash")
    for name, value in FLOORLESS.items():
        monkeypatch.setenv(name, value)
    return base.store.folder


def run(*arguments: str, code: int = 0) -> str:
    """Run a command and return what it printed."""
    ran = CliRunner().invoke(whole_app(), list(arguments))
    if ran.exception is not None and not isinstance(ran.exception, SystemExit):
        raise ran.exception
    assert ran.exit_code == code
    return ran.stdout


def run_json(*arguments: str, code: int = 0) -> Any:  # noqa: ANN401 -- any JSON
    """Run a command with --json and return what it printed."""
    return json.loads(run(*arguments, "--json", code=code))


def selected() -> list[str]:
    """Return the chunks that answer the question."""
    shown = run_json("search", QUESTION)
    return [row["chunk_id"] for row in shown["selected"]]


def dropped() -> str:
    """Return a chunk that was recalled and dropped."""
    record = run_json("search", QUESTION)["record"]["candidates"]
    return str(next(c["chunk_id"] for c in record if c["state"] == "dropped"))


@pytest.mark.usefixtures("store")
def test_why_prints_the_path() -> None:
    """Stage by stage, to the final place."""
    [first, *_] = selected()

    output = run("why", first, QUESTION).splitlines()
    shown = run_json("why", first, QUESTION)

    assert output[0].startswith(f"{first} of ")
    assert output[-1].startswith("selected: place 1 of ")
    assert (shown["selected"], shown["place"]) == (True, 1)
    with pytest.raises(NotFoundError, match="why-not"):
        run("why", "nowhere:0000", QUESTION)


@pytest.mark.usefixtures("store")
def test_why_not_names_the_stage_the_numbers_and_the_change() -> None:
    """The variable, from, to, and that a run verified it."""
    target = dropped()

    output = run("why-not", target, QUESTION)
    shown = run_json("why-not", target, QUESTION)

    assert (
        "top_k: dropped: trim_top_n (place=3, at_most=2). Below the k best." in output
    )
    assert "verified by running the query" in output
    assert shown["outcome"] == "dropped"
    change = shown["smallest_change"]
    assert change["verified"]
    assert change["settings"][0]["variable"].startswith("KEPT_")


@pytest.mark.usefixtures("store")
def test_the_change_that_why_not_names_can_be_stored() -> None:
    """What it says to type does let the passage in."""
    target = dropped()
    [setting] = run_json("why-not", target, QUESTION)["smallest_change"]["settings"]

    run("settings", "--set", f"{setting['variable']}={setting['to']}")

    assert target in selected()
    run("settings", "--unset", setting["variable"])
    assert target not in selected()


@pytest.mark.usefixtures("store")
def test_why_not_takes_the_filters_of_a_search() -> None:
    """A filter that excludes is named."""
    [first, *_] = selected()

    shown = run_json("why-not", first, QUESTION, "--type", "letter")

    assert (shown["outcome"], shown["filters"]) == ("filtered", {"types": ["letter"]})
    assert shown["unfiltered"]["outcome"] == "selected"


@pytest.mark.usefixtures("store")
def test_search_explain_shows_the_funnel() -> None:
    """A table of stages, the sum, the counters and who was dropped."""
    output = run("search", QUESTION, "--explain")

    assert "recall" in output
    assert "1 dropped trim_top_n" in output
    assert "3 recalled + 0 added = 2 selected + 1 dropped" in output
    assert "top_k: trim_top_n" in output
    refused = run("search", "hello there", "--explain")
    assert "counted: gated 1" in refused


@pytest.mark.usefixtures("store")
def test_replay_runs_recorded_queries_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Identical answers are said to be, by number or the latest."""
    assert "no queries are recorded" in run("replay")
    monkeypatch.setenv("KEPT_RECORD_QUERIES", "text")
    selected()

    assert run("replay") == f"1 {QUESTION}: identical\n"
    [shown] = run_json("replay", "1")["replayed"]
    assert (shown["outcome"], shown["question"]) == ("identical", QUESTION)
    with pytest.raises(NotFoundError, match="recorded query '9'"):
        run("replay", "9")


def test_an_unexplained_difference_exits_with_nine(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broken promise of determinism fails a pipeline of commands."""
    monkeypatch.setenv("KEPT_RECORD_QUERIES", "text")
    selected()
    with_sql(store, "UPDATE queries SET result_sha256 = 'other'")

    output = run("replay", code=9)

    assert "although data, configuration and code are unchanged" in output


def with_sql(store: Path, statement: str) -> None:
    """Change a knowledge base behind its back."""
    connection = apsw.Connection(str(store / "kept.sqlite"))
    connection.execute(statement)
    connection.close()


def test_diff_config_compares_question_by_question(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From lines of text, of JSON, or what was recorded."""
    questions = store.parent / "questions.jsonl"
    questions.write_text(f'{QUESTION}\n\n{{"_id": "1", "text": "lost laptop"}}\n')
    stricter = store.parent / "stricter.yaml"
    stricter.write_text("KEPT_TOP_K: 1\n")

    output = run("diff-config", "current", str(stricter), "--queries", str(questions))
    shown = run_json(
        *("diff-config", "current", "preset:grants", "--queries", str(questions))
    )

    assert "now dropped by top_k: trim_top_n" in output
    assert output.endswith("2 of 2 questions have another answer\n")
    assert (shown["questions"], len(shown["differences"])) == (2, 2)
    monkeypatch.setenv("KEPT_RECORD_QUERIES", "text")
    selected()
    last = run_json("diff-config", "current", "current", "--last", "5")
    assert (last["questions"], last["different"]) == (1, 0)


def test_diff_config_needs_questions(store: Path) -> None:
    """One source of questions, and readable ones."""
    bad = store.parent / "bad.jsonl"
    bad.write_text('{"id": 1}\n')

    selected()

    with pytest.raises(InputError, match="either --queries FILE or --last N"):
        run("diff-config", "current", "current")
    with pytest.raises(InputError, match="no question is recorded with its text"):
        run("diff-config", "current", "current", "--last", "5")
    with pytest.raises(InputError, match=r"bad.jsonl, line 1: expected an object"):
        run("diff-config", "current", "current", "--queries", str(bad))
    bad.write_text("\n")
    with pytest.raises(InputError, match=r"bad\.jsonl holds no questions"):
        run("diff-config", "current", "current", "--queries", str(bad))
    bad.write_text("{no json\n")
    with pytest.raises(InputError, match="line 1"):
        run("diff-config", "current", "current", "--queries", str(bad))
    with pytest.raises(InputError, match="cannot be read"):
        run("diff-config", "current", "current", "--queries", str(store / "none"))


@pytest.mark.usefixtures("store")
def test_settings_show_values_and_where_they_come_from() -> None:
    """Given, environment, tenant or default, with range and purpose."""
    run("ingest", __file__, "--tenant", "acme")
    run("settings", "--tenant", "acme", "--set", "top_k=3")

    output = run("settings", "--tenant", "acme")
    shown = run_json("settings", "--tenant", "acme")

    assert output.startswith("tenant acme, preset default: ")
    rows = {r["variable"]: r for r in shown["preset_settings"] + shown["settings"]}
    assert (rows["KEPT_TOP_K"]["value"], rows["KEPT_TOP_K"]["origin"]) == (3, "tenant")
    assert rows["KEPT_TENANT"]["origin"] == "given"
    assert rows["KEPT_STORE"]["origin"] == "environment"
    assert rows["KEPT_DEPTH"]["accepts"] == "a whole number from 1 to 10000"
    with pytest.raises(SettingsError, match="both --set and --unset"):
        run("settings", "--set", "top_k=3", "--unset", "top_k")
    with pytest.raises(SettingsError, match="KEPT_TOP_K is '0'"):
        run("settings", "--set", "top_k=0")


@pytest.mark.usefixtures("store")
def test_a_mistyped_tenant_is_given_no_settings() -> None:
    """It is refused as by every other command, and not made."""
    with pytest.raises(NotFoundError, match="no tenant 'acem' here; known are"):
        run("settings", "--tenant", "acem", "--set", "top_k=3")
    with pytest.raises(NotFoundError, match="no tenant 'acem' here; known are"):
        run("settings", "--tenant", "acem", "--unset", "top_k")


def test_settings_can_be_listed_without_a_knowledge_base(tmp_path: Path) -> None:
    """Nothing is made by looking."""
    shown = run_json(
        "settings", "--store", str(tmp_path / "none"), "--preset", "grants"
    )

    assert "RAG_TOP_K" in [each["variable"] for each in shown["preset_settings"]]
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    ("level", "events"),
    [
        (None, set()),
        ("info", {"query_answered"}),
        ("debug", {"query_answered", "candidate_decided", "candidate_traced"}),
    ],
)
def test_logs_go_to_stderr_as_json_and_are_quiet_by_default(
    store: Path, level: str | None, events: set[str]
) -> None:
    """Standard output is only ever the answer, and the question is in no log."""
    given = {} if level is None else {"KEPT_LOG_LEVEL": level}

    ran = kept("search", QUESTION, "--json", **given)

    assert json.loads(ran.stdout)["query"] == QUESTION
    lines = [json.loads(line) for line in ran.stderr.splitlines()]
    assert {line["event"] for line in lines} == events
    assert QUESTION not in ran.stderr


@pytest.mark.usefixtures("store")
def test_an_unknown_log_level_is_refused() -> None:
    """With the variable, the value and what is expected."""
    ran = kept("search", QUESTION, KEPT_LOG_LEVEL="loud")

    assert ran.returncode == 2
    assert "KEPT_LOG_LEVEL is 'loud'; expected one of: debug, info" in ran.stderr


def kept(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command line in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", "from kept.doors.cli import main; main()", *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_filters_as_json_narrow_a_search(store: Path) -> None:
    """Of three memos the one about Leeds is left out, and why-not says by what."""
    [leeds, *_] = run_json("search", QUESTION)["selected"]
    filters = json.dumps({"none_of": [{"documents": [leeds["document_id"]]}]})

    found = run_json("search", QUESTION, "--filters", filters)["selected"]
    reported = run_json("why-not", leeds["chunk_id"], QUESTION, "--filters", filters)

    assert leeds["chunk_id"] not in {one["chunk_id"] for one in found}
    assert (reported["outcome"], list(reported["filters"])) == (
        "filtered",
        ["none_of.0"],
    )


def test_the_attributes_of_candidates_are_explained(store: Path) -> None:
    """Columns for those that some candidate has, and a line in a candidate's story."""
    settings = Settings.of({"store": str(store), "embedder": "hash"})
    with KnowledgeBase(settings) as base:
        [receipt] = base.add(
            "The Graz office opens at ten.", authority="low", confidence=0.0
        )

    output = run("search", QUESTION, "--explain")
    story = run_json("why", f"{receipt.document_id}:0000", QUESTION)
    lines = run("why", f"{receipt.document_id}:0000", QUESTION)

    [head] = [line for line in output.splitlines() if line.startswith("candidate")]
    assert head.split()[-4:] == ["type", "document", "confidence", "authority"]
    [row] = [line for line in output.splitlines() if receipt.document_id in line][-1:]
    assert row.split()[-3:] == ["document", "0", "low"]
    assert story["attributes"]["document_confidence"] == 0.0
    assert "attributes: type=document, document_confidence=0, authority=low" in lines
