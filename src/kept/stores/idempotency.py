"""Idempotency: a write that is sent twice is done once and answered twice."""

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from kept.stores.connection import Database
from kept.stores.sql import first

KEPT_SECONDS = 24 * 3600


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

    def __init__(self, database: Database) -> None:
        self._database = database
        self._run = secrets.token_hex(8)

    def claim(self, slot: Slot, request: str, at: int) -> Claim:
        """Return an earlier reply, or whether the write is ours to do.

        *other* means that the key was used for another request.
        """
        with self._database.writing() as connection:
            connection.execute(
                "DELETE FROM idempotency WHERE at < ?", (at - KEPT_SECONDS,)
            )
            row = first(
                connection,
                "SELECT request, run, status, headers, body FROM idempotency"
                " WHERE tenant = ? AND key_id = ? AND key = ?",
                (slot.tenant, slot.key_id, slot.key),
            )
            if row is None or (row[2] is None and row[1] != self._run):
                connection.execute(
                    "INSERT OR REPLACE INTO idempotency"
                    " (tenant, key_id, key, request, run, at) VALUES (?,?,?,?,?,?)",
                    (slot.tenant, slot.key_id, slot.key, request, self._run, at),
                )
                return "ours"
        if row[0] != request:
            return "other"
        if row[2] is None:
            return "running"
        return Reply(status=row[2], headers=json.loads(row[3]), body=row[4])

    def settle(self, slot: Slot, reply: Reply) -> None:
        """Remember what the write was answered."""
        with self._database.writing() as connection:
            connection.execute(
                "UPDATE idempotency SET status = ?, headers = ?, body = ?"
                " WHERE tenant = ? AND key_id = ? AND key = ?",
                (
                    *(reply.status, json.dumps(dict(reply.headers)), reply.body),
                    *(slot.tenant, slot.key_id, slot.key),
                ),
            )

    def release(self, slot: Slot) -> None:
        """Forget a write that failed, so that it can be tried again."""
        with self._database.writing() as connection:
            connection.execute(
                "DELETE FROM idempotency WHERE tenant = ? AND key_id = ? AND key = ?",
                (slot.tenant, slot.key_id, slot.key),
            )
