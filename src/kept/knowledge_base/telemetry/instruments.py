"""Instruments: counters and histograms, without any text of questions."""

from opentelemetry.metrics import Histogram, Meter

from kept.ingest.receipts import Receipt
from kept.kernel.outcome import Outcome
from kept.kernel.record import Verdict
from kept.search.retrieve import Found

SECONDS = "s"
BUCKETS = (
    *(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05),
    *(0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0),
)


class Instruments:
    """Counters and histograms of one meter."""

    def __init__(self, meter: Meter) -> None:
        def timer(name: str, description: str) -> Histogram:
            return meter.create_histogram(
                name,
                unit=SECONDS,
                description=description,
                explicit_bucket_boundaries_advisory=BUCKETS,
            )

        self._searches = timer("kept.search.duration", "How long searches take.")
        self._stages = timer("kept.stage.duration", "How long stages take.")
        self._answers = timer("kept.answer.duration", "How long answers take.")
        self._models = timer(
            "gen_ai.client.operation.duration", "How long models and embedders take."
        )
        self._tokens = meter.create_histogram(
            "gen_ai.client.token.usage", unit="{token}", description="Tokens of a call."
        )
        self._candidates = meter.create_counter(
            "kept.candidates",
            unit="{candidate}",
            description="What became of candidates, by stage and reason.",
        )
        self._selected = meter.create_histogram(
            "kept.search.selected",
            unit="{passage}",
            description="How many passages searches give back.",
        )
        self._documents = meter.create_counter(
            "kept.documents",
            unit="{document}",
            description="What became of texts that were handed in.",
        )

    def searched(self, found: Found, seconds: float) -> None:
        """Count a search."""
        refused = found.refused.reason if found.refused else "no"
        labels = {"kept.refused": refused}
        self._searches.record(seconds, labels)
        self._selected.record(len(found.selection.candidates), labels)

    def stage(self, name: str, outcome: Outcome, seconds: float) -> None:
        """Count what a stage did to candidates."""
        self._stages.record(seconds, {"kept.stage": name})
        counts: dict[tuple[Verdict, str], int] = {}
        for decision in outcome.decisions:
            key = (decision.verdict, str(decision.reason))
            counts[key] = counts.get(key, 0) + 1
        for (verdict, reason), count in counts.items():
            labels = {
                "kept.stage": name,
                "kept.verdict": str(verdict),
                "kept.reason": reason,
            }
            self._candidates.add(count, labels)

    def answered(self, kind: str, seconds: float) -> None:
        """Count an answer."""
        self._answers.record(seconds, {"kept.answer.kind": kind})

    def called(self, operation: str, model: str, seconds: float, error: str) -> None:
        """Count a call of a model."""
        labels = {"gen_ai.operation.name": operation, "gen_ai.request.model": model}
        self._models.record(seconds, labels | ({"error.type": error} if error else {}))

    def spent(self, model: str, **tokens: int) -> None:
        """Count the tokens of a call, by input and output."""
        for kind, count in tokens.items():
            labels = {"gen_ai.request.model": model, "gen_ai.token.type": kind}
            self._tokens.record(count, labels)

    def taken(self, receipt: Receipt) -> None:
        """Count a text that was handed in."""
        labels = {"kept.status": receipt.status, "kept.rule": receipt.rule or "none"}
        self._documents.add(1, labels)
