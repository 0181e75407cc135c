"""Access keys: role and tenant of each; only digests are stored."""

import hashlib
import hmac
import json
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from typing_extensions import TypedDict

from kept.errors import InputError, NotFoundError
from kept.stores.row_writer import as_json, now
from kept.stores.sql import Connection, Database, every, first
from kept.text.access import GROUP, USER, Principal, checked_name

PREFIX = "kept"
ID_BYTES = 6
SECRET_BYTES = 32
SERVICE_SECRET = "service_secret"  # noqa: S105 -- the name of a row
# Compared where there is no key, so that an unknown id takes as long as a wrong secret.
_NOBODY = bytes(32)
_COLUMNS = "id, tenant, principal, role, rate, groups, created_at, revoked_at"
# As a group it stands for all there are.
EVERY_GROUP = "*"


class Role(StrEnum):
    """What a principal may do; each role includes those before it."""

    READER = "reader"
    WRITER = "writer"
    ADMIN = "admin"

    def includes(self, other: "Role") -> bool:
        """Return whether this role may do all that *other* may."""
        # An enum keeps the order of its definition, from the smallest role to the
        # largest.
        order = list(Role)
        return order.index(self) >= order.index(other)


class KeyJson(TypedDict):
    """A key, without its token."""

    key_id: str
    principal: str
    role: str
    tenant: str | None
    groups: list[str] | None
    rate_per_minute: int | None
    created_at: str
    revoked_at: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A key as it is remembered: everything but the key itself.

    Without a *tenant* it opens every tenant's knowledge base; *rate* is how many
    requests a minute it may make, if that is not the service's own limit. *groups* say
    which documents with readers it may read: none, beyond those of its principal,
    unless it is an admin's.
    """

    id: str
    tenant: str | None
    principal: str
    role: Role
    rate: int | None = None
    groups: tuple[str, ...] | None = None
    created_at: str = ""
    revoked_at: str | None = None

    @property
    def asker(self) -> Principal | None:
        """Who reads with it; None reads everything."""
        if self.groups is None and self.role is Role.ADMIN:
            return None
        groups = frozenset(self.groups or ())
        return None if EVERY_GROUP in groups else Principal(self.principal, groups)

    def as_data(self) -> KeyJson:
        """Return the key as every door shows it."""
        return {
            "key_id": self.id,
            "principal": self.principal,
            "role": str(self.role),
            "tenant": self.tenant,
            "groups": None if self.groups is None else list(self.groups),
            "rate_per_minute": self.rate,
            "created_at": self.created_at,
            "revoked_at": self.revoked_at,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What a tenant allows to be kept of its questions.

    *keep_questions* lets their text into audit and traces, *redact_personal* blots
    out e-mail addresses and telephone numbers before it is stored.
    """

    keep_questions: bool = False
    redact_personal: bool = False

    @property
    def keeps_text(self) -> bool:
        """Whether questions may be stored word for word."""
        return self.keep_questions and not self.redact_personal


