"""Kept: the passages that deserve to be cited, and for every candidate why."""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kept.candidates import Passage
    from kept.decisions import Decision, Outcome, Refusal, Selection, Verdict
    from kept.errors import KeptError
    from kept.filters import Filters
    from kept.knowledge_base import KnowledgeBase
    from kept.knowledge_base import open_base as open  # noqa: A004 -- kept.open
    from kept.model import Candidate, Chunk, Document, Query
    from kept.pipeline import Pipeline, Stage
    from kept.retrieve import Found
    from kept.selecting import Selecting, select
    from kept.settings import Settings

__all__ = [
    "Candidate",
    "Chunk",
    "Decision",
    "Document",
    "Filters",
    "Found",
    "KeptError",
    "KnowledgeBase",
    "Outcome",
    "Passage",
    "Pipeline",
    "Query",
    "Refusal",
    "Selecting",
    "Selection",
    "Settings",
    "Stage",
    "Verdict",
    "open",
    "select",
]

__version__ = version("kept")

_HOMES = {
    "Candidate": "kept.model",
    "Chunk": "kept.model",
    "Decision": "kept.decisions",
    "Document": "kept.model",
    "Filters": "kept.filters",
    "Found": "kept.retrieve",
    "KeptError": "kept.errors",
    "KnowledgeBase": "kept.knowledge_base",
    "Outcome": "kept.decisions",
    "Passage": "kept.candidates",
    "Pipeline": "kept.pipeline",
    "Query": "kept.model",
    "Refusal": "kept.decisions",
    "Selecting": "kept.selecting",
    "Selection": "kept.decisions",
    "Settings": "kept.settings",
    "Stage": "kept.pipeline",
    "Verdict": "kept.decisions",
    "select": "kept.selecting",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 -- any public name
    """Load a public name at its first use, so that importing Kept is quick."""
    if name == "open":
        return import_module("kept.knowledge_base").open_base
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    msg = f"module 'kept' has no attribute {name!r}"
    raise AttributeError(msg)
