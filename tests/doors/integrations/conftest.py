"""What tests of the integrations share: a stocked knowledge base."""

from collections.abc import Callable

import pytest

from kept.knowledge_base.base import KnowledgeBase

LEEDS = "The Leeds office opens at eight and closes at six."
KIEL = "The Kiel office opens at nine and closes at five."
PUMP = "The pump of model TW-C235 costs 410 euro without tax."
LEAVE = "Employees have 28 days of leave, and five more after ten years."


@pytest.fixture
def base(make_base: Callable[..., KnowledgeBase]) -> KnowledgeBase:
    """Return a knowledge base of four facts."""
    base = make_base()
    for name, text in (("leeds", LEEDS), ("kiel", KIEL), ("pump", PUMP)):
        base.add(text, title=name.title(), source_uri=f"memos/{name}")
    base.add(LEAVE, title="Leave", source_uri="memos/leave", tags=("staff",))
    return base
