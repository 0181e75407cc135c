"""Idempotency: a write that is sent twice is done once and answered twice."""

import json
import secrets
from collections.abc import Mapping
from dataclasses import astuple, dataclass, field
from typing import Literal

from kept.stores.locks import Holds
from kept.stores.sql import Connection, Database, Row, first

KEPT_SECONDS = 24 * 3600
_SLOT = "tenant = ? AND key_id = ? AND key = ?"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a write was answered with."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """Whose key it is; the same text of two principals is two keys."""

    tenant: str
    key_id: str
    key: str


Claim = Reply | Literal["ours", "running", "other"]


class Replies:
    """Remembers what writes were answered, for a day.

    A write that a dead process began and never finished may be done again.
    """

    def __init__(self, database: Database, holds: Holds) -> None:
        self._database = database
        self._holds = holds
        self._run = secrets.token_hex(8)

    def claim(self, slot: Slot, request: str, at: int) -> Claim:
        """Return an earlier reply, or whether the write is ours to do.

        *other* means that the key was used for another request.
        """
        self._holds.take(_life(self._run))
        mine = (*astuple(slot), request, self._run, at)
        with self._database.writing() as connection:
            connection.execute(
                "DELETE FROM idempotency WHERE at < ?", (at - KEPT_SECONDS,)
            )
            taken = first(
                connection,
                "INSERT INTO idempotency (tenant, key_id, key, request, run, at)"
                " VALUES (?,?,?,?,?,?) ON CONFLICT DO NOTHING RETURNING 1",
                mine,
            )
            row = first(
                connection,
                "SELECT request, run, status, headers, body"  # noqa: S608 -- ours
                f" FROM idempotency WHERE {_SLOT}",
                astuple(slot),
            )
            if taken or (row and self._taken_over(connection, row, mine)):
                return "ours"
        if row is not None and row[0] != request:
            return "other"
        if row is None or row[2] is None:
            return "running"
        return Reply(status=row[2], headers=json.loads(row[3]), body=bytes(row[4]))

    def _taken_over(self, connection: Connection, row: Row, mine: Row) -> bool:
        """Take over what a dead process began; false if it ended or goes on."""
        _, run, status, _, _ = row
        if status is not None or run == self._run or not self._holds.take(_life(run)):
            return False
        self._holds.release(_life(run))
        taken = first(
            connection,
            "UPDATE idempotency SET request = ?4, run = ?5, at = ?6"
            " WHERE tenant = ?1 AND key_id = ?2 AND key = ?3"
            " AND run = ?7 AND status IS NULL RETURNING 1",
            (*mine, run),
        )
        return taken is not None

    def settle(self, slot: Slot, reply: Reply) -> None:
        """Remember what the write was answered."""
        with self._database.writing() as connection:
            connection.execute(
                "UPDATE idempotency SET status = ?, headers = ?,"  # noqa: S608 -- ours
                f" body = ? WHERE {_SLOT}",
                (
                    *(reply.status, json.dumps(dict(reply.headers)), reply.body),
                    *astuple(slot),
                ),
            )

    def release(self, slot: Slot) -> None:
        """Forget a write that failed, so that it can be tried again."""
        with self._database.writing() as connection:
            connection.execute(
                f"DELETE FROM idempotency WHERE {_SLOT}",  # noqa: S608 -- ours
                astuple(slot),
            )


def _life(run: str) -> str:
    """Return the name that a process holds as long as it lives."""
    return f"run-{run}"
