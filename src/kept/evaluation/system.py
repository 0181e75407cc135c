"""The system under test: a preset on a corpus, with its guardrails and without them.

Stages are pure, so recall runs once per question, and any number of plans run on what
it returned. The result is what a search with the same plan returns.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from kept.errors import InputError, UnreadableSourceError
from kept.evaluation.collection import Collection
from kept.evaluation.corpus import Corpus, OnStep, digest
from kept.evaluation.measures import DEFAULT_MEASURES
from kept.evaluation.runs import EvaluationRun, RunHeader
from kept.evaluation.suite import Ranked, evaluate, plan, ranked_documents
from kept.evaluation.trec import best_first, write_run
from kept.kernel.gate import turned_away
from kept.kernel.model import Candidate
from kept.kernel.pipeline import Pipeline
from kept.kernel.pool import Pool
from kept.kernel.presets import Plan, PresetSettings, preset
from kept.kernel.record import Refusal, Selection
from kept.kernel.stages import ORDERING
from kept.knowledge_base.settings import Settings
from kept.search.render import candidate_json, record_json, refusal_json
from kept.search.retrieve import Request, selected

GUARDED = "run.jsonl"
PLAIN = "plain.jsonl"
TRACES = "traces"
# R@100 needs a hundred documents.
DEPTH = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """A preset with overrides, and the measures to take."""

    preset: str = "default"
    overrides: Mapping[str, Any] = field(default_factory=dict, hash=False)
    measures: tuple[str, ...] = DEFAULT_MEASURES
    name: str = "default"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a run is kept; with *traces*, so is the whole record of each question."""

    folder: Path
    traces: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """The same questions with the guardrails as configured, and without any.

    *plain* ranks everything that was recalled. *guarded* ranks what the preset cites;
    a refused question counts as 0.
    """

    guarded: EvaluationRun
    plain: EvaluationRun


@dataclass(frozen=True, slots=True)
class RecalledPool:
    """The candidates recalled for a question, with signals, before any stage."""

    request: Request
    candidates: tuple[Candidate, ...] = field(repr=False)

    @property
    def confidence(self) -> float | None:
        """The relevance of the best passage, at first look."""
        return Pool.of(self.candidates).first_wave().best("relevance")


@dataclass(frozen=True)
class SystemUnderTest:
    """A corpus that is asked under one plan."""

    corpus: Corpus
    plan: Plan

    @property
    def configuration(self) -> str:
        """The fingerprint of everything but the passages that decides an answer."""
        return self.corpus.base.retriever(self.plan).configuration

    def recall(self, question: str) -> RecalledPool:
        """Return all that the legs find, without the gate and the stages."""
        base = self.corpus.base
        request = Request(question=question, tenant=base.tenant)
        retriever = base.retriever(replace(self.plan, pipeline=Pipeline(()), gate=None))
        return RecalledPool(request, retriever(request).selection.candidates)

    def selected(self, recall: RecalledPool) -> tuple[Refusal | None, Selection]:
        """Return what the plan selects from a recall, as a search would."""
        refused = self._gated(recall.request.question)
        if refused is not None:
            return refused, Selection(())
        return selected(self.plan, recall.request, recall.candidates)

    def guarded(self, recall: RecalledPool) -> Ranked:
        """Rank the documents that the plan selects."""
        refused, selection = self.selected(recall)
        gated = refused is not None and not selection.trace
        return self._named(
            ranked_documents(
                selection,
                document_id=_document,
                confidence=None if gated else recall.confidence,
                refusal=refused.reason if refused else None,
            )
        )

    def plain(self, recall: RecalledPool) -> Ranked:
        """Rank all recalled documents in the plan's order, nothing dropped."""
        stages = [s for s in self.plan.pipeline.stages if isinstance(s, ORDERING)]
        selection = Pipeline(tuple(stages))(recall.request.query(), recall.candidates)
        ranked = ranked_documents(
            selection, document_id=_document, confidence=recall.confidence
        )
        # Nothing was dropped here; the funnel is that of the guarded order.
        return self._named(replace(ranked, funnel=()))

    def _gated(self, question: str) -> Refusal | None:
        if self.plan.gate is None:
            return None
        base = self.corpus.base
        with base.store.shelf(base.tenant) as shelf:
            return turned_away(self.plan.gate, question, partial(shelf.weigh, question))

    def _named(self, ranked: Ranked) -> Ranked:
        """Replace document ids by those of the collection."""
        names = self.corpus.names
        ranking = [(name, score) for d, score in ranked.ranking for name in names[d]]
        return replace(
            ranked,
            ranking=best_first(ranking)[:DEPTH],
            touches=tuple(
                replace(touch, document_id=name)
                for touch in ranked.touches
                for name in names[touch.document_id]
            ),
        )


