"""Migrating: everything of a store arrives in another, once, and is verified."""

import io
import json
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import apsw
import pytest

from commands import kept, started
from kept.errors import InputError, StoreBusyError, StoreError
from kept.knowledge_base.base import KnowledgeBase
from kept.knowledge_base.migration import Migrated, migrate
from kept.knowledge_base.settings import Settings
from kept.stores.migrate import copy as copying
from kept.stores.migrate import verify as comparing
from kept.stores.service.audit_log import AuditLog, AuditRow
from kept.stores.service.jobs import Jobs
from kept.stores.service.keys import Access, Policy, Role
from kept.stores.sql import only

QUESTION = "What does the pump of model TW-C235 cost?"
PUMP = "The pump of model TW-C235 costs 410 euro without tax."
ITEM = {"kind": "text", "uri": "late", "name": "0", "fields": {}}
SETTINGS = Settings.of({"embedder": "hash", "record_queries": "text"})


@pytest.fixture
def addresses(
    tmp_path: Path, make_database: Callable[[], str]
) -> Callable[[str, str], str]:
    """Return a function that gives a store of a kind and a name its address."""
    made: dict[tuple[str, str], str] = {}

    def address(kind: str, name: str) -> str:
        if (kind, name) not in made:
            folder = str(tmp_path / name)
            made[kind, name] = make_database() if kind == "server" else folder
        return made[kind, name]

    return address


def filled(address: str, texts: int = 0) -> None:
    """Fill a store with something of everything."""
    for tenant in ("acme", "other"):
        settings = SETTINGS.changed(store=address, tenant=tenant)
        with KnowledgeBase(settings) as base:
            base.add(PUMP, source_uri="pump", tags=("price",), metadata={"team": "a"})
            base.add(f"{PUMP[:-1]}!", source_uri="copy")
            base.add(f"{PUMP[:-1]}!", source_uri="copy", title="A copy")
            base.add("The first version of a page.", source_uri="page", title="One")
            base.add("The first version of a page.", source_uri="page", title="Two")
            base.add("Employees have 28 days of leave \0 a year.", source_uri="page")
            for number in range(texts if tenant == "acme" else 0):
                topic = f"Page {number} tells of topic {number * 7919}."
                base.add(topic, source_uri=f"text-{number}")
            base.override({"TOP_K": 3})
            base.search(QUESTION)
    with KnowledgeBase(SETTINGS.changed(store=address, tenant="acme")) as base:
        _serve(base)


def _serve(base: KnowledgeBase) -> None:
    """Leave what a service leaves: keys, policies, audit and an unfinished job."""
    database, holds = base.store.database, base.store.holds()
    access = Access(database)
    key, _ = access.create("reader", Role.READER, "acme", token=f"kept_k_{'s' * 40}")
    access.begin_session(key.id, 2_000_000_000, 1)
    access.set_policy("acme", Policy(keep_questions=True))
    access.signing_secret()
    audit = AuditLog(database)
    row = {"principal": "p", "key_id": "k", "role": "reader", "outcome": "done"}
    for tenant in ("acme", "nobody"):
        audit.note(AuditRow(tenant=tenant, action="search", **row)).result()
    audit.close()
    jobs = Jobs(database, holds)
    jobs.add("acme", "p", "k", [{"kind": "url", "uri": "u", "fields": {}}])
    done = jobs.begin()
    assert done is not None
    jobs.end(jobs.progress(done, [{"status": "created"}]), "done")
    jobs.add("acme", "p", "k", [ITEM], job_id="late")
    base.store.spool().save("late", "0", io.BytesIO(b"A late text."))
    holds.close()


def silent(step: str, done: int, total: int) -> None:
    """Hear how far it is, and say nothing."""


def moved(source: str, target: str) -> Migrated:
    """Migrate, and return what was carried."""
    return migrate(SETTINGS, source, target, silent)


def answer(address: str) -> str:
    """Return what a question finds, but for clocks."""
    words = ("--tenant", "acme", "--embedder", "hash", "--json", "--store", address)
    found = kept("search", QUESTION, *words).json
    del found["timings"]
    return json.dumps(found)


