"""Fixtures at work: one document in a crowd, asked about by way of the real path."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kept import examples
from kept.answer import Answerer
from kept.decisions import Selection
from kept.evaluating.corpus import Tell, digest
from kept.evaluation.arms import (
    HITS_AT,
    FixturePassage,
    FixtureReport,
    FixtureSystem,
    PhaseZero,
    run_fixture,
)
from kept.evaluation.fixture import Fixture, written_questions
from kept.ingest import Handed
from kept.knowledge_base import KnowledgeBase
from kept.model import NOTHING, Candidate
from kept.pipeline import Pipeline
from kept.receipts import Receipt, Source
from kept.retrieve import Request
from kept.settings import NO_SERVER, Settings
from kept.sources import Handing
from kept.text.draft import Draft
from kept.wiring import process_secret

TENANT = "fixture"


@dataclass(frozen=True, slots=True, kw_only=True)
class Staging:
    """How a fixture is staged.

    The files of *folder* stand around its document. Where it brings no questions, a
    language model writes *written* of them; with 0 they are made without a model.
    """

    folder: Path
    written: int = 0

    @classmethod
    def in_the_handbook(cls, *, written: int = 0) -> "Staging":
        """Stage a fixture among the pages of the example handbook."""
        handbook = Path(examples.__file__).parent / "handbook"
        return cls(folder=handbook, written=written)


def fixture_report(
    fixture: Fixture,
    settings: Settings,
    staging: Staging,
    *,
    overrides: Mapping[str, Any] = NOTHING,
    tell: Tell,
) -> FixtureReport:
    """Take the fixture in after its crowd, ask its questions, and judge.

    Everything happens in a knowledge base of its own, which is gone afterwards.
    *overrides* are settings of the preset. A configured language model writes the
    answers; without one they are sentences of the passages.
    """
    with _knowledge_base(settings) as base:
        base.override(overrides)
        if staging.written and not fixture.questions:
            model = base.models.demand_chat("writing questions")
            questions = written_questions(model, fixture.text, staging.written)
            fixture = replace(fixture, questions=questions)
        _crowded(base, fixture, staging.folder, tell)
        [receipt] = base.ingest([_handed("fixture", fixture.text, fixture.title)])
        return run_fixture(fixture, _Trial(base, receipt).system())


@contextmanager
def _knowledge_base(settings: Settings) -> Iterator[KnowledgeBase]:
    with tempfile.TemporaryDirectory(prefix="kept-fixture-") as folder:
        changed = {
            **NO_SERVER,
            "store": folder,
            "tenant": TENANT,
            "record_queries": "off",
        }
        with KnowledgeBase(settings.model_copy(update=changed)) as base:
            yield base


def _crowded(base: KnowledgeBase, fixture: Fixture, folder: Path, tell: Tell) -> None:
    """Take in everything that is not the document."""
    made = [_handed("distractor", text) for text in fixture.distractors]
    everything = [*made, *Handing()([str(folder)])]
    for done, _ in enumerate(base.ingest(everything), start=1):
        tell("taking in distractors", done, len(everything))


def _handed(kind: str, text: str, title: str = "") -> Handed:
    draft = Draft(text=text, title=title)
    raw = digest(f"{title}\0{text}")
    source = Source(uri=f"{kind}:{raw[:16]}", raw_sha256=raw)
    return Handed(source=source, read=lambda: draft)


class _Trial:
    """The system under test, with the document already in it."""

    def __init__(self, base: KnowledgeBase, receipt: Receipt) -> None:
        self._base = base
        self._receipt = receipt
        self._answerer = Answerer(
            model=base.models.chat(), secret=process_secret(), embedder=base.embedder
        )
        self._seen: dict[str, Candidate] = {}

    def system(self) -> FixtureSystem:
        """Return the callables that the arms ask."""
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
        """Weigh the named chunks, those without a vector left out."""
        request = Request(question=question, tenant=TENANT, pinned=frozenset(chunk_ids))
        unsifted = replace(self._base.plan(request), pipeline=Pipeline(()), gate=None)
        found = self._base.retriever(unsifted)(request).selection.candidates
        return [c for c in found if c.id in request.pinned and c.vector is not None]

    def _answer(self, question: str, passages: Sequence[FixturePassage]) -> str:
        candidates = tuple(self._seen[p.chunk_id] for p in passages)
        return self._answerer(question, Selection(candidates)).text