def asking(
    corpus: Corpus, preset_name: str, overrides: Mapping[str, Any] | None = None
) -> SystemUnderTest:
    """Put *corpus* under a preset; *overrides* win over the environment.

    The plan's k is large enough to measure a ranking of documents.
    """
    chosen = preset(preset_name)
    settings = chosen.configure(overrides)
    return SystemUnderTest(corpus, chosen.plan(settings, corpus.base.parts, k=DEPTH))


def evaluated(
    collection: Collection,
    corpus: Corpus,
    setup: Setup,
    *,
    out: Place | None = None,
    on_step: OnStep,
) -> Evaluation:
    """Ask every question of *collection* and measure both orders.

    With *out*, each record is written at once, and an interrupted run is resumed.
    """
    asked = asking(corpus, setup.preset, setup.overrides)
    header = header_of(collection, asked, setup)
    both = _Both(asked, out.folder / TRACES if out and out.traces else None)

    def progress(done: int, total: int) -> None:
        on_step(f"asking {collection.name}", done, total)

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


def header_of(
    collection: Collection, asked: SystemUnderTest, setup: Setup
) -> RunHeader:
    """Return the header of a run: the collection, the settings, the fingerprints."""
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
    """Recalls each question once for both orders."""

    def __init__(self, asked: SystemUnderTest, traces: Path | None) -> None:
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
        ranked = self._plain.pop(question, None)
        # A resumed run may have the guarded order of a question already.
        return ranked or self._asked.plain(self._asked.recall(question))

    def _written(self, folder: Path, recall: RecalledPool) -> str:
        """Write the whole record of a question; return its path within the run."""
        refused, selection = self._asked.selected(recall)
        record = {
            "query": recall.request.question,
            "refused": refusal_json(refused),
            "selected": [
                candidate_json(c, recall.request.question) for c in selection.candidates
            ],
            "record": record_json(selection),
        }
        folder.mkdir(parents=True, exist_ok=True)
        name = f"{digest(recall.request.question)[:24]}.json"
        text = json.dumps(record, ensure_ascii=False, indent=1)
        (folder / name).write_text(text + "\n", "utf-8")
        return f"{folder.name}/{name}"


def settings_file(path: Path) -> dict[str, Any]:
    """Read settings from a YAML or JSON file, by field name or variable."""
    try:
        found = yaml.safe_load(path.read_text("utf-8-sig"))
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableSourceError(
            str(path), f"cannot be read ({error})", "check the path and encoding"
        ) from error
    except yaml.YAMLError as error:
        msg = f"{path}: not valid YAML ({' '.join(str(error).split())})"
        raise InputError(msg) from error
    if not isinstance(found, dict):
        msg = (
            f"{path}: expected names and values, met {type(found).__name__}; "
            "write lines such as 'relevance_floor: 0.35'"
        )
        raise InputError(msg)
    return {str(name): value for name, value in found.items()}


def divided(given: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split settings into those of the knowledge base and those of its preset."""
    ours = set(Settings.model_fields) - set(PresetSettings.model_fields)
    named = {Settings.variable(name): name for name in ours}
    by_field = {named.get(name, name): value for name, value in given.items()}
    base = {name: value for name, value in by_field.items() if name in ours}
    return base, {n: value for n, value in by_field.items() if n not in ours}


def _document(candidate: Candidate) -> str:
    return candidate.document.id
