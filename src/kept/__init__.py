"""Kept: the passages that deserve to be cited, and for every candidate why."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kept.candidates import Passage
    from kept.decisions import Decision, Outcome, Refusal, Selection, Verdict
    from kept.errors import KeptError
    from kept.filters import Condition, Filters
    from kept.knowledge_base import KnowledgeBase
    from kept.model import Candidate, Chunk, Document, Query
    from kept.notebook import Base, Selected
    from kept.notebook import open_base as open  # noqa: A004 -- kept.open
    from kept.pipeline import Pipeline, Stage
    from kept.retrieve import Found
    from kept.selecting import Selecting, select
    from kept.settings import Settings

    __version__: str

__all__ = [
    "Base",
    "Candidate",
    "Chunk",
    "Condition",
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
    "Selected",
    "Selecting",
    "Selection",
    "Settings",
    "Stage",
    "Verdict",
    "open",
    "select",
]

_HOMES = {
    "Base": "kept.notebook",
    "Candidate": "kept.model",
    "Chunk": "kept.model",
    "Condition": "kept.filters",
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
    "Selected": "kept.notebook",
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
        return import_module("kept.notebook").open_base
    if name == "__version__":
        return import_module("importlib.metadata").version("kept")
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    msg = f"module 'kept' has no attribute {name!r}"
    raise AttributeError(msg)


def __dir__() -> list[str]:
    """Name what can be had, loaded or not."""
    return sorted({*globals(), *__all__})
