"""The work for an answer reveals nothing about what other tenants store."""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import apsw
import pytest
from house import House, OpenHouse

TEXT = "Employees have 28 days of leave a year."
# Words of the tenant, words of another tenant only, and words of no tenant.
QUESTIONS = (
    "how many days of leave do employees have?",
    "how many zeppelins does the harbour of Flensburg moor?",
    "how many quokkas does the orchard of Perpignan graze?",
)
OTHERS = [
    f"The harbour of Flensburg moors {n} zeppelins; employees have {n} days of leave."
    for n in range(120)
]


class Work:
    """The steps that the database makes for each statement of a request that reads.

    What is written down behind the answer, in threads of its own, does not count.
    """

    def __init__(self) -> None:
        self.steps: Counter[str] = Counter()

    def watch(self, connection: apsw.Connection) -> None:
        """Count what a connection does from now on."""
        connection.trace_v2(apsw.SQLITE_TRACE_PROFILE, self._heard)

    def _heard(self, message: dict[str, Any]) -> None:
        reads = message["sql"].lstrip().upper().startswith(("SELECT", "WITH"))
        if reads and threading.current_thread().name.startswith("kept-http"):
            steps = message["stmt_status"]["SQLITE_STMTSTATUS_VM_STEP"]
            self.steps[message["sql"]] += steps

    @contextmanager
    def counted(self) -> Iterator[Counter[str]]:
        """Yield the counts of what is done meanwhile."""
        self.steps = Counter()
        yield self.steps


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Work:
    """Return what counts the steps of every connection that is opened."""
    work = Work()
    monkeypatch.setattr(apsw, "connection_hooks", [*apsw.connection_hooks, work.watch])
    return work


@pytest.mark.parametrize("question", QUESTIONS)
def test_an_answer_costs_the_same_whatever_others_hold(
    open_house: OpenHouse, work: Work, question: str
) -> None:
    """How rare a word is, is looked up among the tenant's own and nowhere else.

    The very same statements make the very same number of steps, once another tenant
    holds a hundred times what it held, in words that the tenant asks for.
    """
    house = open_house(threads=1, cache_seconds=0)
    house.add(TEXT, tenant="acme")
    house.add(OTHERS[0], tenant="globex")
    alone, before = asked(house, work, question)
    body = {"documents": [{"text": text} for text in OTHERS[1:]]}
    stored = house.ask("POST", "/v1/documents?wait=60", tenant="globex", json=body)
    together, after = asked(house, work, question)

    assert stored.json()["state"] == "done"
    assert before.total() > 0
    assert after == before
    assert together == alone


def asked(house: House, work: Work, question: str) -> tuple[Any, Counter[str]]:
    """Ask once to warm up and once for the record."""
    house.search(question, tenant="acme")
    with work.counted() as steps:
        found = house.search(question, tenant="acme").json()
    del found["timings"]
    return found, Counter(steps)
