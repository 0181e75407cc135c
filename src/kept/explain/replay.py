"""Replay: run recorded queries again, and compare the answers."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from kept.explain.ports import ExplainedBase
from kept.search.recorded import Recorded, code_version, digest, request_of

Cause = Literal["data", "configuration", "code"]
Outcome = Literal["identical", "changed", "unexplained", "not_recorded"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """One recorded query, and how its answer compares with today's.

    *changed* names which of data, configuration and code have changed since. An
    answer that differs although none of them has is *unexplained*. Answers are
    compared by a digest of the whole record, so they can differ with the same
    passages: by a candidate that was dropped for another reason, say.
    """

    recorded: Recorded
    outcome: Outcome
    changed: tuple[Cause, ...] = ()
    added: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    reordered: bool = False
    refused: tuple[str | None, str | None] = (None, None)


def replay(base: ExplainedBase, queries: Iterable[Recorded]) -> Iterator[Replayed]:
    """Run *queries* again, each with its own preset, and compare the answers.

    These runs are not recorded.
    """
    for query in queries:
        if query.question is None:
            yield Replayed(recorded=query, outcome="not_recorded")
        else:
            yield _replayed(base, query, query.question)


def _replayed(base: ExplainedBase, query: Recorded, question: str) -> Replayed:
    request = request_of(base.tenant, question, query.request)
    configured = base.configured(query.preset)
    found = base.retriever(base.plan(request, configured))(request)
    prints = found.fingerprints
    compared: tuple[tuple[Cause, str, str], ...] = (
        ("data", query.knowledge_base, prints.knowledge_base),
        ("configuration", query.configuration, prints.configuration),
        ("code", query.code, code_version()),
    )
    changed = tuple(cause for cause, then, now in compared if then != now)
    if digest(found) == query.result_sha256:
        return Replayed(recorded=query, outcome="identical", changed=changed)
    before, after = query.selected, [c.id for c in found.selection.candidates]
    stayed = [c for c in before if c in after]
    return Replayed(
        recorded=query,
        outcome="changed" if changed else "unexplained",
        changed=changed,
        added=tuple(c for c in after if c not in before),
        lost=tuple(c for c in before if c not in after),
        reordered=stayed != [c for c in after if c in before],
        refused=(query.refused, found.refused.reason if found.refused else None),
    )
