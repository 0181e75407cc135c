"""Facts about the store itself: its embedder, and the epoch of its indexes."""

import hashlib
import secrets

from kept.errors import EmbedderMismatchError
from kept.stores.sql import Connection, every
from kept.text.tokens import analysis_id


def meta_of(connection: Connection) -> dict[str, str]:
    """Return everything the store knows of itself."""
    return dict(every(connection, "SELECT key, value FROM meta"))


def embedder_in(connection: Connection) -> tuple[str, int] | None:
    """Return the id and dimension of the embedder, if there is one yet."""
    meta = meta_of(connection)
    if "embedder" not in meta:
        return None
    return meta["embedder"], int(meta["dimension"])


def set_embedder(connection: Connection, embedder_id: str, dimension: int) -> None:
    """Name the embedder, and begin a new set of indexes."""
    connection.executemany(
        "INSERT OR REPLACE INTO meta VALUES (?, ?)",
        [("embedder", embedder_id), ("dimension", str(dimension))],
    )
    begin_epoch(connection)
    connection.execute(
        "INSERT OR IGNORE INTO meta VALUES ('analysis', ?)", (analysis_id(),)
    )


def begin_epoch(connection: Connection) -> None:
    """Begin a new set of indexes: those of the old one are not opened again."""
    connection.execute(
        "INSERT OR REPLACE INTO meta VALUES ('epoch', ?)", (secrets.token_hex(6),)
    )


def refuse_other(found: tuple[str, int], embedder_id: str, dimension: int) -> None:
    """Refuse another embedder than the store's, or another length of its vectors."""
    if found[0] != embedder_id:
        raise EmbedderMismatchError(found[0], embedder_id)
    if found[1] != dimension:
        stored, given = (f"{embedder_id}, {n} numbers" for n in (found[1], dimension))
        raise EmbedderMismatchError(stored, given)


def require_embedder(connection: Connection, embedder_id: str) -> None:
    """Refuse vectors of another embedder than the store's."""
    found = embedder_in(connection)
    if found is None or found[0] != embedder_id:
        raise EmbedderMismatchError(found[0] if found else "none", embedder_id)


def epoch_of(connection: Connection) -> tuple[str, int]:
    """Return which set of indexes is the current one, and its dimension."""
    meta = meta_of(connection)
    return meta.get("epoch", "empty"), int(meta.get("dimension", 1))


def fingerprint(state: bytes, embedder: tuple[str, int] | None) -> str:
    """Return what names a tenant's knowledge: its documents and their embedder."""
    name = embedder[0] if embedder else ""
    return hashlib.sha256(f"{state.hex()} {name}".encode()).hexdigest()[:32]
