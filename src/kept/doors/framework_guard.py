"""Guarding: what the frameworks share, in no framework's words."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from kept.kernel.model import Candidate
from kept.knowledge_base.select import Selecting
from kept.search.render import candidate_json, decision_json
from kept.search.retrieve import Found, Request
from kept.search.select import Given, Passage, pool_of

KEPT = "kept"
SHOWN = (
    "chunk_id",
    "document_id",
    "score",
    "relevance",
    "rating",
    "cited",
    "protected",
    "signals",
)

OnFound = Callable[[Found], None]


@dataclass(frozen=True, slots=True)
class GuardedDocument:
    """A document that stays: its *place* among those given, and what to say of it."""

    place: int
    note: Mapping[str, Any]


@dataclass(frozen=True)
class FrameworkGuard:
    """Chooses from the results of another retriever, and says why.

    *on_found* hears of every selection, also of one that is empty and so has no
    document to carry its record.
    """

    selecting: Selecting
    given: Given
    k: int | None = None
    on_found: OnFound | None = None

    def __call__(
        self, question: str, passages: Sequence[Passage], k: int | None = None
    ) -> tuple[list[GuardedDocument], Found]:
        """Return the documents that stay, best first, and the whole result."""
        pool = pool_of(passages, self.given)
        places = {member.id: place for place, member in enumerate(pool.members)}
        request = Request(
            question=question,
            tenant=self.selecting.settings.tenant,
            k=self.k if k is None else k,
        )
        found = self.selecting.choose(request, pool)
        if self.on_found is not None:
            self.on_found(found)
        return [
            GuardedDocument(places[candidate.id], note)
            for candidate, note in noted(found)
        ], found


def noted(found: Found) -> Iterator[tuple[Candidate, dict[str, Any]]]:
    """Yield each passage, the cited first, with less than a kilobyte of metadata.

    Frameworks copy metadata into traces, checkpoints and prompts. The whole record goes
    to *on_found*; the fingerprints say which state and configuration give it again.
    """
    for candidate in found.selection.candidates:
        yield candidate, _note(found, candidate, cited=True)
    for candidate in found.context:
        yield candidate, _note(found, candidate, cited=False)


def _note(found: Found, candidate: Candidate, *, cited: bool) -> dict[str, Any]:
    shown: Mapping[str, Any] = candidate_json(
        candidate, found.request.question, cited=cited
    )
    return {
        **{name: shown[name] for name in SHOWN},
        "decisions": [
            {"stage": stage, **decision_json(decision)}
            for stage, decision in found.selection.explain(candidate.id)
        ],
        "fingerprints": asdict(found.fingerprints),
    }


def metadata_of(candidate: Candidate, note: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata of a passage of our own: its document's, and the note."""
    document = candidate.document
    return {
        **document.metadata,
        **candidate.chunk.metadata,
        "source": document.source_uri,
        "title": document.title,
        KEPT: dict(note),
    }


def passage_from(
    text: str,
    *,
    id_: str | None,
    score: float | None,
    metadata: Mapping[str, Any],
    score_key: str | None = None,
) -> Passage:
    """Return a framework's document as a passage.

    The score is in the metadata under *score_key*, if that is given.
    """
    return Passage(
        text=text,
        id=id_ or None,
        score=metadata.get(score_key) if score_key else score,
        title=_line(metadata.get("title")),
        source_uri=_line(metadata.get("source") or metadata.get("file_path")),
        metadata={key: value for key, value in metadata.items() if key != KEPT},
    )


def relevance_of(candidate: Candidate) -> float:
    """Return what is comparable from question to question: the relevance."""
    return candidate.signals.get("relevance", candidate.score)


def _line(value: object) -> str:
    return value if isinstance(value, str) else ""
