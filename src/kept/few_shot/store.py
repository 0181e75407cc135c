"""A reference store: labelled passages in a knowledge base, chosen for each item.

Each participant is a document of the type ``reference``. Its text includes the labels,
so that a changed label makes a new version.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from kept.errors import InputError, SettingsError
from kept.few_shot.extraction import ChunkScorer, ChunkScores, load_scores, prompt_hash
from kept.few_shot.questionnaire import Questionnaire
from kept.few_shot.references import Evidence, ReferenceBundle, check_split
from kept.few_shot.transcripts import ReferenceChunk
from kept.ingest.ingestion import Handed
from kept.ingest.receipts import Receipt, Source
from kept.kernel.filters import Filters
from kept.kernel.model import Document
from kept.kernel.ports import Embedder, Vectors
from kept.kernel.presets.few_shot import FEW_SHOT, FewShotSettings
from kept.kernel.presets.plan import Plan
from kept.knowledge_base.base import KnowledgeBase
from kept.models.embedders import checked
from kept.models.embedders.known import Known
from kept.search.render import found_json
from kept.search.retrieve import Drawn, Found, Request, Retriever
from kept.text.draft import Draft, DraftPiece

TYPE = "reference"
PREFIX = "transcript:"
SUPPLIED = "supplied"
SAVED_EVERY = 16


@dataclass(frozen=True, kw_only=True)
class ChosenReferences:
    """The references for one participant, with the search for each item.

    *skipped* items had too little evidence to search for.
    """

    participant: str | None
    bundle: ReferenceBundle
    found: Mapping[str, Found] = field(hash=False)
    skipped: tuple[str, ...] = ()

    def as_data(self) -> dict[str, Any]:
        """Return the bundle and its whole record as JSON."""
        return {
            "participant": self.participant,
            **self.bundle.as_data(),
            "skipped": list(self.skipped),
            "items": {item: found_json(found) for item, found in self.found.items()},
        }


@dataclass(frozen=True)
class ReferenceStore:
    """The references in one knowledge base, all of one questionnaire."""

    base: KnowledgeBase
    questionnaire: Questionnaire

    def build(
        self, chunks: Sequence[ReferenceChunk], scores: ChunkScores | None = None
    ) -> Iterator[Receipt]:
        """Make *chunks* the references, and forget all others.

        A participant who was removed from the transcripts is removed here as well.
        *scores* name the origin of labels from a language model.
        """
        self._check_dimension()
        by_participant: dict[str, list[ReferenceChunk]] = {}
        for chunk in chunks:
            by_participant.setdefault(chunk.participant, []).append(chunk)
        handed = [
            self._handed(name, own, scores) for name, own in by_participant.items()
        ]
        # As given: duplicate rules would merge participants who say the same.
        yield from self.base.ingest(handed, as_given=True)
        kept = {one.source.uri for one in handed}
        for uri in self.base.store.sources(self.base.tenant, PREFIX):
            if uri not in kept:
                yield self.base.store.intake(self.base.tenant).forget(uri)

    def documents(self) -> list[Document]:
        """Return the references, one document for each participant."""
        stored = self.base.store.documents(self.base.tenant)
        return [one.document for one in stored if one.document.type == TYPE]

    def check(self, evaluation: Iterable[object] = ()) -> None:
        """Raise unless the references fit the questionnaire, the prompt, the split."""
        documents = self.documents()
        if not documents:
            msg = (
                f"there are no references of tenant {self.base.tenant!r} here; "
                "'kept references build' makes them"
            )
            raise InputError(msg)
        for document in documents:
            self._check_origin(document.metadata)
        check_split((d.metadata["participant"] for d in documents), evaluation)

    def choose(
        self, given: Mapping[str, object], participant: str | None = None
    ) -> ChosenReferences:
        """Choose references for the evidence of one participant.

        All texts are embedded in one call, and all references are ranked for each
        item. The participant must not be among the references.
        """
        configured = self.base.configured(FEW_SHOT.name)
        settings = configured.settings
        if not isinstance(settings, FewShotSettings):
            raise TypeError(settings)
        plan = self.base.plan(self._request("", ""), configured)
        self._check_dimension()
        self.check([] if participant is None else [participant])
        fewest = settings.min_evidence_chars
        evidence = Evidence.of(given, self.questionnaire, fewest)
        vectors = _embedded(evidence, self.base.embedder, settings)
        found = self._found(evidence, vectors, plan)
        return ChosenReferences(
            participant=participant,
            bundle=ReferenceBundle(
                questionnaire=self.questionnaire,
                selections={item: one.selection for item, one in found.items()},
            ),
            found=found,
            skipped=tuple(item for item in given if item not in evidence.texts),
        )

    def _found(
        self, evidence: Evidence, vectors: Mapping[str, Vectors], plan: Plan
    ) -> dict[str, Found]:
        """Search for every item in one read transaction."""
        known = Known(self.base.embedder, vectors)
        retriever = replace(self.base.retriever(plan), embedder=known)
        with self.base.store.shelf(self.base.tenant) as shelf:
            # All references: the label and tag filters run after recall, and a
            # shallower one could leave them nothing.
            whole = replace(plan, depth=max(plan.depth, shelf.chunks))
            deep = replace(retriever, plan=whole)
            drawn = {
                item: deep.drawn(shelf, self._request(text, item))
                for item, text in evidence.texts.items()
            }
        return {item: self._chosen(deep, one) for item, one in drawn.items()}

    def _chosen(self, retriever: Retriever, drawn: Drawn) -> Found:
        def chosen(plan: Plan) -> Found:
            return replace(retriever, plan=plan).chosen(drawn)

        return self.base.watch.search(drawn.request, retriever.plan, chosen)

    def _request(self, text: str, item: str) -> Request:
        filters = Filters(types=(TYPE,))
        return Request(
            question=text, tenant=self.base.tenant, filters=filters, item=item
        )

    def _handed(
        self, name: str, chunks: list[ReferenceChunk], scores: ChunkScores | None
    ) -> Handed:
        metadata = self._origin(name, chunks, scores)
        pieces = tuple(DraftPiece(c.text, c.tags, c.labels) for c in chunks)
        head = "\n".join(f"{key}: {value}" for key, value in metadata.items())
        draft = Draft(
            text="\n\n".join((head, *map(_written, chunks))),
            source_uri=f"{PREFIX}{name}",
            type=TYPE,
            metadata=metadata,
            pieces=pieces,
        )
        source = Source(uri=draft.source_uri, raw_sha256=_digest(draft.text))
        return Handed(source=source, read=lambda: draft)

    def _origin(
        self, name: str, chunks: list[ReferenceChunk], scores: ChunkScores | None
    ) -> dict[str, Any]:
        """Return the participant, and where the labels of the chunks come from."""
        scored = scores and any(chunk.id in scores.labels for chunk in chunks)
        return {
            "participant": name,
            "questionnaire": self.questionnaire.name,
            "questionnaire_sha256": _of(self.questionnaire),
            "labels_by": scores.model if scores and scored else SUPPLIED,
            "prompt_hash": scores.prompt_hash if scores and scored else None,
        }

    def _check_origin(self, origin: Mapping[str, Any]) -> None:
        if origin.get("questionnaire_sha256") != _of(self.questionnaire):
            msg = (
                f"the references were built for {origin.get('questionnaire')}, with "
                f"other items or scores than {self.questionnaire.name} has; name the "
                "same questionnaire, or build them again"
            )
            raise InputError(msg)
        then, now = origin.get("prompt_hash"), prompt_hash(self.questionnaire)
        if then is not None and then != now:
            msg = (
                f"the references were scored with the prompt {then[:12]}, but the "
                f"prompt is now {now[:12]}; score and build them again"
            )
            raise InputError(msg)

    def _check_dimension(self) -> None:
        settings = self.base.configured(FEW_SHOT.name).settings
        wanted = getattr(settings, "dimension", 0)
        if wanted and wanted != self.base.embedder.dimension:
            msg = (
                f"{settings.variable('dimension')} is {wanted}, but "
                f"{self.base.embedder.id} makes vectors of "
                f"{self.base.embedder.dimension}; choose another embedder, or 0"
            )
            raise SettingsError(msg)


def scored(
    scorer: ChunkScorer,
    chunks: Sequence[ReferenceChunk],
    path: Path,
    on_scored: Callable[[int], None] = lambda done: None,
) -> ChunkScores:
    """Let a language model score *chunks*, and save the scores in *path*.

    Chunks that the file has are not scored again. It is written after every batch,
    so that an interruption loses little.
    """
    known = _known_scores(path, scorer)
    for start in range(0, len(chunks), SAVED_EVERY):
        some = chunks[start : start + SAVED_EVERY]
        unknown = [chunk for chunk in some if not known.knows(chunk)]
        if unknown:
            known = known.plus(scorer(unknown))
            known.save(path)
        on_scored(start + len(some))
    return known.of(chunks)


def read_split(path: Path) -> frozenset[str]:
    """Read participants, one per line; ``#`` begins a comment."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        msg = f"{path.name} cannot be read ({error}); expected one participant a line"
        raise InputError(msg) from error
    return frozenset(filter(None, (line.partition("#")[0].strip() for line in lines)))


