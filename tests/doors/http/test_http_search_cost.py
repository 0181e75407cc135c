"""What one search costs the service: builds, read transactions and thread hops."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import apsw
import pytest
from house import OpenHouse

from kept.doors.http.rate_limits import WorkerThreads
from kept.knowledge_base.base import KnowledgeBase

QUESTION = "how many days of leave do employees have?"


@dataclass
class Cost:
    """How often something was done since the count began."""

    builds: int = 0
    reads: int = 0
    hops: int = 0

    def watch(self, connection: apsw.Connection) -> None:
        """Count the read transactions of a connection from now on."""
        connection.trace_v2(apsw.SQLITE_TRACE_STMT, self._began)

    def _began(self, traced: dict[str, Any]) -> None:
        self.reads += traced["sql"] == "BEGIN DEFERRED"


@pytest.fixture
def cost(monkeypatch: pytest.MonkeyPatch) -> Cost:
    """Return a count of all that is done from now on."""
    counted = Cost()
    hooks = [*apsw.connection_hooks, counted.watch]
    monkeypatch.setattr(apsw, "connection_hooks", hooks)

    def counting(owner: type, name: str, what: str) -> None:
        original: Callable[..., Any] = getattr(owner, name)

        def count(*given: object) -> object:
            setattr(counted, what, getattr(counted, what) + 1)
            return original(*given)

        monkeypatch.setattr(owner, name, count)

    counting(KnowledgeBase, "retriever", "builds")
    counting(WorkerThreads, "submit", "hops")
    return counted


def test_a_search_builds_one_retriever_and_reads_four_times(
    open_house: OpenHouse, cost: Cost
) -> None:
    """The key, the policy, the tenant's state and its documents: once each.

    All of it runs in one thread; a cached answer does not read the documents.
    """
    house = open_house()
    house.add("Employees have 28 days of leave a year.")
    house.search("a question to connect the threads by")

    def spent() -> tuple[str, int, int, int]:
        cost.builds = cost.reads = cost.hops = 0
        outcome = house.search(QUESTION).headers["kept-cache"]
        return outcome, cost.builds, cost.reads, cost.hops

    missed, hit = spent(), spent()

    assert missed == ("miss", 1, 4, 1)
    assert hit == ("hit", 1, 3, 1)
