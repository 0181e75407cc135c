"""The time limit of one call of an embedder, set by its caller."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CallLimit:
    """How long a call may take, and the variable that says so."""

    seconds: float
    variable: str


# A context variable, because an embedder may stand behind wrappers whose `embed` takes
# texts and nothing else.
_limit: ContextVar[CallLimit | None] = ContextVar("kept_embedder_call_limit")


def call_limit(otherwise: CallLimit) -> CallLimit:
    """Return the limit of the call that is running, or *otherwise*."""
    return _limit.get(None) or otherwise


@contextmanager
def limited(limit: CallLimit) -> Iterator[None]:
    """Apply *limit* to every call of an embedder in this block, in this thread."""
    token = _limit.set(limit)
    try:
        yield
    finally:
        _limit.reset(token)
