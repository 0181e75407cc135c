"""Replay: recorded queries run again, and what became of their answers."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from kept.knowledge_base import KnowledgeBase
from kept.recorded import Recorded, code_version, digest, request_of

Cause = Literal["data", "configuration", "code"]
Outcome = Literal["identical", "changed", "unexplained", "not_recorded"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """One recorded query, and how its answer compares with today's.

    *changed* tells which of data, configuration and code are no longer what they
    were. An answer that differs although none of them did is *unexplained*; the
    digest sees more than the selection does, such as who was dropped and why.
    """

    recorded: Recorded
    outcome: Outcome
    changed: tuple[Cause, ...] = ()
    added: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    reordered: bool = False
    refused: tuple[str | None, str | None] = (None, None)


def replay(base: KnowledgeBase, queries: Iterable[Recorded]) -> Iterator[Replayed]:
    """Run *queries* again, each with its own preset, and compare the answers.

    Nothing is recorded of it.
    """
    for query in queries:
        if query.question is None:
            yield Replayed(recorded=query, outcome="not_recorded")
        else:
            yield _again(base, query, query.question)


def _again(base: KnowledgeBase, query: Recorded, question: str) -> Replayed:
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
    differing = Replayed(
        recorded=query,
        outcome="changed" if changed else "unexplained",
        changed=changed,
        added=tuple(c for c in after if c not in before),
        lost=tuple(c for c in before if c not in after),
        refused=(query.refused, found.refused.reason if found.refused else None),
    )
    stayed = [c for c in before if c in after]
    return replace(differing, reordered=stayed != [c for c in after if c in before])
