"""Ports of explanations: what they need of a knowledge base."""

from typing import Protocol

from kept.kernel.calibration import Calibration
from kept.kernel.ports import Embedder
from kept.kernel.presets.plan import Configured, Parts, Plan
from kept.search.retrieve import Request, Retriever
from kept.stores.ports import ManagedStore


class ExplainedBase(Protocol):
    """A knowledge base whose answers are explained, compared and replayed."""

    tenant: str

    @property
    def store(self) -> ManagedStore:
        """Where the documents are."""
        ...

    @property
    def embedder(self) -> Embedder:
        """What turns text into vectors."""
        ...

    @property
    def calibration(self) -> Calibration:
        """What turns signals into relevance."""
        ...

    def configured(
        self, preset_name: str | None = None, *, tenant: str | None = None
    ) -> Configured:
        """Return a preset with the environment's and the tenant's settings."""
        ...

    def parts_of(self, configured: Configured) -> Parts:
        """Return the models that the configuration's stages call."""
        ...

    def plan(self, request: Request, configured: Configured | None = None) -> Plan:
        """Return what a request goes through."""
        ...

    def retriever(self, plan: Plan) -> Retriever:
        """Return what answers requests by way of *plan*; it records nothing."""
        ...