@pytest.mark.parametrize(
    ("here", "there"), [("folder", "server"), ("server", "folder")]
)
def test_everything_arrives(
    addresses: Callable[[str, str], str], here: str, there: str
) -> None:
    """Tenants, histories, people, jobs and their sources; answers are the same."""
    source, target = addresses(here, "source"), addresses(there, "target")
    filled(source)

    done = moved(source, target)

    assert all(part.same for part in done.parts)
    rows = {(part.tenant, part.what): part.rows for part in done.parts}
    assert rows["acme", "documents"] == 3
    assert rows["acme", "aliases"] == 1
    assert rows["acme", "queries"] == 1
    assert rows[None, "access keys"] == 1
    assert rows[None, "audit"] == 2
    assert rows[None, "jobs"] == 2
    assert answer(target) == answer(source)
    with KnowledgeBase(SETTINGS.changed(store=target, tenant="acme")) as base:
        assert base.overrides() == {"top_k": 3}
        assert Access(base.store.database).check(f"kept_k_{'s' * 40}") is not None
        assert base.store.spool().read("late", "0") == b"A late text."
        assert base.store.examine(repair=False) == []
        [late] = base.add("A page that comes later.")
        newest = base.store.documents("acme")[-1]
    assert newest.document.id == late.document_id


