"""The index is released before a model is called, so that other searches run."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import pytest

from kept.explain.diff import diff_configurations
from kept.explain.explanations import why_not
from kept.kernel.model import Candidate, Query
from kept.kernel.ports import Opinion
from kept.knowledge_base.base import KnowledgeBase
from kept.search.retrieve import Request

QUESTION = "How many days of leave do employees have after ten years?"
RULE = "Employees have 28 days of leave, and five more after ten years."
OTHER = "Days of leave that employees do not take by March lapse."
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
    base.retriever(base.plan(request))(request)


def compared(base: KnowledgeBase, request: Request) -> None:
    """Compare an answer without the judge to one with."""
    after = base.configured()
    before = after.changed(validation_enable=False)
    list(diff_configurations(base, before, after, [request]))


def explained(base: KnowledgeBase, request: Request) -> None:
    """Ask why the second passage is not in an answer of one, with the judge."""
    *_, second = base.store.documents(request.tenant)

    reported = why_not(base, second.document.id, request)

    assert reported.outcome == "dropped"
    assert reported.changes


@pytest.mark.parametrize("asking", [judged, compared, explained])
def test_a_slow_model_keeps_no_other_search_waiting(
    base: KnowledgeBase,
    monkeypatch: pytest.MonkeyPatch,
    asking: Callable[[KnowledgeBase, Request], None],
) -> None:
    """A page that is taken in while a judge thinks is found while it still does."""
    found: list[str] = []

    def meanwhile() -> None:
        base.add(NEWS)
        request = Request(question=NEWS)
        unjudged = base.configured().changed(validation_enable=False)
        plan = base.plan(request, unjudged)
        selection = base.retriever(plan)(request).selection
        found.extend(c.chunk.text for c in selection.candidates)

    monkeypatch.setenv("KEPT_VALIDATION_ENABLE", "true")
    judge = SlowJudge(meanwhile)
    monkeypatch.setattr(base, "parts", replace(base.parts, judge=judge))
    base.add(RULE)
    base.add(OTHER)

    asking(base, Request(question=QUESTION, k=1))

    assert judge.in_time
    assert all(judge.in_time)
    assert found[0] == NEWS
