"""A Milvus server: the few calls that are made, each safe to repeat.

Every question is asked with consistency level ``Strong``: an answer takes in all
that was acknowledged before it was asked, by whichever process. A document that was
taken in is found by the next search, on every node; weaker levels may miss the last
seconds.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from kept import _runtime as extras
from kept.stores.milvus.address import Address
from kept.stores.milvus.server_errors import (
    CollectionAwayError,
    ConnectionLostError,
    check_version,
    translated,
)
from kept.stores.milvus.term_names import LONGEST_TEXT
from kept.stores.sqlite.index.vector_file import Scored

CONSISTENCY = "Strong"
# Milvus returns at most so many rows of a search.
MOST_FOUND = 16_384
# Well below the largest message that the server takes.
AT_ONCE_BYTES = 8_000_000
MARKER = -1
K1, B = 1.2, 0.75
_FIRST_PAUSE_SECONDS = 0.1
_LONGEST_PAUSE_SECONDS = 1.0
_ROW_BYTES = 64

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ChunkRow:
    """A chunk as the server holds it: its key, its document, its words, its vector."""

    key: int
    doc: int
    terms: str
    vector: NDArray[np.float32]

    @property
    def size(self) -> int:
        """About how many bytes it has on the wire."""
        return _ROW_BYTES + len(self.terms) + self.vector.nbytes


@dataclass(frozen=True, slots=True)
class Mark:
    """How far a collection has come: the last change it holds, and the state then."""

    seq: int
    state: str


class MilvusServer:
    """A connection to one server; it connects when it is first needed."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self.where = f"{address.host}:{address.port}"
        self._client: Any = None
        self._connecting = threading.Lock()

    def close(self) -> None:
        """Let go of the connection."""
        self._leave(self._client)

    def collections(self, prefix: str) -> list[str]:
        """Return the collections whose name starts with *prefix*."""
        names = self._asked("list_collections")
        return sorted(name for name in names if name.startswith(prefix))

    def dimension(self, name: str) -> int | None:
        """Return how long a collection's vectors are; None if it is not there."""
        try:
            found = self._asked("describe_collection", name)
        except CollectionAwayError:
            return None
        [vector] = [f for f in found["fields"] if f["name"] == "vector"]
        return int(vector["params"]["dim"])

    def create(self, name: str, dimension: int) -> None:
        """Make an empty collection with its indexes, ready to be searched."""
        from pymilvus import DataType, Function, FunctionType  # noqa: PLC0415 -- slow

        client = self._connected()
        schema = client.create_schema(auto_id=False, enable_dynamic_field=False)
        schema.add_field("key", DataType.INT64, is_primary=True)
        schema.add_field("doc", DataType.INT64)
        schema.add_field(
            "terms",
            DataType.VARCHAR,
            max_length=LONGEST_TEXT,
            enable_analyzer=True,
            analyzer_params={"tokenizer": "standard"},
        )
        schema.add_field("sparse", DataType.SPARSE_FLOAT_VECTOR)
        schema.add_field("vector", DataType.FLOAT_VECTOR, dim=dimension)
        schema.add_function(
            Function(
                name="bm25",
                function_type=FunctionType.BM25,
                input_field_names=["terms"],
                output_field_names=["sparse"],
            )
        )
        indexes = client.prepare_index_params()
        indexes.add_index(
            "vector",
            index_type=self.address.kind,
            metric_type="COSINE",
            params=self.address.building,
        )
        # The other algorithms cache the highest scores there were under an average
        # length that has changed since.
        indexes.add_index(
            "sparse",
            index_type="SPARSE_INVERTED_INDEX",
            metric_type="BM25",
            params={"bm25_k1": K1, "bm25_b": B, "inverted_index_algo": "TAAT_NAIVE"},
        )
        self._asked(
            "create_collection",
            name,
            schema=schema,
            consistency_level=CONSISTENCY,
            num_shards=self.address.shards,
        )
        self._asked("create_index", name, indexes, sync=False)
        self.load(name)

    def load(self, name: str) -> None:
        """Have a collection ready to be searched."""
        self._asked("load_collection", name, replica_number=self.address.replicas)

    def drop(self, name: str) -> None:
        """Remove a collection; one that is not there is no error."""
        self._asked("drop_collection", name)

    def mark(self, name: str) -> Mark | None:
        """Return how far a collection has come; None if it does not say."""
        rows = self._asked(
            "query",
            name,
            ids=[MARKER],
            output_fields=["doc", "terms"],
            consistency_level=CONSISTENCY,
        )
        return Mark(int(rows[0]["doc"]), str(rows[0]["terms"])) if rows else None

    def set_mark(self, name: str, mark: Mark, dimension: int) -> None:
        """Say how far a collection has come."""
        vector = np.zeros(dimension, np.float32)
        vector[0] = 1.0
        self.put(name, [ChunkRow(MARKER, mark.seq, mark.state, vector)], new=False)

    def put(self, name: str, rows: Sequence[ChunkRow], *, new: bool) -> None:
        """Store rows in batches; *new* ones are known not to be there yet."""
        for part in _parts(rows):
            written = [
                {
                    "key": row.key,
                    "doc": row.doc,
                    "terms": row.terms,
                    "vector": row.vector,
                }
                for row in part
            ]
            # An insert that is sent twice would store the rows twice; an upsert may be
            # repeated.
            self._asked("insert" if new else "upsert", name, written, again=not new)

    def remove(self, name: str, keys: Sequence[int]) -> None:
        """Remove rows; those that are not there are no error."""
        for start in range(0, len(keys), MOST_FOUND):
            self._asked("delete", name, ids=list(keys[start : start + MOST_FOUND]))

    def nearest(
        self, name: str, vector: NDArray[np.float32], depth: int, where: str = ""
    ) -> Scored:
        """Return keys and cosines, the nearest first."""
        looking = self.address.searching(depth)
        return self._found(name, "vector", vector, depth, where, looking)

    def wordiest(self, name: str, text: str, depth: int, where: str = "") -> Scored:
        """Return keys and the server's BM25, the best first."""
        keys, scores = self._found(name, "sparse", text, depth, where, {})
        return keys, np.abs(scores)

    def keys(self, name: str) -> NDArray[np.int64]:
        """Return the key of every chunk in a collection, in order."""
        found = [int(row["key"]) for row in self._every(name, ["key"])]
        return np.sort(np.array(found, np.int64))

    def vectors(self, name: str, keys: Sequence[int]) -> dict[int, NDArray[np.float32]]:
        """Return vectors as the server holds them, by key."""
        found: dict[int, NDArray[np.float32]] = {}
        for start in range(0, len(keys), 1_000):
            rows = self._asked(
                "query",
                name,
                ids=list(keys[start : start + 1_000]),
                output_fields=["key", "vector"],
                consistency_level=CONSISTENCY,
            )
            found |= {
                int(row["key"]): np.asarray(row["vector"], np.float32) for row in rows
            }
        return found

    def _every(self, name: str, fields: list[str]) -> Iterator[dict[str, Any]]:
        pages = self._asked(
            "query_iterator",
            name,
            batch_size=1_000,
            filter=f"key > {MARKER}",
            output_fields=fields,
            consistency_level=CONSISTENCY,
        )
        try:
            while rows := self._translating(pages.next):
                yield from rows
        finally:
            pages.close()

    def _found(  # noqa: PLR0913 -- a search has as many sides
        self,
        name: str,
        field: str,
        query: Any,  # noqa: ANN401 -- a vector or a text
        depth: int,
        where: str,
        looking: dict[str, int],
    ) -> Scored:
        [hits] = self._asked(
            "search",
            name,
            data=[query],
            anns_field=field,
            limit=depth,
            filter=where,
            search_params={"params": looking},
            consistency_level=CONSISTENCY,
        )
        keys = np.array([hit["key"] for hit in hits], np.int64)
        scores = np.array([hit["distance"] for hit in hits], np.float64)
        return keys, scores

    def _asked(
        self,
        what: str,
        *values: Any,  # noqa: ANN401 -- the client's
        again: bool = True,
        **named: Any,  # noqa: ANN401 -- the client's
    ) -> Any:  # noqa: ANN401 -- the client's
        """Ask the client; for a while, again, where the connection was lost.

        Only what may be done twice is asked *again*, by way of a new connection.
        """
        until = time.monotonic() + self.address.patience_seconds
        pause = _FIRST_PAUSE_SECONDS
        # Without a timeout the client waits for a silent server for ever.
        named["timeout"] = self.address.timeout_seconds
        while True:
            client = None
            try:
                client = self._connected()
                return self._translating(
                    partial(getattr(client, what), *values, **named)
                )
            except ConnectionLostError:
                self._leave(client)
                if not again or time.monotonic() + pause > until:
                    raise
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)

    def _translating(self, ask: Callable[[], T]) -> T:
        import grpc  # noqa: PLC0415 -- with the client
        from pymilvus.exceptions import MilvusException  # noqa: PLC0415 -- slow

        try:
            return ask()
        except (MilvusException, grpc.RpcError, grpc.FutureTimeoutError) as error:
            raise translated(error, self.where) from error

    def _leave(self, client: Any) -> None:  # noqa: ANN401 -- the client has no types
        """Let go of a connection that is lost, and not of one that came after it.

        The legs of a search share one, and both of them notice.
        """
        with self._connecting:
            if client is None or client is not self._client:
                return
            self._client = None
        client.close()

    def _connected(self) -> Any:  # noqa: ANN401 -- the client has no types
        with self._connecting:
            if self._client is None:
                self._client = self._new()
            return self._client

    def _new(self) -> Any:  # noqa: ANN401 -- the client has no types
        extras.MILVUS.demand()
        from pymilvus import MilvusClient  # noqa: PLC0415 -- slow, and optional

        # It logs every error with a traceback before it raises it.
        logging.getLogger("pymilvus").setLevel(logging.CRITICAL)
        made = self._translating(
            partial(
                MilvusClient,
                uri=self.address.uri,
                token=self.address.token,
                db_name=self.address.database,
                timeout=self.address.timeout_seconds,
                # Clients share a connection by address otherwise, and closing one would
                # close it for all.
                dedicated=True,
            )
        )
        check_version(self._translating(made.get_server_version), self.where)
        return made


def _parts(rows: Sequence[ChunkRow]) -> Iterator[list[ChunkRow]]:
    """Yield the rows in batches that a message can hold."""
    part: list[ChunkRow] = []
    size = 0
    for row in rows:
        if part and size + row.size > AT_ONCE_BYTES:
            yield part
            part, size = [], 0
        part.append(row)
        size += row.size
    if part:
        yield part
