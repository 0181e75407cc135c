"""The command line: the JSON of every command, its errors and its exit codes."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from commands import ROOT, apart, kept, started
from kept import errors
from kept.doors.cli.app import app_for, whole_app
from kept.knowledge_base.base import KnowledgeBase

HASH = ("--embedder", "hash")


def names_of(place: typer.Typer, *path: str) -> Iterator[tuple[str, ...]]:
    """Yield every command below *place*, as typed."""
    for command in place.registered_commands:
        name = command.name or getattr(command.callback, "__name__", "")
        yield (*path, name)
    for group in place.registered_groups:
        assert group.typer_instance is not None
        yield (*path, str(group.name))
        yield from names_of(group.typer_instance, *path, str(group.name))


COMMANDS = list(names_of(whole_app()))
SELECTED = {
    *("chunk_id", "document_id", "ord", "title", "source_uri", "text", "score"),
    *("relevance", "protected", "signals"),
}
SIGNALS = {
    *("cosine", "distance", "bm25", "coverage", "dense_norm", "keyword_norm", "fused"),
}


@pytest.fixture
def store(base: KnowledgeBase) -> str:
    """Return the folder of a store with three documents, one of them twice."""
    base.add("The pump TW-C235 costs 410 euro.", title="Prices", source_uri="a")
    base.add("Employees have 28 days of leave a year.", source_uri="b")
    base.add("Der Käse kostet fünf Euro.", title="Der Käse", source_uri="c")
    base.add("The pump TW-C235 costs 410 euro.", title="Prices", source_uri="d")
    return base.settings.store


def test_help_lists_what_the_whole_application_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The list that imports no command has the same lines as the one that does."""
    monkeypatch.setenv("_KEPT_COMPLETE", "")
    whole = CliRunner().invoke(app_for(["--help"]), ["--help"]).output
    monkeypatch.delenv("_KEPT_COMPLETE")

    listed = CliRunner().invoke(app_for(["--help"]), ["--help"]).output

    assert listed == whole
    assert "Find the passages that deserve to be cited." in listed


def test_a_command_behind_a_dash_dash_runs() -> None:
    """The command runs also where its name is not the first word."""
    ran = kept("--", "documents", "--store", "nowhere")

    assert "there is no knowledge base in nowhere" in ran.complaint(3)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_explains_itself(command: tuple[str, ...]) -> None:
    """Help ends with 0 and says more than the name."""
    ran = kept(*command, "--help")

    assert ran.code == 0
    assert ran.out.startswith(f"Usage: kept {' '.join(command)}")
    assert len(ran.out.splitlines()) > 5


def test_the_documented_commands_are_there() -> None:
    """Those that the documentation names can be typed."""
    documented = (
        *("ingest", "search", "why", "documents", "ledger", "aliases", "delete"),
        *("models", "reembed", "doctor", "demo"),
    )

    assert {(name,) for name in documented} <= set(COMMANDS)


def test_without_a_command_the_help_is_shown() -> None:
    """There is something to read, and the code says that nothing was done."""
    ran = kept()

    assert ran.code == 2
    assert "ingest" in ran.out + ran.err


def test_search_prints_the_documented_json(store: str) -> None:
    """Every documented key is there, and the counts of the record sum."""
    shown = kept("search", "TW-C235 pump price", "--store", store, *HASH, "--json").json

    assert shown["query"] == "TW-C235 pump price"
    assert shown["refused"] is None
    for passage in shown["selected"]:
        assert passage.keys() >= SELECTED
        assert passage["signals"].keys() >= SIGNALS
    record = shown["record"]
    assert record["recalled"] + record["added"] == (
        record["selected"] + record["dropped"]
    )
    for stage in record["stages"]:
        assert stage.keys() >= {"stage", "before", "after", "decisions"}
        for decision in stage["decisions"]:
            assert decision.keys() == {"chunk_id", "verdict", "reason", "evidence"}
    assert shown["fingerprints"].keys() == {"knowledge_base", "configuration"}
    assert "timings" not in record


def test_a_refusal_has_a_reason_and_a_message(store: str) -> None:
    """Small talk is turned away with code 0: it is an answer."""
    ran = kept("search", "hey this is a test message", "--store", store, *HASH)
    shown = kept("search", "hey this is a test", "--store", store, *HASH, "--json").json

    assert ran.code == 0
    assert shown["refused"].keys() >= {"reason", "message"}
    assert shown["selected"] == []
    assert shown["refused"]["message"] in ran.out


