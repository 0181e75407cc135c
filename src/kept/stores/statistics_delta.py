"""Statistics deltas: the changes of one transaction, added up, written at its end."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import apsw

from kept.stores.sql import only
from kept.text.terms import holding, unpacked_keys

STATE_BYTES = 32
_MODULUS = 1 << (8 * STATE_BYTES)
_AT_ONCE = 2_000


def as_state(total: int) -> bytes:
    """Return the sum of documents' digests as a tenant's state."""
    return (total % _MODULUS).to_bytes(STATE_BYTES, "big")


@dataclass
class Sums:
    """How much a tenant's statistics and state change, up to the change *seq*."""

    seq: int = 0
    chunks: int = 0
    length: int = 0
    state: int = 0
    terms: Counter[int] = field(default_factory=Counter)
    languages: Counter[str] = field(default_factory=Counter)
    _fresh: list[bytes] = field(default_factory=list)

    def count(
        self,
        seq: int,
        digest: int,
        chunks: Iterable[tuple[bytes, int, str]],
        *,
        live: bool,
    ) -> None:
        """Count a document in, or out: the terms, length and language of its chunks."""
        sign = 1 if live else -1
        self.seq = seq
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

    def restate(self, seq: int, change: int) -> None:
        """Count that a document's digest is another by *change*, and nothing else."""
        self.seq = seq
        self.state += change

    def write(self, connection: apsw.Connection, tenant: int) -> None:
        """Write the sums to the tenant's rows."""
        if not self.seq:
            return
        self._write_terms(connection, tenant)
        connection.executemany(
            "INSERT INTO languages VALUES (?, ?, ?)"
            " ON CONFLICT DO UPDATE SET chunks = chunks + excluded.chunks",
            [(tenant, *counted) for counted in sorted(self.languages.items())],
        )
        connection.execute("DELETE FROM languages WHERE chunks = 0")
        own = (tenant,)
        (state,) = only(connection, "SELECT state FROM tenants WHERE no = ?", own)
        total = int.from_bytes(state, "big") + self.state
        connection.execute(
            "UPDATE tenants SET seq = MAX(seq, ?), chunks = chunks + ?,"
            " terms = terms + ?, state = ? WHERE no = ?",
            (self.seq, self.chunks, self.length, as_state(total), tenant),
        )

    def _count_fresh(self) -> None:
        self.terms.update(holding(self._fresh))
        self._fresh.clear()

    def _write_terms(self, connection: apsw.Connection, tenant: int) -> None:
        self._count_fresh()
        counted = sorted((key, count) for key, count in self.terms.items() if count)
        connection.executemany(
            "INSERT INTO terms VALUES (?, ?, ?)"
            " ON CONFLICT DO UPDATE SET df = df + excluded.df",
            [(tenant, *one) for one in counted],
        )
        connection.executemany(
            "DELETE FROM terms WHERE tenant_no = ? AND key = ? AND df = 0",
            [(tenant, key) for key, count in counted if count < 0],
        )
