"""Whoever waits for a model keeps nobody else waiting: the index is let go before."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import pytest

from kept.differences import diff_configurations
from kept.knowledge_base import KnowledgeBase
from kept.model import Candidate, Query
from kept.ports import Opinion
from kept.retrieve import Request

QUESTION = "How many days of leave do employees have after ten years?"
RULE = "Employees have 28 days of leave, and five more after ten years."
NEWS = "The pump of model TW-C235 costs 410 euro without tax."
ENOUGH_SECONDS = 60


@dataclass
class SlowJudge:
    """A judge who accepts all, once what happens *meanwhile* has happened."""

    meanwhile: Callable[[], object]
    in_time: list[bool] = field(default_factory=list)

    def review(
        self, query: Query, candidates: Sequence[Candidate]
    ) -> Sequence[Opinion]:
        """Let another thread do its work, and wait for it."""
        done = threading.Event()

        def other() -> None:
            self.meanwhile()
            done.set()

        threading.Thread(target=other, daemon=True).start()
        self.in_time.append(done.wait(ENOUGH_SECONDS))
        return [Opinion.ACCEPT] * len(candidates)


def judged(base: KnowledgeBase, request: Request) -> None:
    """Search with the judge."""
    configured = base.configured().changed(validation_enable=True)
    base.retriever(base.plan(request, configured))(request)


def compared(base: KnowledgeBase, request: Request) -> None:
    """Compare an answer without the judge to one with."""
    before = base.configured()
    list(
        diff_configurations(
            base, before, before.changed(validation_enable=True), [request]
        )
    )


@pytest.mark.parametrize("asking", [judged, compared])
def test_a_slow_model_keeps_no_other_search_waiting(
    base: KnowledgeBase,
    monkeypatch: pytest.MonkeyPatch,
    asking: Callable[[KnowledgeBase, Request], None],
) -> None:
    """A page that is taken in while a judge thinks is found while it still does."""
    found: list[str] = []

    def meanwhile() -> None:
        base.add(NEWS)
        found.extend(c.chunk.text for c in base.search(NEWS).selection.candidates)

    judge = SlowJudge(meanwhile)
    monkeypatch.setattr(base, "parts", replace(base.parts, judge=judge))
    base.add(RULE)

    asking(base, Request(question=QUESTION))

    assert judge.in_time == [True]
    assert found == [NEWS]
