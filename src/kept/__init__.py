"""Kept: the passages that deserve to be cited, and for every candidate why."""

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kept.doors.library import open  # noqa: A004
    from kept.errors import KeptError
    from kept.kernel.filters import Condition, Filters
    from kept.kernel.model import Candidate, Chunk, Document, Query
    from kept.kernel.outcome import Outcome, Stage
    from kept.kernel.pipeline import Pipeline
    from kept.kernel.record import Decision, Refusal, Selection, Verdict
    from kept.knowledge_base.base import KnowledgeBase
    from kept.knowledge_base.results import ResultPassage, SearchResult
    from kept.knowledge_base.select import Selecting, select
    from kept.knowledge_base.settings import Settings
    from kept.search.retrieve import Found
    from kept.search.select import Passage

    __version__: str

__all__ = [
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
    "ResultPassage",
    "SearchResult",
    "Selecting",
    "Selection",
    "Settings",
    "Stage",
    "Verdict",
    "open",
    "select",
]

_HOMES = {
    "Candidate": "kept.kernel.model",
    "Chunk": "kept.kernel.model",
    "Condition": "kept.kernel.filters",
    "Decision": "kept.kernel.record",
    "Document": "kept.kernel.model",
    "Filters": "kept.kernel.filters",
    "Found": "kept.search.retrieve",
    "KeptError": "kept.errors",
    "KnowledgeBase": "kept.knowledge_base.base",
    "Outcome": "kept.kernel.outcome",
    "Passage": "kept.search.select",
    "Pipeline": "kept.kernel.pipeline",
    "Query": "kept.kernel.model",
    "Refusal": "kept.kernel.record",
    "ResultPassage": "kept.knowledge_base.results",
    "SearchResult": "kept.knowledge_base.results",
    "Selecting": "kept.knowledge_base.select",
    "Selection": "kept.kernel.record",
    "Settings": "kept.knowledge_base.settings",
    "Stage": "kept.kernel.outcome",
    "Verdict": "kept.kernel.record",
    "select": "kept.knowledge_base.select",
}


def _refuse_a_namesake() -> None:
    """Raise where the distribution ``kept``, another project, is installed beside us.

    Both have a package of this name, and an installer writes one over the other. The
    folder is listed because importlib.metadata takes longer to load than all of this.
    """
    here = os.path.dirname(os.path.dirname(__file__))  # noqa: PTH120 -- as above
    others = [
        name
        for name in os.listdir(here)  # noqa: PTH208 -- as above
        if name.startswith("kept-") and name.endswith((".dist-info", ".egg-info"))
    ]
    if others:
        msg = (
            f"{others[0]} in {here} is another project that also installs a package "
            "'kept', over this one; run 'pip uninstall --yes kept kept-rag', then "
            "'pip install kept-rag'"
        )
        raise ImportError(msg)


_refuse_a_namesake()


def __getattr__(name: str) -> Any:  # noqa: ANN401 -- any public name
    """Load a public name at its first use, so that importing Kept is quick."""
    if name == "open":
        return import_module("kept.doors.library").open
    if name == "__version__":
        return import_module("importlib.metadata").version("kept-rag")
    if name == "errors":
        return import_module("kept.errors")
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    msg = f"module 'kept' has no attribute {name!r}"
    raise AttributeError(msg)


def __dir__() -> list[str]:
    """Return our own names, loaded or not, and none of what we import."""
    return sorted([*__all__, "__version__", "errors"])
