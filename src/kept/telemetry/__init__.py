"""Telemetry: searches, answers and ingestion as OpenTelemetry spans and metrics.

>>> from kept import KnowledgeBase, Settings
>>> from kept.telemetry import Telemetry
>>> settings = Settings(store=folder, embedder="hash")
>>> base = KnowledgeBase(settings, watch=Telemetry.of())
>>> base.close()

`Telemetry.of` takes a tracer provider and a meter provider, and without them those
that the process has set. With ``KEPT_TELEMETRY=otlp`` none need be made.
"""

from kept.telemetry.watch import Telemetry

__all__ = ["Telemetry"]