def test_a_killed_migration_goes_on(
    tmp_path: Path,
    addresses: Callable[[str, str], str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Killed half-way, the same command finishes it; nothing is lost or doubled."""
    source = addresses("folder", "source")
    filled(source, texts=110)
    target = _half_filled(source, lambda attempt: addresses("server", f"to {attempt}"))
    refused = kept("search", "x", "--store", target, "--embedder", "hash")

    done = moved(source, target)

    assert "has not ended" in refused.complaint(4)
    assert done.resumed
    rows = {(part.tenant, part.what): part.rows for part in done.parts}
    assert rows["acme", "documents"] == 113
    assert rows["acme", "ledger"] == 116
    assert answer(target) == answer(source)
    again = kept("migrate", source, target)
    assert "is not empty" in again.complaint(3)


def _half_filled(source: str, target_of: Callable[[int], str]) -> str:
    """Kill migrations of *source* until one is caught half-way; return its target.

    On a machine that has other things to do, one may end before anybody looks.
    """
    for attempt in range(30):
        target = target_of(attempt)
        process = started("migrate", source, target, env={"KEPT_EMBEDDER": "hash"})
        while not _arrived(target) and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        if 0 < _arrived(target) < 113:
            return target
    message = "no migration was caught half-way"
    raise AssertionError(message)


def _arrived(address: str) -> int:
    """Return how many documents of acme are in a database, if it has tables yet."""
    import psycopg  # noqa: PLC0415 -- of the optional store

    with psycopg.connect(address, autocommit=True) as connection:
        row = connection.execute("SELECT to_regclass('kept.documents')").fetchone()
        if row is None or row[0] is None:
            return 0
        connection.execute("SELECT set_config('kept.tenant', 'acme', false)")
        connection.execute("SELECT set_config('kept.readers', '*', false)")
        counted = connection.execute("SELECT count(*) FROM kept.documents").fetchone()
    assert counted is not None
    return int(counted[0])


def test_more_documents_are_not_sorted_more_often(
    addresses: Callable[[str, str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No index has their order: it is asked for once, not with every few of them."""
    monkeypatch.setattr(copying, "DOCUMENTS", 2)
    monkeypatch.setattr(comparing, "DOCUMENTS", 2)
    sorts: list[int] = []
    for texts in (3, 9):
        source = addresses("folder", f"source-{texts}")
        filled(source, texts)
        asked: list[str] = []

        def listen(connection: apsw.Connection, asked: list[str] = asked) -> None:
            connection.trace_v2(
                apsw.SQLITE_TRACE_STMT, lambda event: asked.append(event["sql"])
            )

        with monkeypatch.context() as patched:
            patched.setattr(apsw, "connection_hooks", [listen])
            done = moved(source, addresses("folder", f"target-{texts}"))
        sorts.append(sum("FROM documents" in sql and "ORDER" in sql for sql in asked))
        rows = {(part.tenant, part.what): part.rows for part in done.parts}
        assert rows["acme", "documents"] == rows["acme", "order of arrival"]
        assert rows["acme", "documents"] == 3 + texts

    assert sorts[0] == sorts[1] > 0


@pytest.mark.parametrize("stop", range(6))
def test_it_can_stop_anywhere(
    addresses: Callable[[str, str], str], monkeypatch: pytest.MonkeyPatch, stop: int
) -> None:
    """Broken off behind any step, it is finished by the next attempt."""
    source, target = addresses("folder", "source"), addresses("folder", "target")
    filled(source)
    steps = ("_store", "_copy_table", "_copy_receipts", "_copy_spooled")
    name = (*steps, "_copy_secrets", "_copy_jobs")[stop]
    real = getattr(copying, name)

    def breaking(*given: object) -> None:
        real(*given)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(copying, name, breaking)
        with pytest.raises(KeyboardInterrupt):
            moved(source, target)

    done = moved(source, target)

    assert done.resumed
    assert all(part.same for part in done.parts)


@pytest.mark.parametrize("gone", [0, -1])
def test_a_source_that_was_changed_meanwhile_is_reported(
    addresses: Callable[[str, str], str], monkeypatch: pytest.MonkeyPatch, gone: int
) -> None:
    """A document that had arrived and was deleted since does not go unnoticed."""
    source, target = addresses("folder", "source"), addresses("folder", "target")
    filled(source)
    with monkeypatch.context() as patched:
        patched.setattr(copying, "_copy_table", _broken_off)
        with pytest.raises(KeyboardInterrupt):
            moved(source, target)
    with KnowledgeBase(SETTINGS.changed(store=source, tenant="acme")) as base:
        document = base.store.documents("acme")[gone].document.id
        base.store.intake("acme").delete(document, with_aliases=True)

    with pytest.raises(StoreError, match="empty the target and migrate again"):
        moved(source, target)

    with pytest.raises(StoreError, match="has not ended"):
        KnowledgeBase(SETTINGS.changed(store=target))


@pytest.mark.parametrize("kind", ["folder", "server"])
def test_a_target_is_filled_by_one_process(
    addresses: Callable[[str, str], str], kind: str
) -> None:
    """A second one gets an error, and the first is not disturbed."""
    source, target = addresses("folder", "source"), addresses(kind, "target")
    filled(source)
    met: list[Exception] = []

    def second(step: str, done: int, total: int) -> None:
        if not met:
            with pytest.raises(StoreBusyError, match="another process is") as one:
                moved(source, target)
            met.append(one.value)

    done = migrate(SETTINGS, source, target, second)

    assert len(met) == 1
    assert all(part.same for part in done.parts)


def test_a_difference_is_found(
    addresses: Callable[[str, str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row that differs in the target is reported, and the target stays locked."""
    source, target = addresses("folder", "source"), addresses("folder", "target")
    filled(source)
    real = copying.documents_of

    def careless(*given: object) -> list[copying.Carried]:
        return [replace(one, vectors=-one.vectors) for one in real(*given)]

    with monkeypatch.context() as patched:
        patched.setattr(copying, "documents_of", careless)
        with pytest.raises(StoreError, match="documents of acme"):
            moved(source, target)

    with pytest.raises(StoreError, match="has not ended"):
        KnowledgeBase(SETTINGS.changed(store=target))


def test_a_target_that_holds_something_is_refused(
    addresses: Callable[[str, str], str],
) -> None:
    """Nothing of it is changed, and no other migration is mixed in."""
    source, target = addresses("folder", "source"), addresses("folder", "target")
    filled(source)
    filled(target)

    with pytest.raises(InputError, match="is not empty"):
        moved(source, target)
    with pytest.raises(InputError, match="into itself"):
        moved(source, f"{source}/../source")
    with pytest.raises(InputError, match="no knowledge base"):
        moved(addresses("folder", "nothing"), target)

    with (
        KnowledgeBase(SETTINGS.changed(store=target)) as base,
        base.store.database.reading() as connection,
    ):
        assert only(connection, "SELECT COUNT(*) FROM tenants") == (2,)


def test_a_target_of_another_migration_is_refused(
    addresses: Callable[[str, str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says which store it is being filled from."""
    target = addresses("folder", "target")
    for name in ("one", "two"):
        filled(addresses("folder", name))
    with monkeypatch.context() as patched:
        patched.setattr(copying, "_copy_secrets", _broken_off)
        with pytest.raises(KeyboardInterrupt):
            moved(addresses("folder", "one"), target)

    with pytest.raises(InputError, match="is being filled from"):
        moved(addresses("folder", "two"), target)


def _broken_off(*given: object) -> None:
    raise KeyboardInterrupt
