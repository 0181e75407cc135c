"""Telemetry: searches, answers and ingestion as OpenTelemetry spans and metrics.

>>> import kept
>>> from kept.knowledge_base.telemetry import Telemetry
>>> base = kept.open(folder, create=True, embedder="hash", watch=Telemetry.of())
>>> base.close()

`Telemetry.of` takes a tracer provider and a meter provider, and without them those
that the process has set. With ``KEPT_TELEMETRY=otlp`` none need be made.
"""

from kept.knowledge_base.telemetry.observer import Telemetry

__all__ = ["Telemetry"]
