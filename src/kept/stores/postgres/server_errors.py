"""Faults of a PostgreSQL server, in words that say what to do."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import errors as sql
from psycopg.conninfo import conninfo_to_dict

from kept.errors import (
    SettingsError,
    StoreBusyError,
    StoreCorruptError,
    StoreError,
    StoreFullError,
    StoreReadOnlyError,
)

LOST = (
    sql.AdminShutdown,
    sql.CannotConnectNow,
    sql.ConnectionDoesNotExist,
    sql.ConnectionException,
    sql.ConnectionFailure,
    sql.CrashShutdown,
)
REFUSED = (sql.InvalidPassword, sql.InvalidAuthorizationSpecification)
REPEATABLE = (sql.SerializationFailure, sql.DeadlockDetected)


def parameters(dsn: str) -> dict[str, Any]:
    """Return the parts of *dsn*, or refuse it without showing any of it."""
    try:
        return dict(conninfo_to_dict(dsn))
    except psycopg.Error:
        msg = (
            "the address of the PostgreSQL server cannot be read; expected "
            "postgresql://user:password@host:5432/database, with special characters "
            "of the password percent-encoded"
        )
        raise SettingsError(msg) from None


def place(dsn: str) -> str:
    """Return which server and database *dsn* names; never a password."""
    found = parameters(dsn)
    port = f":{found['port']}" if "port" in found else ""
    database = found.get("dbname") or found.get("user") or ""
    return f"{found.get('host') or 'the local server'}{port}/{database}"


class StoreInterruptedError(StoreError):
    """A transaction did not happen, for no fault of its own; it may be tried again."""


class ReplicaMetError(StoreInterruptedError, StoreReadOnlyError):
    """The server can only be read; after a failover another one can be written to."""


class CrossedError(StoreInterruptedError, StoreBusyError):
    """Another transaction was in the way."""


def interrupted(error: psycopg.Error) -> bool:
    """Return whether a retry, or another connection, may succeed."""
    if isinstance(error, (*LOST, *REPEATABLE, sql.ReadOnlySqlTransaction)):
        return True
    return (
        isinstance(error, psycopg.OperationalError)
        and error.sqlstate is None
        and not any(words in str(error) for words in _TURNED_AWAY)
    )


@contextmanager
def translated(where: str) -> Iterator[None]:
    """Turn the driver's errors into ours, saying what to do."""
    try:
        yield
    except psycopg.Error as error:
        raise store_error(error, where) from error


def store_error(error: psycopg.Error, where: str, *, gone: bool = False) -> StoreError:
    """Return the error to raise for *error*, met at *where*.

    *gone* says that a transaction was interrupted by it.
    """
    said = _said(error)
    for kinds, kind, advice in _TELLINGS:
        if isinstance(error, kinds):
            return kind(f"PostgreSQL at {where}: {advice} ({said})")
    for words, kind, advice in _AT_THE_DOOR:
        if error.sqlstate is None and words in said:
            return kind(f"PostgreSQL at {where}: {advice} ({said})")
    if gone or interrupted(error):
        return (StoreInterruptedError if gone else StoreError)(
            f"PostgreSQL at {where} cannot be reached, or the connection was lost "
            f"({said}); check that the server runs and listens there, and try again: "
            "what was not acknowledged was not stored"
        )
    return StoreError(
        f"PostgreSQL at {where} refused a statement ({said}); "
        "'kept doctor' examines the store"
    )


def _said(error: psycopg.Error) -> str:
    """Return the server's own words on one line, with the code if there is one."""
    words = error.diag.message_primary or str(error)
    line = " ".join(words.split()) or type(error).__name__
    return f"{line}, SQLSTATE {error.sqlstate}" if error.sqlstate else line


_WRONG_USER = (
    "the user or the password is wrong; check both in KEPT_STORE, or use a passfile"
)
_FULL = (
    "no room is left on the server's disk; free some and try again, nothing of this "
    "change was stored"
)
_NO_DATABASE = (
    "there is no such database or role; create it, or name another in KEPT_STORE"
)
_REPLICA = (
    "the server only lets itself be read, as a replica does; name the primary in "
    "KEPT_STORE, or several hosts with target_session_attrs=read-write; if it is the "
    "primary, see why default_transaction_read_only is on"
)
_NO_RIGHT = "the role lacks a privilege; grant it as the page on PostgreSQL shows"
_CROWDED = (
    "the server has no connection left; lower KEPT_STORE_CONNECTIONS or raise "
    "max_connections"
)
_BUSY = "others kept it busy for too long; try again"
_SHORT = "the server is short of resources; try again, or give it more"
_TOO_LONG = (
    "the address of a source, a tag or the name of a tenant is longer than the server "
    "can find again, about 2,700 bytes; shorten it"
)
_DAMAGED = "the data on the server are damaged; restore them from a backup"
_TELLINGS: tuple[tuple[tuple[type[Exception], ...], type[StoreError], str], ...] = (
    ((sql.DiskFull,), StoreFullError, _FULL),
    (REFUSED, StoreError, _WRONG_USER),
    ((sql.InvalidCatalogName,), StoreError, _NO_DATABASE),
    ((sql.ReadOnlySqlTransaction,), ReplicaMetError, _REPLICA),
    ((sql.InsufficientPrivilege,), StoreReadOnlyError, _NO_RIGHT),
    ((sql.TooManyConnections,), StoreBusyError, _CROWDED),
    (REPEATABLE, CrossedError, _BUSY),
    ((sql.LockNotAvailable, sql.QueryCanceled), StoreBusyError, _BUSY),
    ((sql.OutOfMemory, sql.InsufficientResources), StoreBusyError, _SHORT),
    ((sql.ProgramLimitExceeded,), StoreError, _TOO_LONG),
    ((sql.DataCorrupted, sql.IndexCorrupted), StoreCorruptError, _DAMAGED),
)
# A connection that is refused carries no code, only the server's words.
_TURNED_AWAY = {
    "password authentication failed": _WRONG_USER,
    "no password supplied": _WRONG_USER,
    "does not exist": _NO_DATABASE,
}
_AT_THE_DOOR: tuple[tuple[str, type[StoreError], str], ...] = (
    *((words, StoreError, advice) for words, advice in _TURNED_AWAY.items()),
    ("too many clients", StoreBusyError, _CROWDED),
    ("too many connections", StoreBusyError, _CROWDED),
    ("remaining connection slots", StoreBusyError, _CROWDED),
)
