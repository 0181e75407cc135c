"""With its documents in PostgreSQL, a Milvus store keeps the same promises."""

import json
from collections.abc import Callable, Iterator
from urllib.parse import quote

import pytest
from lite_server import LiteServer

import postgres_pair
from kept.knowledge_base.base import KnowledgeBase
from kept.knowledge_base.settings import Settings
from kept.search.ports import Store
from kept.search.render import found_json
from kept.stores.milvus.address import address_of
from kept.stores.milvus.postgres_store import MilvusPostgresStore
from kept.stores.milvus.view import View
from kept.stores.sql import only
from kept.testing.contracts import StoreContract
from kept.testing.store_contract import PAGES

QUESTIONS = ("How much does the pump TW-C235 cost?", "INV-49302", "pump valve leaks")


def url_of(milvus: LiteServer, dsn: str) -> str:
    """Return the address of a store with its documents at *dsn*."""
    return f"milvus://127.0.0.1:{milvus.port}?metadata={quote(dsn, safe='')}"


class TestMilvusPostgresStore(StoreContract):
    """The contract, on two servers."""

    @pytest.fixture(autouse=True)
    def _servers(
        self, milvus: LiteServer, make_database: Callable[[], str]
    ) -> Iterator[None]:
        self.milvus = milvus
        self.make_database = make_database
        self.opened: list[MilvusPostgresStore] = []
        yield
        for store in self.opened:
            store.close()

    def store(self, name: str) -> Store:
        """Return a store in a database of its own, and collections of its own."""
        address = address_of(url_of(self.milvus, self.make_database()))
        store = MilvusPostgresStore(address)
        self.opened.append(store)
        return store


def answers_of(base: KnowledgeBase) -> list[str]:
    """Return all answers to the questions, without timings."""
    answers = [found_json(base.search(question)) for question in QUESTIONS]
    return [json.dumps({**answer, "timings": None}) for answer in answers]


def test_it_answers_as_the_embedded_store_and_mends_its_collection(
    milvus: LiteServer,
    make_database: Callable[[], str],
    make_base: Callable[..., KnowledgeBase],
) -> None:
    """Same bytes through the settings; what the server lost is found and put back."""
    here = make_base("embedded")
    url = url_of(milvus, make_database())
    with KnowledgeBase(Settings.of({"store": url, "embedder": "hash"})) as there:
        for page in PAGES:
            here.add(page)
            there.add(page)
        expected = answers_of(here)
        store = there.store
        assert isinstance(store, MilvusPostgresStore)

        assert answers_of(there) == expected
        with store.shelf("default") as shelf:
            assert isinstance(shelf.indexes, View)
            name = shelf.indexes.collection.name
            keys = shelf.indexes.dense.keys().tolist()
        store.server.remove(name, keys[:2])
        findings = store.examine(repair=True)

        assert [(f.what, f.repaired) for f in findings] == [("collection", True)]
        assert store.examine(repair=False) == []
        assert store.rebuild() == 1
        assert answers_of(there) == expected


def test_searches_read_documents_from_a_replica(milvus: LiteServer) -> None:
    """A process finds what it ingested; a lagging replica shows what it has.

    The collection is ahead of the replica then, and looking after it reads the
    primary.
    """
    with postgres_pair.running() as (primary, standby):
        given = {
            "store": url_of(milvus, primary.address()),
            "store_replica": standby.address(),
            "embedder": "hash",
            "record_queries": "off",
        }
        others = {**given, "store_replica": None}
        with (
            KnowledgeBase(Settings.of(given)) as base,
            KnowledgeBase(Settings.of(others)) as other,
        ):
            taken = [base.add(page)[0].document_id for page in PAGES[:3]]
            postgres_pair.caught_up(primary, standby)
            assert on_a_replica(base)
            expected = answers_of(base)
            assert expected == answers_of(other)

            with standby.connect() as connection:
                connection.execute("SELECT pg_wal_replay_pause()")
            for document in taken[:2]:
                other.delete(document)
            other.add(PAGES[3])
            ahead = answers_of(other)

            assert on_a_replica(base)
            assert answers_of(base) == expected != ahead
            assert base.store.examine(repair=True) == []
            base.add(PAGES[4])
            assert not on_a_replica(base)
            assert answers_of(base) == answers_of(other) != ahead


def on_a_replica(base: KnowledgeBase) -> bool:
    """Return whether a search is answered by a replica."""
    with base.store.shelf("default") as shelf:
        (following,) = only(shelf.connection, "SELECT pg_is_in_recovery()")
        return bool(following)