class Access:
    """The keys, browser sessions and policies of one store."""

    def __init__(self, database: Database) -> None:
        self._database = database

    # -- keys

    def create(  # noqa: PLR0913 -- all that a key is
        self,
        principal: str,
        role: Role,
        tenant: str | None,
        *,
        rate: int | None = None,
        groups: Iterable[str] | None = None,
        token: str | None = None,
    ) -> tuple[Key, str]:
        """Make a key and return it with the text that opens doors.

        The text is nowhere to be had again. A *token* of the caller's own must have
        the shape of ours; one that is known already stays as it is.
        """
        named = None if groups is None else checked_groups(groups)
        checked_name(USER + principal)
        token = token or _new_token()
        key_id, secret = _parted(token)
        if len(secret) < SECRET_BYTES:
            msg = (
                f"a key has the form {PREFIX}_ID_SECRET with a secret of at least "
                f"{SECRET_BYTES} characters; leave it out to have one made"
            )
            raise InputError(msg)
        with self._database.writing() as connection:
            connection.execute(
                "INSERT INTO access_keys (id, tenant, principal, role, digest, rate,"
                " groups, created_at) VALUES (?,?,?,?,?,?,?,?)"
                " ON CONFLICT (id) DO NOTHING",
                (
                    *(key_id, tenant, principal, role, _digest(secret), rate),
                    *(None if named is None else json.dumps(named), now()),
                ),
            )
            made = self._key(connection, key_id)
        if made is None:
            raise NotFoundError("key", key_id, "it could not be stored")
        return made, token

    def check(self, token: str) -> Key | None:
        """Return the key that *token* is, unless it is revoked or none of ours.

        An unknown one takes as long as a wrong one: both are compared.
        """
        key_id, secret = _parted(token)
        with self._database.reading() as connection:
            row = first(
                connection, "SELECT digest FROM access_keys WHERE id = ?", (key_id,)
            )
            same = hmac.compare_digest(row[0] if row else _NOBODY, _digest(secret))
            key = self._key(connection, key_id)
        return key if same and key and key.revoked_at is None else None

    def keys(self, tenant: str | None = None) -> list[Key]:
        """Return the keys of one tenant, or all there are, oldest first."""
        with self._database.reading() as connection:
            rows = every(
                connection,
                f"SELECT {_COLUMNS} FROM access_keys"  # noqa: S608 -- ours
                " WHERE CAST(?1 AS TEXT) IS NULL OR tenant = ?1"
                " ORDER BY created_at, id",
                (tenant,),
            )
        return [_key(row) for row in rows]

    def revoke(self, key_id: str, tenant: str | None = None) -> Key:
        """Let a key open nothing any more, nor the sessions begun with it."""
        with self._database.writing() as connection:
            key = self._key(connection, key_id)
            if key is None or tenant not in (None, key.tenant):
                raise NotFoundError(
                    "key", key_id, "the list of keys has those that are"
                )
            connection.execute(
                "UPDATE access_keys SET revoked_at = COALESCE(revoked_at, ?)"
                " WHERE id = ?",
                (now(), key_id),
            )
            connection.execute(
                "DELETE FROM browser_sessions WHERE key_id = ?", (key_id,)
            )
            revoked = self._key(connection, key_id)
        return revoked or key

    @property
    def guarded(self) -> bool:
        """Whether there is a key that administers, so that doors can be opened."""
        return any(
            key.role is Role.ADMIN and key.tenant is None and key.revoked_at is None
            for key in self.keys()
        )

    # -- browser sessions

    def begin_session(self, key_id: str, expires: int, at: int) -> str:
        """Begin a session for a key and return its secret name."""
        token = secrets.token_urlsafe(SECRET_BYTES)
        with self._database.writing() as connection:
            connection.execute("DELETE FROM browser_sessions WHERE expires < ?", (at,))
            connection.execute(
                "INSERT INTO browser_sessions VALUES (?, ?, ?)",
                (_digest(token), key_id, expires),
            )
        return token

    def session(self, token: str, at: int) -> Key | None:
        """Return the key whose session this is, unless it has ended."""
        with self._database.reading() as connection:
            row = first(
                connection,
                "SELECT key_id FROM browser_sessions WHERE digest = ? AND expires > ?",
                (_digest(token), at),
            )
            key = self._key(connection, row[0]) if row else None
        return key if key and key.revoked_at is None else None

    def end_session(self, token: str) -> None:
        """End a session."""
        with self._database.writing() as connection:
            connection.execute(
                "DELETE FROM browser_sessions WHERE digest = ?", (_digest(token),)
            )

    # -- policies and secrets

    def policy(self, tenant: str) -> Policy:
        """Return what a tenant allows to be kept."""
        with self._database.reading() as connection:
            row = first(
                connection,
                "SELECT policy FROM tenant_policies WHERE tenant = ?",
                (tenant,),
            )
        stored: Mapping[str, Any] = json.loads(row[0]) if row else {}
        return Policy(**stored)

    def set_policy(self, tenant: str, policy: Policy) -> None:
        """Change what a tenant allows to be kept."""
        with self._database.writing() as connection:
            connection.execute(
                "INSERT INTO tenant_policies VALUES (?, ?)"
                " ON CONFLICT (tenant) DO UPDATE SET policy = excluded.policy",
                (tenant, as_json(asdict(policy))),
            )

    def signing_secret(self) -> bytes:
        """Return what cookies are signed with, the same after every restart."""
        with self._database.writing() as connection:
            connection.execute(
                "INSERT INTO meta VALUES (?, ?) ON CONFLICT (key) DO NOTHING",
                (SERVICE_SECRET, secrets.token_hex(SECRET_BYTES)),
            )
            row = first(
                connection, "SELECT value FROM meta WHERE key = ?", (SERVICE_SECRET,)
            )
        return bytes.fromhex(row[0]) if row else b""

    def _key(self, connection: Connection, key_id: str) -> Key | None:
        row = first(
            connection,
            f"SELECT {_COLUMNS} FROM access_keys WHERE id = ?",  # noqa: S608 -- ours
            (key_id,),
        )
        return _key(row) if row else None


def _key(row: tuple[Any, ...]) -> Key:
    return Key(
        id=row[0],
        tenant=row[1],
        principal=row[2],
        role=Role(row[3]),
        rate=row[4],
        groups=None if row[5] is None else tuple(json.loads(row[5])),
        created_at=row[6],
        revoked_at=row[7],
    )


def checked_groups(groups: Iterable[str]) -> list[str]:
    """Return the names of groups in one spelling and order, or raise."""
    return sorted(
        {
            group if group == EVERY_GROUP else checked_name(GROUP + group)[len(GROUP) :]
            for group in groups
        }
    )


def _new_token() -> str:
    identity = secrets.token_hex(ID_BYTES)
    return f"{PREFIX}_{identity}_{secrets.token_urlsafe(SECRET_BYTES)}"


def _parted(token: str) -> tuple[str, str]:
    """Return the public and the secret part of a key; empty if it is none."""
    head, _, rest = token.partition("_")
    identity, _, secret = rest.partition("_")
    return (identity, secret) if head == PREFIX and identity else ("", "")


def _digest(secret: str) -> bytes:
    """Return the digest of a secret; one of 256 random bits needs no slow one."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()
