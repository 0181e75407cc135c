"""A Milvus in trouble is a clear error or a safe retry; nothing is lost or doubled."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import grpc
import pytest
from lite_server import LiteServer, started
from pymilvus.grpc_gen import common_pb2, milvus_pb2

import small_disk
from free_ports import free_port
from kept.errors import SettingsError, StoreBusyError, StoreError, StoreFullError
from kept.knowledge_base.base import KnowledgeBase
from kept.knowledge_base.settings import Settings
from kept.stores.milvus import server_errors as faults
from kept.stores.milvus.address import address_of
from kept.stores.milvus.server import MilvusServer
from kept.stores.milvus.sqlite_store import MilvusStore
from kept.testing.store_contract import PAGES
from taking import long_text

Answer = Callable[[grpc.ServicerContext], bytes]


@contextmanager
def opened(url: str) -> Iterator[KnowledgeBase]:
    """Open a knowledge base on the hash embedder."""
    with KnowledgeBase(Settings.of({"store": url, "embedder": "hash"})) as base:
        yield base


@contextmanager
def answering(answers: dict[str, Answer]) -> Iterator[int]:
    """Run a gRPC server that gives each call its answer; yield its port."""

    class Calls(grpc.GenericRpcHandler):
        def service(
            self, handler_call_details: grpc.HandlerCallDetails
        ) -> grpc.RpcMethodHandler | None:
            answer = answers.get(handler_call_details.method.rpartition("/")[2])
            if answer is None:
                return None
            return grpc.unary_unary_rpc_method_handler(
                lambda request, context: answer(context)
            )

    server = grpc.server(ThreadPoolExecutor(2), handlers=[Calls()])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield port
    finally:
        server.stop(None).wait()


def refused(context: grpc.ServicerContext) -> bytes:
    """Turn a caller away as a Milvus with passwords does."""
    context.abort(
        grpc.StatusCode.UNAUTHENTICATED,
        "auth check failure, please check api key or username and password",
    )
    return b""


def connected(_: grpc.ServicerContext) -> bytes:
    """Welcome a client."""
    reply = milvus_pb2.ConnectResponse(status=common_pb2.Status(), identifier=1)
    return bytes(reply.SerializeToString())


def version(message: str) -> Answer:
    """Return the answer of a server of this version."""

    def answer(_: grpc.ServicerContext) -> bytes:
        reply = milvus_pb2.GetVersionResponse(
            status=common_pb2.Status(), version=message
        )
        return bytes(reply.SerializeToString())

    return answer


def test_a_server_that_is_not_there_is_named_with_advice(tmp_path: Path) -> None:
    """The address and what to do, within the time-out; the documents are safe."""
    port = free_port()
    url = f"milvus://127.0.0.1:{port}?metadata={tmp_path}"
    with opened(f"{url}&timeout_seconds=2&patience_seconds=0.5") as base:
        base.add(PAGES[0])
        began = time.monotonic()

        with pytest.raises(StoreBusyError, match=f"127.0.0.1:{port} cannot be reached"):
            base.search("When does the Leeds office open?")

        assert time.monotonic() - began < 60
        assert len(base.store.documents("default")) == 1


def test_a_wrong_token_is_not_reported_as_a_silent_server(tmp_path: Path) -> None:
    """The error names the setting that holds the token, and not the token."""
    with answering({"Connect": refused, "GetVersion": refused}) as port:
        url = f"milvus://me:wrong-secret@127.0.0.1:{port}?metadata={tmp_path}"
        store = MilvusStore(address_of(url))
        with pytest.raises(StoreError, match="refuses the token") as raised:
            store.server.collections("kept")
        store.close()

    assert "KEPT_STORE_TOKEN" in str(raised.value)
    assert "wrong-secret" not in str(raised.value)
    assert "wrong-secret" not in repr(store.server.address)


def test_a_server_that_cannot_rank_words_is_refused(tmp_path: Path) -> None:
    """BM25 came with 2.5; an older server is named with its version."""
    calls = {"Connect": connected, "GetVersion": version("v2.4.17")}
    with answering(calls) as port:
        url = f"milvus://127.0.0.1:{port}?metadata={tmp_path}"
        store = MilvusStore(address_of(url))
        with pytest.raises(StoreError, match=r"version v2\.4\.17.*upgrade it to 2\.5"):
            store.server.collections("kept")
        store.close()


@pytest.mark.parametrize(
    "message", ["v2.5.0", "2.6.4", "3.0.1", "milvus_lite-3.2.2", ""]
)
def test_a_server_that_can_is_taken(message: str) -> None:
    """So is a build without a number."""
    faults.check_version(message, "here")


def test_a_connection_lost_midway_loses_and_doubles_nothing(
    own_milvus: LiteServer, tmp_path: Path
) -> None:
    """Ingestion stops with an error, continues when run again, and finds all."""
    url = own_milvus.url(tmp_path / "base", patience_seconds=0, timeout_seconds=20)
    with opened(url) as base:
        base.add(PAGES[0])
        base.search("When does the Leeds office open?")
        own_milvus.stop()

        with pytest.raises(StoreBusyError, match="cannot be reached"):
            base.add(PAGES[1])
        stored = len(base.store.documents("default"))
        own_milvus.start()
        statuses = [base.add(page)[0].status for page in PAGES]
        found = base.search("Invoice INV-49302")

        assert stored == 1
        assert statuses == ["unchanged"] * stored + ["created"] * (len(PAGES) - stored)
        assert [c.chunk.text for c in found.selection.candidates] == [PAGES[1]]
        with base.store.shelf("default") as shelf:
            keys = shelf.indexes.dense.keys().tolist()  # type: ignore[attr-defined]  # of this store
        assert len(keys) == len(set(keys)) == len(PAGES)


def test_a_server_that_comes_back_in_time_is_not_noticed(
    own_milvus: LiteServer, tmp_path: Path
) -> None:
    """A restart within the patience only makes the search slower."""
    url = own_milvus.url(tmp_path / "base", patience_seconds=120)
    with opened(url) as base:
        base.add(PAGES[1])
        before = base.search("Invoice INV-49302").selection
        own_milvus.stop()
        back = threading.Timer(0.5, own_milvus.start)
        back.start()

        after = base.search("Invoice INV-49302").selection

        back.join()
        assert after == before
        assert len(after.candidates) == 1


def test_a_connection_that_another_leg_closed_is_reopened(
    milvus: LiteServer, tmp_path: Path
) -> None:
    """Both legs of a search share one, and the first that finds it lost closes it."""
    server = MilvusServer(address_of(milvus.url(tmp_path / "base")))
    server.collections("")
    closed = server._client  # noqa: SLF001 -- what the legs share
    closed.close()

    assert server.collections("nobody's") == []

    made = server._client  # noqa: SLF001 -- what the legs share
    server._leave(closed)  # noqa: SLF001 -- the other leg, late
    assert made is not closed
    assert server._client is made  # noqa: SLF001 -- what the legs share
    server.close()


def test_a_full_disk_of_the_server_is_reported_and_loses_nothing(
    tmp_path: Path,
) -> None:
    """With room again the same texts go in once, and all is found."""
    texts = [f"{n} {long_text(4_000)}" for n in range(30)]
    with (
        small_disk.mounted(24) as disk,
        contextmanager(started)(disk) as server,
        opened(server.url(tmp_path / "base", patience_seconds=0)) as base,
    ):
        base.add(PAGES[1])
        base.search("Invoice INV-49302")
        small_disk.fill(disk)

        with pytest.raises(StoreFullError, match="no room left"):
            list(map(base.add, texts))

        stored = len(base.store.documents("default")) - 1
        small_disk.empty(disk)
        statuses = [base.add(text)[0].status for text in texts[: stored + 1]]
        found = base.search("Invoice INV-49302")
        assert statuses == ["unchanged"] * stored + ["created"]
        assert [c.chunk.text for c in found.selection.candidates] == [PAGES[1]]
        assert base.store.examine(repair=False) == []


class ToldError(Exception):
    """An error as the client raises it: a code and a message."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


