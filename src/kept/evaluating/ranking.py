"""Ranking: a collection's questions put to a corpus, guarded and in plain order."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from kept.evaluating.asking import Asking, Recall, asking
from kept.evaluating.corpus import Corpus, Tell, digest
from kept.evaluation.collection import Collection
from kept.evaluation.measures import DEFAULT_MEASURES
from kept.evaluation.runs import EvaluationRun, RunHeader
from kept.evaluation.suite import Ranked, evaluate, plan
from kept.evaluation.trec import write_run
from kept.render import candidate_json, record_json, refusal_json

GUARDED = "run.jsonl"
PLAIN = "plain.jsonl"
TRACES = "traces"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What is under test: a preset with its overrides, and the measures to take."""

    preset: str = "default"
    overrides: Mapping[str, Any] = field(default_factory=dict, hash=False)
    measures: tuple[str, ...] = DEFAULT_MEASURES
    name: str = "default"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a run is kept; with *traces*, the whole record of each question too."""

    folder: Path
    traces: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """The same questions with the guardrails as configured, and without any.

    *plain* ranks everything that was recalled; *guarded* ranks what the preset
    would cite, and a refused question is worth 0 in it.
    """

    guarded: EvaluationRun
    plain: EvaluationRun


def evaluated(
    collection: Collection,
    corpus: Corpus,
    setup: Setup,
    *,
    out: Place | None = None,
    tell: Tell,
) -> Evaluation:
    """Ask every question of *collection* and measure both orders.

    With *out*, records are written as they come, and an interrupted attempt goes
    on where it stopped.
    """
    asked = asking(corpus, setup.preset, setup.overrides)
    header = header_of(collection, asked, setup)
    both = _Both(asked, out.folder / TRACES if out and out.traces else None)

    def progress(done: int, total: int) -> None:
        tell(f"asking {collection.name}", done, total)

    guarded = evaluate(
        collection,
        both.guarded,
        header,
        out=out.folder / GUARDED if out else None,
        progress=progress,
    )
    plain = evaluate(
        collection,
        both.plain,
        replace(header, name=f"{header.name}, no guardrails"),
        out=out.folder / PLAIN if out else None,
        progress=progress,
    )
    if out:
        write_run(out.folder / "run.trec", guarded.rankings, setup.preset)
        write_run(out.folder / "plain.trec", plain.rankings, f"{setup.preset}-plain")
    return Evaluation(guarded=guarded, plain=plain)


def header_of(collection: Collection, asked: Asking, setup: Setup) -> RunHeader:
    """Write down what is asked of which knowledge, and under which settings."""
    base = asked.corpus.base
    with base.store.shelf(base.tenant) as shelf:
        state = shelf.state
    return plan(
        collection,
        measures=setup.measures,
        name=setup.name,
        configuration={
            "preset": setup.preset,
            "overrides": dict(setup.overrides),
            "embedder": base.embedder.id,
            "chunk_chars": base.settings.chunk_chars,
            "max_chunks": base.settings.max_chunks,
        },
        fingerprints={"configuration": asked.configuration, "knowledge_base": state},
    )


class _Both:
    """Recalls each question once and remembers the plain order for its turn."""

    def __init__(self, asked: Asking, traces: Path | None) -> None:
        self._asked = asked
        self._traces = traces
        self._plain: dict[str, Ranked] = {}

    def guarded(self, question: str) -> Ranked:
        recall = self._asked.recall(question)
        self._plain[question] = self._asked.plain(recall)
        ranked = self._asked.guarded(recall)
        if self._traces is None:
            return ranked
        return replace(ranked, trace=self._written(self._traces, recall))

    def plain(self, question: str) -> Ranked:
        remembered = self._plain.pop(question, None)
        return remembered or self._asked.plain(self._asked.recall(question))

    def _written(self, folder: Path, recall: Recall) -> str:
        """Write the whole record of a question and return where, from the run on."""
        refused, selection = self._asked.selected(recall)
        record = {
            "query": recall.request.question,
            "refused": refusal_json(refused),
            "selected": [candidate_json(c) for c in selection.candidates],
            "record": record_json(selection),
        }
        folder.mkdir(parents=True, exist_ok=True)
        name = f"{digest(recall.request.question)[:24]}.json"
        text = json.dumps(record, ensure_ascii=False, indent=1)
        (folder / name).write_text(text + "\n", "utf-8")
        return f"{folder.name}/{name}"