def test_search_for_people_names_passage_source_and_relevance(store: str) -> None:
    """The text, where it is from, how relevant it is, and the id to ask why."""
    out = kept("search", "TW-C235 pump price", "--store", store, *HASH, "--explain").out

    assert "[1] Prices" in out
    assert "410 euro" in out
    assert "relevance" in out
    assert re.search(r"\d+ recalled \+ 0 added = \d+ selected \+ \d+ dropped", out)


def test_why_prints_the_path_of_a_chunk(store: str) -> None:
    """Both as sentences and as JSON."""
    asked = ("TW-C235 pump price", "--store", store, *HASH)
    found = kept("search", *asked, "--json").json
    chunk = found["selected"][0]["chunk_id"]

    ran = kept("why", chunk, *asked)
    shown = kept("why", chunk, *asked, "--json").json

    assert "cosine=" in ran.out
    assert "selected" in ran.out
    assert shown["chunk_id"] == chunk
    assert shown["selected"] is True
    assert "there is no candidate" in kept("why", "d1:0000", *asked).complaint(3)


def test_lists_are_printed_as_json_and_as_tables(store: str) -> None:
    """Documents, ledger, similarities and aliases."""
    documents = kept("documents", "--store", store, "--json").json["documents"]
    ledger = kept("ledger", "--store", store, "--json").json["ledger"]
    aliases = kept("aliases", "--store", store, "--json").json["aliases"]
    similarities = kept("ledger", "--similarities", "--store", store, "--json").json

    assert [row["chunks"] for row in documents] == [1, 1, 1]
    assert [row["status"] for row in ledger] == [*["created"] * 3, "reused"]
    assert [(a["rule"], a["similarity"]) for a in aliases] == [("exact", 1.0)]
    assert similarities.keys() == {"similarities"}
    for command in ("documents", "ledger", "aliases"):
        out = kept(command, "--store", store).out
        assert len(out.splitlines()) > 1
        assert not any(line.endswith(" ") for line in out.splitlines())
    assert kept("ledger", "--store", store, "--limit", "1").out.count("\n") == 2


def test_deleting_says_what_is_gone(store: str) -> None:
    """The receipt has the keys of every receipt; a second time it is not there."""
    [first, *_] = kept("documents", "--store", store, "--json").json["documents"]

    shown = kept("delete", first["document_id"], "--store", store, "--json").json

    assert (shown["status"], shown["document_id"]) == ("deleted", first["document_id"])
    again = kept("delete", first["document_id"], "--store", store)
    assert "kept documents" in again.complaint(3)


def test_an_alias_can_be_undone(store: str) -> None:
    """The list names it, undoing empties the list, and a wrong id is reported."""
    [alias] = kept("aliases", "--store", store, "--json").json["aliases"]

    undone = kept("aliases", "--undo", alias["alias_id"], "--store", store, *HASH)

    assert undone.code == 0
    reported = f"forgotten: an exact copy of {alias['canonical_id']}, which stays\n"
    assert undone.out == reported
    assert kept("aliases", "--store", store, "--json").json["aliases"] == []
    again = kept("aliases", "--undo", alias["alias_id"], "--store", store, *HASH)
    assert "there is no alias" in again.complaint(3)


def test_usage_errors_are_one_line_with_code_2(store: str) -> None:
    """An unknown option, command, preset or embedder, and a missing argument."""
    for words, reported in (
        (("search", "pump", "--nope"), "--nope"),
        (("serch",), "serch"),
        (("search",), "--help"),
        (("search", "pump", "--preset", "nope"), "no preset 'nope'"),
        (("search", "pump", "--embedder", "nope"), "minilm, hash, openai"),
        (("ledger", "--limit", "0"), "--limit"),
        (("ledger", "--limit", "many"), "integer"),
    ):
        place = ("--store", store) if len(words) > 1 else ()
        assert reported in kept(*words, *place).complaint(2), words


def test_a_tenant_that_is_not_there_is_an_error(store: str) -> None:
    """A typing error is not mistaken for an empty knowledge base."""
    for command in (("search", "pump", *HASH), ("documents",), ("ledger",)):
        ran = kept(*command, "--store", store, "--tenant", "nobody")
        assert "known are: 'default'" in ran.complaint(3)


def test_a_store_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    """Reading commands do not make one."""
    for command in (("search", "pump"), ("documents",), ("doctor",), ("reembed",)):
        ran = kept(*command, "--store", tmp_path / "nowhere")
        assert "kept ingest PATH" in ran.complaint(3)
    assert not (tmp_path / "nowhere").exists()


