"""Running a fixture on a real knowledge base, crowded with distractors."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kept.evaluation import examples
from kept.evaluation.corpus import OnStep, digest, handed_text
from kept.evaluation.fixture import Fixture, written_questions
from kept.evaluation.fixture_arms import (
    HITS_AT,
    FixturePassage,
    FixtureReport,
    FixtureSystem,
    PhaseZero,
    ShownAnswer,
    run_fixture,
)
from kept.ingest.ingestion import Handed
from kept.ingest.receipts import Receipt
from kept.ingest.sources import Handing
from kept.kernel.model import NOTHING, Candidate
from kept.kernel.pipeline import Pipeline
from kept.kernel.record import Selection
from kept.knowledge_base.base import KnowledgeBase
from kept.knowledge_base.settings import NO_SERVER, Settings
from kept.knowledge_base.wiring import process_secret
from kept.search.answer.answer import Answerer
from kept.search.retrieve import Request

TENANT = "fixture"


@dataclass(frozen=True, slots=True, kw_only=True)
class Staging:
    """What a fixture runs with: the files of *folder* as further distractors.

    Where it has no questions, a language model writes *written* of them; with 0 they
    are made without a model.
    """

    folder: Path
    written: int = 0

    @classmethod
    def in_the_handbook(cls, *, written: int = 0) -> "Staging":
        """Crowd a fixture with the pages of the example handbook."""
        handbook = Path(examples.__file__).parent / "handbook"
        return cls(folder=handbook, written=written)


def fixture_report(
    fixture: Fixture,
    settings: Settings,
    staging: Staging,
    *,
    overrides: Mapping[str, Any] = NOTHING,
    on_step: OnStep,
) -> FixtureReport:
    """Ingest the distractors and the fixture, ask its questions, and judge.

    Everything happens in a temporary knowledge base. *overrides* are settings of the
    preset. A configured language model writes the answers; without one they are
    sentences of the passages.
    """
    with _knowledge_base(settings) as base:
        base.override(overrides)
        if staging.written and not fixture.questions:
            model = base.models.demand_chat("writing questions")
            questions = written_questions(model, fixture.text, staging.written)
            fixture = replace(fixture, questions=questions)
        _crowd(base, fixture, staging.folder, on_step)
        [receipt] = base.ingest([_handed("fixture", fixture.text, fixture.title)])
        return run_fixture(fixture, _IngestedFixture(base, receipt).system())


@contextmanager
def _knowledge_base(settings: Settings) -> Iterator[KnowledgeBase]:
    with tempfile.TemporaryDirectory(prefix="kept-fixture-") as folder:
        # A temporary store of its own: neither a configured server nor the user's
        # knowledge base may take part.
        changed = {
            **NO_SERVER,
            "store": folder,
            "tenant": TENANT,
            "record_queries": "off",
        }
        with KnowledgeBase(settings.model_copy(update=changed)) as base:
            yield base


def _crowd(
    base: KnowledgeBase, fixture: Fixture, folder: Path, on_step: OnStep
) -> None:
    """Ingest everything but the document."""
    made = [_handed("distractor", text) for text in fixture.distractors]
    everything = [*made, *Handing()([str(folder)])]
    for done, _ in enumerate(base.ingest(everything), start=1):
        on_step("ingesting distractors", done, len(everything))


def _handed(kind: str, text: str, title: str = "") -> Handed:
    sha256 = digest(f"{title}\0{text}")
    return handed_text(f"{kind}:{sha256[:16]}", text, title)


class _IngestedFixture:
    """The system under test, with the document ingested."""

    def __init__(self, base: KnowledgeBase, receipt: Receipt) -> None:
        self._base = base
        self._receipt = receipt
        self._answerer = Answerer(
            model=base.models.chat(), secret=process_secret(), embedder=base.embedder
        )
        self._seen: dict[str, Candidate] = {}

    def system(self) -> FixtureSystem:
        """Return the callables for the arms."""
        chunks = self._chunks()
        return FixtureSystem(
            ingested=PhaseZero(
                chunks=len(chunks),
                embedded=len(self._nearest("fixture", [c.chunk_id for c in chunks])),
                duplicate=self._receipt.status == "reused",
            ),
            chunks=chunks,
            search=self._search,
            oracle=self._oracle,
            answer=self._answer,
        )

    def _chunks(self) -> tuple[FixturePassage, ...]:
        if self._receipt.document_id is None:
            return ()
        chunks = self._base.store.chunks(TENANT, self._receipt.document_id)
        return tuple(FixturePassage(chunk_id=c.id, text=c.text) for c in chunks)

    def _search(self, question: str) -> Selection:
        selection = self._base.search(question).selection
        self._seen |= {c.id: c for c in selection.candidates}
        return selection

    def _oracle(self, question: str) -> Sequence[FixturePassage]:
        """Return the document's own chunks, the nearest to the question first."""
        forced = self._nearest(question, [c.chunk_id for c in self._chunks()])[:HITS_AT]
        self._seen |= {c.id: c for c in forced}
        return [FixturePassage(chunk_id=c.id, text=c.chunk.text) for c in forced]

    def _nearest(self, question: str, chunk_ids: Sequence[str]) -> list[Candidate]:
        """Return the named chunks as candidates, without those that lack a vector."""
        request = Request(question=question, tenant=TENANT, pinned=frozenset(chunk_ids))
        # Without stages and gate, so that nothing but the distance decides.
        unsifted = replace(self._base.plan(request), pipeline=Pipeline(()), gate=None)
        found = self._base.retriever(unsifted)(request).selection.candidates
        return [c for c in found if c.id in request.pinned and c.vector is not None]

    def _answer(self, question: str, passages: Sequence[FixturePassage]) -> ShownAnswer:
        candidates = tuple(self._seen[p.chunk_id] for p in passages)
        answer = self._answerer(question, Selection(candidates))
        return ShownAnswer(
            text=answer.text,
            refused=answer.kind in {"passages", "none"},
            beside=tuple(c.snippet for c in answer.citations if c.cited)
            if answer.kind == "passages"
            else (),
        )
