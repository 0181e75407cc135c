"""Statistics deltas: the changes of one transaction, added up, written at its end."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import apsw

from kept.stores.sql import Connection, every, only
from kept.text.terms import holding, unpacked_keys

STATE_BYTES = 32
_MODULUS = 1 << (8 * STATE_BYTES)
_AT_ONCE = 2_000


def as_state(total: int) -> bytes:
    """Return the sum of documents' digests as a tenant's state."""
    return (total % _MODULUS).to_bytes(STATE_BYTES, "big")


class ShownTotals(NamedTuple):
    """What a snapshot shows of a tenant: the sums of the readers' lists that it shows.

    *seq* counts all changes of the tenant, and *acls* are the numbers of the lists.
    """

    tenant: int = 0
    seq: int = 0
    acls: tuple[int, ...] = ()
    chunks: int = 0
    length: int = 0
    state: bytes = bytes(STATE_BYTES)


def totals_of(connection: Connection, name: str) -> ShownTotals:
    """Return the sums of what is shown of the tenant *name*."""
    rows = every(
        connection,
        "SELECT t.no, s.seq, a.no, a.chunks, a.terms, a.state FROM tenants t"
        " JOIN states s ON s.tenant_no = t.no LEFT JOIN acls a ON a.tenant_no = t.no"
        " WHERE t.name = ? ORDER BY a.no",
        (name,),
    )
    shown = [row[2:] for row in rows if row[2] is not None]
    tenant, seq = rows[0][:2] if rows else (0, 0)
    return ShownTotals(
        tenant,
        seq,
        acls=tuple(row[0] for row in shown),
        chunks=sum(row[1] for row in shown),
        length=sum(row[2] for row in shown),
        state=as_state(sum(int.from_bytes(row[3], "big") for row in shown)),
    )


@dataclass
class AclSums:
    """How much the statistics and the state of one list of readers change."""

    chunks: int = 0
    length: int = 0
    state: int = 0
    terms: Counter[int] = field(default_factory=Counter)
    languages: Counter[str] = field(default_factory=Counter)
    _fresh: list[bytes] = field(default_factory=list)

    def count(
        self, digest: int, chunks: Iterable[tuple[bytes, int, str]], *, live: bool
    ) -> None:
        """Count a document in, or out: the terms, length and language of its chunks."""
        sign = 1 if live else -1
        self.state += sign * digest
        for terms, length, language in chunks:
            if live:
                self._fresh.append(terms)
            else:
                self.terms.subtract(unpacked_keys(terms))
            self.languages[language] += sign
            self.chunks += sign
            self.length += sign * length
        if len(self._fresh) > _AT_ONCE:
            self._count_fresh()

    def write(self, connection: apsw.Connection, tenant: int, acl: int) -> None:
        """Write the sums to the rows of the list of readers number *acl*."""
        self._write_terms(connection, tenant, acl)
        connection.executemany(
            "INSERT INTO languages (tenant_no, acl_no, language, chunks)"
            " VALUES (?, ?, ?, ?)"
            " ON CONFLICT DO UPDATE SET chunks = chunks + excluded.chunks",
            [(tenant, acl, *counted) for counted in sorted(self.languages.items())],
        )
        own = (tenant, acl)
        (state,) = only(
            connection, "SELECT state FROM acls WHERE tenant_no = ? AND no = ?", own
        )
        total = int.from_bytes(state, "big") + self.state
        connection.execute(
            "UPDATE acls SET chunks = chunks + ?, terms = terms + ?, state = ?"
            " WHERE tenant_no = ? AND no = ?",
            (self.chunks, self.length, as_state(total), *own),
        )

    def _count_fresh(self) -> None:
        self.terms.update(holding(self._fresh))
        self._fresh.clear()

    def _write_terms(self, connection: apsw.Connection, tenant: int, acl: int) -> None:
        self._count_fresh()
        counted = sorted((key, count) for key, count in self.terms.items() if count)
        connection.executemany(
            "INSERT INTO terms (tenant_no, acl_no, key, df) VALUES (?, ?, ?, ?)"
            " ON CONFLICT DO UPDATE SET df = df + excluded.df",
            [(tenant, acl, *one) for one in counted],
        )
        connection.executemany(
            "DELETE FROM terms WHERE tenant_no = ? AND key = ? AND acl_no = ?"
            " AND df = 0",
            [(tenant, key, acl) for key, count in counted if count < 0],
        )


@dataclass
class Sums:
    """How much a tenant's statistics and state change, up to the change *seq*.

    They are kept for each list of readers, by its number: what a caller may not read
    must not count in the caller's scores.
    """

    seq: int = 0
    acls: dict[int, AclSums] = field(default_factory=dict)

    def of(self, seq: int, acl: int) -> AclSums:
        """Return the sums of a list of readers, after the change *seq*."""
        self.seq = seq
        return self.acls.setdefault(acl, AclSums())

    def write(self, connection: apsw.Connection, tenant: int) -> None:
        """Write the sums to the tenant's rows."""
        if not self.seq:
            return
        for acl, sums in sorted(self.acls.items()):
            sums.write(connection, tenant, acl)
        connection.execute("DELETE FROM languages WHERE chunks = 0")
        own = (tenant,)
        (state,) = only(connection, "SELECT state FROM tenants WHERE no = ?", own)
        changes = self.acls.values()
        total = int.from_bytes(state, "big") + sum(one.state for one in changes)
        connection.execute(
            "UPDATE tenants SET seq = MAX(seq, ?), chunks = chunks + ?,"
            " terms = terms + ?, state = ? WHERE no = ?",
            (
                *(self.seq, sum(one.chunks for one in changes)),
                *(sum(one.length for one in changes), as_state(total), tenant),
            ),
        )
