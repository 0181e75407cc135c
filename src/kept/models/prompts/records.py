"""Prompt records: what went into a prompt."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kept._runtime import Logger
from kept.kernel.model import Scalar

logger = Logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextRecord:
    """One prompt: its template, the chunks in it, how they were found, for whom."""

    template: str
    version: int
    checksum: str
    drifted: bool
    chunk_ids: tuple[str, ...]
    model: str
    parameters: Mapping[str, Scalar] = field(default_factory=dict, hash=False)
    metrics: Mapping[str, Scalar] = field(default_factory=dict, hash=False)
    redactions: Mapping[str, int] = field(default_factory=dict, hash=False)

    def as_data(self) -> dict[str, Any]:
        """Return the record as JSON holds it."""
        return {
            "template": self.template,
            "version": self.version,
            "checksum": self.checksum,
            "drifted": self.drifted,
            "chunk_ids": list(self.chunk_ids),
            "model": self.model,
            "parameters": dict(self.parameters),
            "metrics": dict(self.metrics),
            "redactions": dict(self.redactions),
        }


@dataclass(frozen=True, slots=True)
class Prompt:
    """A conversation ready to be sent, and the record of how it was built."""

    messages: tuple[Mapping[str, str], ...]
    record: ContextRecord


Recorder = Callable[[ContextRecord], None]


def log_context(record: ContextRecord) -> None:
    """Write a record to the log, as a warning if its template has drifted."""
    log = logger.warning if record.drifted else logger.debug
    log("prompt_built", **record.as_data())
