"""Commands on PostgreSQL print what they print on a folder."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from commands import Ran, kept
from kept.stores.postgres.store import PostgresStore

PUMP = "d396e6b50debc0235c7e7b6e:0000"
QUESTION = "What does the pump of model TW-C235 cost?"
TEXTS = {
    "pump.txt": "The pump of model TW-C235 costs 410 euro without tax.",
    "leave.txt": "Employees have 28 days of leave, and five more after ten years.",
    "trial.txt": "Die Probezeit beträgt sechs Monate, die Kündigungsfrist zwei Wochen.",
    "pump_copy.txt": "The pump of model TW-C235 costs 410 euro, without tax!",
}


@pytest.fixture(autouse=True)
def _cheap_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Embed without a model."""
    monkeypatch.setenv("KEPT_EMBEDDER", "hash")


@pytest.fixture
def stores(tmp_path: Path, new_store: Callable[[str], str]) -> tuple[str, str]:
    """Return a folder and a database that took the same files in."""
    files = tmp_path / "files"
    files.mkdir()
    for name, text in TEXTS.items():
        (files / name).write_text(text)
    there = (str(tmp_path / "folder"), new_store("kb"))
    for store in there:
        run("ingest", files, store=store)
    return there


def run(*words: object, store: str) -> Ran:
    """Run a command on a store; it must end well."""
    ran = kept(*words, "--store", store)
    assert ran.code == 0, ran
    return ran


def both(stores: tuple[str, str], *words: object) -> list[Ran]:
    """Run a command on both stores, one after the other."""
    return [run(*words, store=store) for store in stores]


def stable(ran: Ran) -> object:
    """Return what a command printed, without what differs from run to run."""

    def plain(value: object) -> object:
        if isinstance(value, dict):
            left_out = {"timings", "at", "created_at"}
            return {k: plain(v) for k, v in value.items() if k not in left_out}
        return [plain(v) for v in value] if isinstance(value, list) else value

    return plain(ran.json)


COMMANDS = (
    ("search", QUESTION, "--json"),
    ("search", "Wie lange ist die Probezeit?", "--explain", "--json"),
    ("ask", QUESTION, "--json"),
    ("why", PUMP, QUESTION, "--json"),
    ("documents", "--json"),
    ("ledger", "--json"),
    ("ledger", "--similarities", "--json"),
    ("aliases", "--json"),
    ("doctor", "--check", "--json"),
)


def test_commands_print_the_same(stores: tuple[str, str]) -> None:
    """The same JSON, byte by byte, but for clocks."""
    for words in COMMANDS:
        folder, server = (json.dumps(stable(ran)) for ran in both(stores, *words))

        assert server == folder, words


def test_what_is_not_cited_has_a_reason(stores: tuple[str, str]) -> None:
    """why-not finds a document by its source, and says the same of it."""
    source = str(Path(stores[0]).parent / "files" / "leave.txt")
    words = ("why-not", source, QUESTION, "--json")

    folder, server = (json.dumps(stable(ran)) for ran in both(stores, *words))

    assert server == folder


def test_an_alias_is_undone_and_a_document_deleted(stores: tuple[str, str]) -> None:
    """Both stores end up equal, ledgers included."""
    [alias] = run("aliases", "--json", store=stores[0]).json["aliases"]
    ids = {
        row["title"]: row["document_id"]
        for row in run("documents", "--json", store=stores[0]).json["documents"]
    }
    gone = next(name for title, name in ids.items() if title.startswith("Employees"))

    undone = both(stores, "aliases", "--undo", alias["alias_id"], "--json")
    deleted = both(stores, "delete", gone, "--json")

    assert stable(undone[0]) == stable(undone[1])
    assert stable(deleted[0]) == stable(deleted[1])
    for words in (("documents", "--json"), ("ledger", "--json")):
        folder, server = (stable(ran) for ran in both(stores, *words))
        assert server == folder
    both(stores, "doctor", "--check")


def test_a_question_is_replayed(
    stores: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was recorded comes out the same when it is asked again."""
    monkeypatch.setenv("KEPT_RECORD_QUERIES", "text")
    both(stores, "search", QUESTION)

    folder, server = both(stores, "replay", "--last", 1, "--json")

    assert "identical" in server.out
    assert stable(server) == stable(folder)


def test_settings_of_a_tenant_count(stores: tuple[str, str]) -> None:
    """They are kept on the server; its address is shown without the password."""
    server = stores[1]
    changed = run("settings", "--set", "TOP_K=1", "--json", store=server)
    found = run("search", QUESTION, "--json", store=server).json

    assert len(found["selected"]) <= 1
    assert "postgresql://" in changed.out
    assert "let+me" not in changed.out
    assert "let%2Bme" not in changed.out


def test_the_embedder_is_changed(stores: tuple[str, str]) -> None:
    """All chunks get new vectors under the next epoch, and the old ones go."""
    server = stores[1]
    before = run("search", QUESTION, "--json", store=server)
    ran = run("reembed", store=server)
    after = run("search", QUESTION, "--json", store=server)

    assert "3 chunks embedded" in ran.out
    assert stable(after) == stable(before)
    assert run("doctor", "--check", store=server).code == 0


@pytest.mark.parametrize(
    ("damage", "what"),
    [
        ("DELETE FROM postings", "keyword index"),
        ("DELETE FROM facts", "filters"),
        ("UPDATE terms SET df = df + 1", "statistics"),
        ("UPDATE vectors SET live = NOT live", "vectors"),
        ("UPDATE states SET state = repeat('x', 32)::bytea", "statistics"),
    ],
)
def test_the_doctor_finds_and_repairs(
    tmp_path: Path, new_store: Callable[[str], str], damage: str, what: str
) -> None:
    """Derived rows are rewritten; then the same question has the same answer."""
    address = new_store("kb")
    file = tmp_path / "pump.txt"
    file.write_text(TEXTS["pump.txt"])
    run("ingest", file, "--meta", "team=sales", store=address)
    before = run("search", QUESTION, "--json", store=address)
    store = PostgresStore(address)
    with store.database.writing("default") as connection:
        connection.execute(damage)
    store.close()

    sick = kept("doctor", "--check", "--json", "--store", address)
    cured = run("doctor", "--json", store=address)
    after = run("search", QUESTION, "--json", store=address)

    assert sick.code == 8
    assert what in {one["what"] for one in sick.json["findings"]}
    assert all(one["repaired"] for one in cured.json["findings"])
    assert run("doctor", "--check", "--json", store=address).json == {"findings": []}
    assert stable(after) == stable(before)


def test_a_database_without_a_knowledge_base_is_reported(
    new_store: Callable[[str], str],
) -> None:
    """A command that only reads makes no tables; the password is not shown."""
    address = new_store("empty")

    complaint = kept("search", "x", "--store", address).complaint(3)

    assert "there is no knowledge base in postgresql://" in complaint
    assert "let+me" not in complaint
    assert "let%2Bme" not in complaint


def test_an_unknown_scheme_is_refused() -> None:
    """With what is expected instead."""
    complaint = kept("search", "x", "--store", "mysql://a:secret@b/c").complaint(2)

    assert "there is no store for mysql://" in complaint
    assert "postgresql://" in complaint
    assert "secret" not in complaint