@pytest.mark.parametrize(
    ("code", "message", "kind", "said"),
    [
        (2, "Fail connecting to server", StoreBusyError, "cannot be reached"),
        (1, "Socket closed", StoreBusyError, "nothing is lost"),
        (65535, "auth check failure", StoreError, "refuses the token"),
        (100, "collection not found", faults.CollectionAwayError, "lacks"),
        (9, "memory quota exceeded", StoreFullError, "no room left"),
        (5, "something else", StoreError, "doctor --rebuild"),
    ],
)
def test_what_the_server_says_becomes_one_of_our_errors(
    code: int, message: str, kind: type[StoreError], said: str
) -> None:
    """Each says where, what the server said and what to do."""
    error = faults.translated(ToldError(code, message), "host:1")

    assert type(error) is kind or isinstance(error, kind)
    assert said in str(error)
    assert message in str(error)
    assert "host:1" in str(error)


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("milvus://?metadata=kb", "names no server"),
        ("milvus://host:19530", "where the documents themselves are kept"),
        ("milvus://host:no?metadata=kb", "port"),
        ("milvus://host?metadata=kb&index=magic", "index='magic'"),
        ("milvus://host?metadata=kb&shards=0", "shards='0'"),
        ("milvus://host?metadata=kb&prefix=a-b", "prefix='a-b'"),
        ("milvus://host?metadata=kb&colour=red", "colour='red'"),
    ],
)
def test_an_address_that_says_too_little_is_refused(url: str, problem: str) -> None:
    """The error says what is wrong with it and what is expected."""
    with pytest.raises(SettingsError, match="metadata=FOLDER") as raised:
        address_of(url)

    assert problem in str(raised.value)


def test_an_address_says_everything_about_a_server() -> None:
    """Login, database and parameters are read; the token of the settings wins."""
    url = (
        "milvus://me:a%40b@db.example:1234/kb?metadata=/data&tls=1&index=flat"
        "&prefix=mine&replicas=2&timeout_seconds=1.5"
    )

    address = address_of(url)

    assert (address.uri, address.database) == ("https://db.example:1234", "kb")
    assert address.token.split(":") == ["me", "a@b"]
    assert (address.kind, address.prefix, address.replicas) == ("FLAT", "mine", 2)
    assert address.timeout_seconds == 1.5
    assert address_of(url, "key").token.split(":") == ["key"]
