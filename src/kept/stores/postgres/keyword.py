"""Keyword search: postings propose, exact BM25 decides.

The server sums BM25 over a tenant's postings, with the tenant's own statistics. Its
sums may differ from ours in the last bits, so the caller's exact score of the
proposals decides, and more are asked for until nothing unseen can be among the best.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kept.kernel.signals import K1, PLACES, B
from kept.stores.index_port import Keys
from kept.stores.postgres.dense import EVERYTHING
from kept.stores.postgres.dialect import PostgresConnection
from kept.stores.postgres.values import numbers
from kept.stores.sqlite.index.vector_file import Scored, best
from kept.text.terms import key_of

LEAST_PROPOSED = 100
# The server sums in another order, so its last bits differ from ours.
MARGIN = 1e-8

_SUMMED = """
SELECT p.no, pg_catalog.sum(
    q.weight * p.count * %(k1)s / (p.count + %(short)s + %(long)s * p.length)
) AS score
FROM ROWS FROM (
    pg_catalog.unnest(%(keys)s), pg_catalog.unnest(%(weights)s::float8[])
) AS q (key, weight)
JOIN kept.postings p ON p.tenant_no = %(tenant)s
    AND p.acl_no = ANY (%(acls)s) AND p.key = q.key
"""
_AMONG = "WHERE p.no = ANY(%(allowed)s)"
_BEST = "GROUP BY p.no ORDER BY score DESC LIMIT %(most)s"


@dataclass(frozen=True, slots=True)
class PostgresWords:
    """Which of one tenant's chunks hold a term, at one state.

    *acls* are the lists of readers whose documents are searched.
    """

    connection: PostgresConnection
    tenant: int
    acls: Sequence[int]

    @property
    def seq(self) -> int:
        """The last change held: a snapshot holds all there are."""
        return EVERYTHING

    def search(
        self,
        terms: Mapping[str, float],
        limit: int,
        exact: Callable[[Keys], NDArray[np.float64]],
        *,
        average_length: float,
        allowed: Keys | None = None,
    ) -> Scored:
        """Return the *limit* best chunks by exact score, ties by key."""
        weights = {key_of(t): weight for t, weight in terms.items() if weight > 0.0}
        found = np.empty(0, np.int64), np.empty(0)
        most = max(2 * limit, LEAST_PROPOSED)
        while weights and limit > 0:
            keys, rough = self._proposed(weights, most, average_length, allowed)
            scores = np.round(exact(keys), PLACES)
            found = best(keys, scores, limit)
            enough = len(found[1]) == limit and rough[-1] < found[1][-1] - MARGIN
            if len(keys) < most or enough:
                return found
            most *= 4
        return best(*found, limit)

    def keys(self) -> Keys:
        """Return every key that is held, in order."""
        rows = self.connection.raw.execute(
            "SELECT DISTINCT no FROM kept.postings WHERE tenant_no = %s ORDER BY no",
            (self.tenant,),
            binary=True,
        )
        return np.array([row[0] for row in rows], np.int64)

    def _proposed(
        self,
        weights: Mapping[int, float],
        most: int,
        average: float,
        allowed: Keys | None,
    ) -> tuple[Keys, NDArray[np.float64]]:
        """Return the best by the server's sum, of all that hold any of the terms."""
        values: dict[str, Any] = {
            "tenant": self.tenant,
            "acls": numbers(self.acls),
            "keys": numbers(list(weights)),
            "weights": list(weights.values()),
            "k1": K1 + 1,
            "short": K1 * (1 - B),
            "long": K1 * B / (average or 1.0),
            "most": most,
        }
        among = ""
        if allowed is not None:
            among, values["allowed"] = _AMONG, numbers(allowed)
        sql = f"{_SUMMED} {among} {_BEST}"
        rows = self.connection.raw.execute(sql.encode(), values, binary=True).fetchall()
        keys = np.array([row[0] for row in rows], np.int64)
        return keys, np.array([row[1] for row in rows], np.float64)