def read_evidence(path: Path) -> tuple[str | None, Mapping[str, object]]:
    """Read a participant's evidence: items with quotes, optionally in ``evidence``."""
    try:
        data = json.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError) as error:
        msg = f"{path.name} cannot be read as JSON ({error})"
        raise InputError(msg) from error
    given = data.get("evidence", data) if isinstance(data, dict) else None
    if not isinstance(given, dict):
        msg = (
            f"{path.name}: expected an object with the quotes of each item, such as "
            '{"participant": "T01", "evidence": {"Sleep": ["I wake at four"]}}'
        )
        raise InputError(msg)
    participant = data.get("participant") if given is not data else None
    return None if participant is None else str(participant), given


def _known_scores(path: Path, scorer: ChunkScorer) -> ChunkScores:
    if path.exists():
        # Scores of another prompt or model are replaced, not mixed in.
        with suppress(InputError):
            known = load_scores(path, scorer.questionnaire)
            if known.model == scorer.model.id:
                return known
    return ChunkScores(
        model=scorer.model.id, prompt_hash=scorer.prompt_hash, labels={}, texts={}
    )


def _embedded(
    evidence: Evidence, embedder: Embedder, settings: FewShotSettings
) -> dict[str, Vectors]:
    """Return a vector for each text of the evidence, usually from one call."""
    timeout = float(settings.query_embed_timeout_seconds)
    parts = [evidence]
    if not settings.enable_batch_query_embedding:
        parts = [Evidence({item: text}) for item, text in evidence.texts.items()]
    rows = [row for part in parts for row in part.embedded(embedder, timeout).values()]
    if not rows:
        return {}
    texts = list(evidence.texts.values())
    vectors = checked(np.stack(rows), texts, embedder.id)
    return dict(zip(texts, vectors, strict=True))


def _written(chunk: ReferenceChunk) -> str:
    labels = json.dumps(dict(chunk.labels), ensure_ascii=False)
    tags = json.dumps(list(chunk.tags), ensure_ascii=False)
    return f"[{chunk.ord}] labels {labels} tags {tags}\n{chunk.text}"


def _of(questionnaire: Questionnaire) -> str:
    """Return the digest of everything in a questionnaire that references depend on."""
    fields = {
        "name": questionnaire.name,
        "prefix": questionnaire.prefix,
        "scores": dict(questionnaire.scores),
    }
    keys = list(questionnaire.keys)
    return _digest(json.dumps([fields, keys], sort_keys=True, ensure_ascii=False))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
