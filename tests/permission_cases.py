"""What a principal may not read takes part in nothing: a check for every store.

A knowledge base is filled with documents for random readers, and another one with
those alone that a principal may read. What the principal sees of the first has to be
what the second shows, to the last digit: no count, weight of a word, fingerprint or
number of a row may give away that there is more.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import strategies as st

from kept.errors import NotFoundError
from kept.explain.explanations import why_not
from kept.explain.render import why_not_json
from kept.knowledge_base.base import KnowledgeBase
from kept.search.render import found_json
from kept.search.retrieve import Request
from kept.stores.listing import Lists
from kept.stores.pagination import Pages
from kept.text.access import Principal

Make = Callable[..., KnowledgeBase]
Row = tuple[int, str, list[str] | None]

PROBE = Request(question="How long do a pump and its valve last?")
# Few words, so that documents of different readers share many of them.
WORDS = ("pump", "valve", "leave", "invoice", "salary", "Leeds", "valves", "410 euro")
GROUPS = ("hr", "sales", "board")
READERS = (*(f"group:{name}" for name in GROUPS), "user:ann", "user:bob", "everyone")

texts = st.lists(st.sampled_from(WORDS), min_size=4, max_size=14).map(" ".join)
readers = st.none() | st.sets(st.sampled_from(READERS), max_size=2).map(sorted)
documents = st.lists(st.tuples(texts, readers), min_size=1, max_size=6)
principals = st.builds(
    Principal,
    st.none() | st.sampled_from(("ann", "bob", "eve")),
    st.frozensets(st.sampled_from(GROUPS), max_size=2),
)
questions = st.lists(st.sampled_from(WORDS), min_size=2, max_size=4).map(" ".join)


def check(
    make_base: Make,
    declared: list[tuple[str, list[str] | None]],
    asker: Principal,
    question: str,
) -> None:
    """Compare what *asker* sees with a base of the readable documents alone."""
    rows = [(place, *row) for place, row in enumerate(declared)]
    closed = any(who is not None for _, _, who in rows)
    names = set(asker.names)
    own = [r for r in rows if (not closed if r[2] is None else names & set(r[2]))]
    whole, alone = filled(make_base, rows), filled(make_base, own)

    seen = whole.read_as(asker)

    assert shown(seen, question) == shown(alone, question)
    readable = {one.document.id for one in alone.documents()}
    for one in alone.documents():
        named, request = one.document.id, replace(PROBE, question=question)
        expected = why_not_json(why_not(alone, named, request))
        assert why_not_json(why_not(seen, named, request)) == expected
    for one in whole.documents():
        if one.document.id not in readable:
            refuse_all(seen, one.document.id, one.document.source_uri)
    whole.close()
    alone.close()


def filled(make_base: Make, rows: Iterable[Row]) -> KnowledgeBase:
    """Return a knowledge base of these texts, each with its readers."""
    base = make_base(uuid4().hex)
    # As a service does at its start: fingerprints change with the first embedder.
    base.store.claim(base.embedder.id, base.embedder.dimension)
    for place, text, who in rows:
        base.add(f"{text}.", source_uri=f"text-{place}", title=text, readers=who)
    return base


def shown(base: KnowledgeBase, question: str) -> dict[str, Any]:
    """Return all that can be read, but for times."""
    store, tenant = base.store, base.tenant
    pages, lists = Pages(store.database, tenant), Lists(store.database, tenant)
    known = [one for _, one in pages.documents(None, 50)]
    found = found_json(base.rerun(replace(PROBE, question=question)))
    return {
        "found": {name: part for name, part in found.items() if name != "timings"},
        "documents": [(one.document, one.live, one.aliases) for one in known],
        "newest": [one.document.id for _, one in lists.documents(None, 50)],
        "all": [one.document.id for one in base.documents(all_versions=True)],
        "count": pages.summary()[0],
        "texts": [store.document(tenant, one.document.id)[1] for one in known],
        "chunks": [pages.chunks(one.document.id, None, 50) for one in known],
        "sources": store.sources(tenant, ""),
        "aliases": [alias.id for alias in store.aliases(tenant)],
        "ledger": [(row.no, row.receipt) for row in store.ledger(tenant)],
        "state": store.tenant_state(tenant).overrides,
    }


def refuse_all(seen: KnowledgeBase, hidden: str, source: str) -> None:
    """Hold that a document that may not be read is as if it was not there."""
    pinned = replace(PROBE, pinned=frozenset({f"{hidden}:0"}))
    for ask in (
        lambda: seen.store.document("default", hidden),
        lambda: seen.store.chunks("default", hidden),
        lambda: seen.store.readers("default", hidden),
        lambda: why_not(seen, hidden, PROBE),
        lambda: why_not(seen, source, PROBE),
        lambda: seen.rerun(pinned),
        lambda: seen.update(hidden, metadata={"seen": True}),
        lambda: seen.delete(hidden),
    ):
        with pytest.raises(NotFoundError):
            ask()
