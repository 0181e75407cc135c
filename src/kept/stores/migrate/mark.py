"""The mark of a migration: which store a target is being filled from."""

from collections.abc import Iterator
from contextlib import contextmanager

from kept.errors import InputError, StoreBusyError, StoreError
from kept.stores.meta import meta_of
from kept.stores.ports import ManagedStore
from kept.stores.sql import first

MARK = "migration"
_ANYTHING = ("tenants", "access_keys", "tenant_policies", "jobs", "audit")


def refuse_unfinished(store: ManagedStore) -> None:
    """Refuse to work with a store that is not filled yet."""
    with store.database.reading() as connection:
        origin = meta_of(connection).get(MARK)
    if origin is not None:
        msg = (
            f"a migration from {origin} into {store.where} has not ended; run "
            f"'kept migrate FROM TO' again with the same stores to finish it"
        )
        raise StoreError(msg)


@contextmanager
def alone(target: ManagedStore) -> Iterator[None]:
    """Fill *target* alone: two who did would be in each other's way."""
    holds = target.holds()
    try:
        if not holds.take(MARK):
            msg = (
                f"another process is migrating into {target.where}; wait until it has "
                "ended, or end it and run this again to go on"
            )
            raise StoreBusyError(msg)
        yield
    finally:
        holds.close()


def begin(target: ManagedStore, origin: str) -> bool:
    """Mark an empty target; return whether an earlier attempt is continued."""
    with target.database.writing() as connection:
        target.database.alone(connection, MARK)
        meta = meta_of(connection)
        if meta.get(MARK) == origin:
            return True
        if MARK in meta:
            msg = (
                f"{target.where} is being filled from {meta[MARK]}, not from {origin}; "
                "finish that migration first, or choose another target"
            )
            raise InputError(msg)
        found = [
            table
            for table in _ANYTHING
            if first(connection, f"SELECT 1 FROM {table} LIMIT 1")  # noqa: S608 -- ours
        ]
        if found or "embedder" in meta:
            msg = (
                f"{target.where} is not empty ({', '.join(found) or 'an embedder'}); "
                "a migration needs a target that holds nothing"
            )
            raise InputError(msg)
        connection.execute("INSERT INTO meta VALUES (?, ?)", (MARK, origin))
        return False


def end(target: ManagedStore) -> None:
    """Take the mark away: the target is whole."""
    with target.database.writing() as connection:
        connection.execute("DELETE FROM meta WHERE key = ?", (MARK,))
