"""Migrating to a Milvus and back: the same documents, the same answers."""

from itertools import pairwise
from pathlib import Path

from lite_server import LiteServer

from kept.knowledge_base.base import KnowledgeBase
from kept.knowledge_base.migration import migrate
from kept.knowledge_base.settings import Settings

QUESTION = "What does the pump of model TW-C235 cost?"


def silent(step: str, done: int, total: int) -> None:
    """Hear how far it is, and say nothing."""


def test_a_store_goes_to_a_milvus_and_back(tmp_path: Path, milvus: LiteServer) -> None:
    """Both ways are verified, and the question finds the same at each stop."""
    stops = (
        str(tmp_path / "folder"),
        milvus.url(tmp_path / "beside"),
        str(tmp_path / "back"),
    )
    settings = Settings.of({"embedder": "hash"})
    with KnowledgeBase(settings.changed(store=stops[0])) as base:
        base.add("The pump of model TW-C235 costs 410 euro without tax.")
        base.add("Employees have 28 days of leave a year.")

    moves = [migrate(settings, here, there, silent) for here, there in pairwise(stops)]

    assert all(part.same for move in moves for part in move.parts)
    found = []
    for stop in stops:
        with KnowledgeBase(settings.changed(store=stop)) as base:
            selection = base.search(QUESTION).selection
            found.append([(c.id, dict(c.signals)) for c in selection.candidates])
    assert found[0] == found[1] == found[2] != []