def test_variables_stand_for_options_and_options_win(
    store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """KEPT_STORE, KEPT_TENANT and KEPT_EMBEDDER are read; an option is stronger."""
    monkeypatch.setenv("KEPT_STORE", store)
    monkeypatch.setenv("KEPT_EMBEDDER", "hash")
    monkeypatch.setenv("KEPT_TENANT", "nobody")

    assert "'nobody'" in kept("documents").complaint(3)
    assert kept("search", "TW-C235 pump", "--tenant", "default").code == 0
    monkeypatch.delenv("KEPT_TENANT")
    assert len(kept("documents", "--json").json["documents"]) == 3


def test_a_wrong_variable_is_named(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says which variable, what it is and what is expected."""
    monkeypatch.setenv("KEPT_MAX_CHUNKS", "lots")

    message = kept("documents", "--store", store).complaint(2)

    assert "KEPT_MAX_CHUNKS" in message
    assert "lots" in message


def test_an_ascii_terminal_does_not_crash(store: str) -> None:
    """Unknown characters are escaped, and JSON stays JSON."""
    ascii_only = {"PYTHONIOENCODING": "ascii"}

    table = apart("documents", "--store", store, env=ascii_only)
    shown = apart("documents", "--store", store, "--json", env=ascii_only)

    assert table.code == shown.code == 0, table.err + shown.err
    titles = {row["title"] for row in json.loads(shown.out)["documents"]}
    assert "Der Käse" in titles
    assert "Der K\\xe4se" in table.out


def test_output_to_a_pipe_has_no_escapes(store: str) -> None:
    """Colours are for terminals; NO_COLOR and pipes have none."""
    for env in ({}, {"NO_COLOR": "1"}):
        ran = apart("documents", "--store", store, env=env)
        assert ran.code == 0
        assert "\x1b" not in ran.out


def test_no_color_is_kept_to_on_a_terminal(store: str) -> None:
    """On a real terminal, NO_COLOR leaves no colour in the output."""
    leader, follower = os.openpty()
    process = started(
        *("documents", "--store", store),
        env={"NO_COLOR": "1", "TERM": "xterm-256color"},
        stdout=follower,
    )
    os.close(follower)
    assert process.wait(120) == 0
    out = os.read(leader, 100_000)
    os.close(leader)
    assert process.stderr is not None
    process.stderr.close()
    assert b"Prices" in out
    assert not re.search(rb"\x1b\[[0-9;]*(3[0-7]|9[0-7]|38;)", out)


def test_a_reader_that_goes_away_ends_the_command_quietly(tmp_path: Path) -> None:
    """No traceback; code 141, as of any tool whose pipe is closed."""
    docs = tmp_path / "docs"
    docs.mkdir()
    for i in range(300):
        (docs / f"{i}.txt").write_text(f"Page {i} is about boiler {i}. " * 20)
    process = started("ingest", docs, "--store", tmp_path / "s", *HASH, "--json")
    assert process.stdout is not None
    assert process.stderr is not None
    first = json.loads(process.stdout.readline())
    process.stdout.close()
    code, err = process.wait(120), process.stderr.read()
    process.stderr.close()

    assert (code, err) == (141, b"")
    shown = kept("documents", "--store", tmp_path / "s", "--json").json["documents"]
    assert first["document_id"] in {row["document_id"] for row in shown}
    assert len(shown) < 300


def test_ctrl_c_keeps_what_was_acknowledged(tmp_path: Path) -> None:
    """Code 130, one line, and every document with a printed receipt is stored."""
    docs = tmp_path / "docs"
    docs.mkdir()
    for i in range(400):
        (docs / f"{i}.txt").write_text(f"Page {i} is about boiler {i}. " * 20)
    command = ("ingest", docs, "--store", tmp_path / "s", *HASH, "--json")
    process = started(*command, bufsize=0)
    assert process.stdout is not None
    first = process.stdout.readline()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)

    assert process.returncode == 130
    assert err == b"kept: interrupted; what was acknowledged is stored\n"
    whole = (first + out).rpartition(b"\n")[0].splitlines()
    body = {json.loads(line)["document_id"] for line in whole}
    shown = kept("documents", "--store", tmp_path / "s", "--json").json["documents"]
    assert body <= {row["document_id"] for row in shown}
    assert len(body) < 400
    assert kept("doctor", "--check", "--store", tmp_path / "s").code == 0


@pytest.mark.parametrize(
    ("code", "ends", "message"),
    [
        pytest.param(
            """
import sys, threading
import kept.doors.cli
def interrupted(**given):
    raise KeyboardInterrupt
sys.modules["kept.doors.cli.main"].app_for = lambda words: interrupted
threading.Thread(target=threading.Event().wait).start()
kept.doors.cli.main()
""",
            130,
            b"kept: interrupted; what was acknowledged is stored\n",
            id="beside a thread that goes on",
        ),
        pytest.param(
            """
import os, signal, sys
class Interrupting:
    def find_spec(self, name, path, target=None):
        if name == "kept.doors.cli.main":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupting())
import kept.doors.cli
""",
            -signal.SIGINT,
            b"",
            id="while it loads",
        ),
    ],
)
def test_an_interrupt_never_shows_a_traceback(
    code: str, ends: int, message: bytes
) -> None:
    """Pressing it once is enough; a second time prints nothing more."""
    ran = subprocess.run(
        [sys.executable, "-c", code],
        check=False,
        capture_output=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )

    assert (ran.returncode, ran.stderr) == (ends, message)


def test_a_full_disk_for_the_output_is_no_bug() -> None:
    """A full disk behind standard output is an error, not a bug to report."""
    with Path("/dev/full").open("wb") as full:
        ran = apart("models", "list", "--json", stdout=full)

    assert "the output cannot be used (No space left on dev" in ran.complaint(3)


def test_a_report_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """The file, what kept it from being written, and no talk of a bug."""
    (tmp_path / "taken").write_text("no folder")
    page = tmp_path / "taken" / "page.html"
    qrels, run = tmp_path / "qrels", tmp_path / "run"
    qrels.write_text("q1 0 d1 1\n")
    run.write_text("q1 Q0 d1 1 0.9 other\n")

    ran = kept("eval", "trec", qrels, run, "--out", page)

    assert f"'{page}' cannot be used (Not a directory)" in ran.complaint(3)


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (("eval", "none"), "--html"),
        (("eval", "none"), "--junit"),
        (("eval", "fixture", "none"), "--junit"),
        (("compare", "none", "none"), "--html"),
        (("audit-retriever", "none:none", "--queries", "none"), "--html"),
    ],
)
def test_a_report_is_refused_before_the_work_for_it(
    tmp_path: Path, words: tuple[str, ...], option: str
) -> None:
    """Nothing else is looked at, not even what there is to measure."""
    (tmp_path / "taken").write_text("no folder")
    page = tmp_path / "taken" / "page"

    ran = kept(*words, option, page)

    assert "taken" in ran.complaint(3)


def test_closed_streams_change_no_exit_code(tmp_path: Path) -> None:
    """A service manager may start us with nowhere to print to."""
    code = "import os, sys; os.closerange(1, 3); os.execv(sys.argv[1], sys.argv[1:])"
    main = "from kept.doors.cli import main; main()"
    words = ("documents", "--store", str(tmp_path / "none"))

    ran = subprocess.run(
        [sys.executable, "-c", code, sys.executable, "-c", main, *words],
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )

    assert ran.returncode == 3


def test_exit_codes_are_documented() -> None:
    """Every code that an error or a command has is in the reference."""
    page = (ROOT / "docs" / "reference" / "exit-codes.md").read_text()
    documented = {int(code) for code in re.findall(r"^\| (\d+) \|", page, re.MULTILINE)}
    codes = {
        kind.exit_code
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, errors.KeptError)
    }

    assert codes | {0, 7, 8, 70, 130, 141} <= documented


def test_an_installed_command_starts() -> None:
    """The entry point works as installed."""
    script = Path(sys.executable).with_name("kept")
    if not script.exists():
        pytest.skip(f"Kept is not installed beside {sys.executable}")

    ran = subprocess.run([script, "--help"], capture_output=True, check=False)

    assert ran.returncode == 0, ran.stderr


def test_references_of_an_item_are_found_by_search(base: KnowledgeBase) -> None:
    """The few-shot preset asks for an item, and the command line can name one."""
    base.add("I wake up at four and lie awake.", labels={"Sleep": 2})
    command = ("search", "I cannot sleep through", "--store", base.settings.store)

    ran = kept(*command, *HASH, "--preset", "few_shot", "--item", "Sleep", "--json")

    [selected] = ran.json["selected"]
    assert selected["text"] == "I wake up at four and lie awake."
