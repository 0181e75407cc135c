"""Passages of the caller, given ids and checked before anything is measured."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

from kept.errors import InputError, NotFoundError
from kept.kernel.filter_matching import Facts, admits
from kept.kernel.filters import Filters
from kept.kernel.model import Chunk, Document
from kept.search.select.score_meaning import Given, Scores
from kept.text.draft import Authority, TimeHorizon

DERIVED = "text:"
DERIVED_DIGITS = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A text from elsewhere, with the score that it was given there.

    *id* names the passage, *document_id* what it is a part of. The rest is what
    stages of some presets look at.
    """

    text: str
    id: str | None = None
    score: float | None = None
    document_id: str | None = None
    ord: int = 0
    title: str = ""
    source_uri: str = ""
    type: str = "document"
    tags: tuple[str, ...] = ()
    role: str | None = None
    excerpt: bool = False
    labels: Mapping[str, int | None] = field(default_factory=dict, hash=False)
    authority: Authority | None = None
    confidence: float | None = None
    time_horizon: TimeHorizon | None = None
    chunk_count: int = 1
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Member:
    """A passage of a pool, by the one id that it has there.

    *given* is its score as it came, or its place where the order is all there is.
    """

    id: str
    passage: Passage
    given: float | None

    def chunk(self, tokens: int) -> Chunk:
        """Return it as a chunk."""
        passage = self.passage
        return Chunk(
            id=self.id,
            document_id=self.document_id,
            ord=passage.ord,
            text=passage.text,
            token_len=tokens,
            tags=passage.tags,
            role=passage.role,
            excerpt=passage.excerpt,
            labels=passage.labels,
            metadata=passage.metadata,
        )

    @property
    def document_id(self) -> str:
        """What it is a part of; itself, if nothing else is known."""
        return self.passage.document_id or self.passage.id or self.id

    def passes(self, filters: Filters) -> bool:
        """Return whether *filters* let it through."""
        passage = self.passage
        facts = Facts(
            type=passage.type,
            document=self.document_id,
            tags=passage.tags,
            metadata=passage.metadata,
        )
        return admits(filters, facts)

    def document(self) -> Document:
        """Return what it is a part of."""
        passage = self.passage
        return Document(
            id=self.document_id,
            type=passage.type,
            title=passage.title,
            source_uri=passage.source_uri,
            chunk_count=passage.chunk_count,
            authority=passage.authority,
            confidence=passage.confidence,
            time_horizon=passage.time_horizon,
            metadata=passage.metadata,
        )


@dataclass(frozen=True, slots=True)
class PassagePool:
    """Everything that was handed in for one question, checked and named."""

    given: Given
    members: tuple[Member, ...]

    @property
    def fingerprint(self) -> str:
        """The digest of all that decides a selection from it."""
        shown = "\n".join(map(_said, sorted(self.members, key=lambda m: m.id)))
        return hashlib.sha256(shown.encode()).hexdigest()[:32]

    def within(self, filters: Filters, pinned: Iterable[str] = ()) -> "PassagePool":
        """Return what *filters* let through, and what is *pinned* anyway."""
        if filters.empty:
            return self
        forced = set(pinned)
        return PassagePool(
            self.given,
            tuple(m for m in self.members if m.id in forced or m.passes(filters)),
        )

    def demand(self, chunk_ids: Iterable[str]) -> None:
        """Refuse to pin what was not handed in."""
        there = {member.id for member in self.members}
        for chunk_id in sorted(chunk_ids):
            if chunk_id not in there:
                raise NotFoundError("passage", chunk_id, "it cannot be pinned")


def pool_of(passages: Iterable[Passage], given: Given) -> PassagePool:
    """Check and name what was handed in.

    A passage that comes twice is named ``id#2`` where it is worse placed, so that
    both are accounted for, in whatever order they came.
    """
    texts: dict[str, str] = {}
    members: list[Member] = []
    for place, passage in enumerate(passages, start=1):
        id_ = _id(passage, place, given)
        if texts.setdefault(id_, passage.text) != passage.text:
            msg = (
                f"two passages have the id {id_!r} and different texts; an id names "
                "one passage, document_id what it is a part of"
            )
            raise InputError(msg)
        members.append(Member(id_, passage, _score(passage, place, given.scores)))
    return PassagePool(given, _told_apart(members, given.scores))


def _told_apart(members: list[Member], scores: Scores) -> tuple[Member, ...]:
    """Return the members where they were, each by an id of its own."""
    taken = {member.id for member in members}
    seen: set[str] = set()
    apart = list(members)
    for place in sorted(
        range(len(members)), key=lambda n: _standing(members[n], scores)
    ):
        member = members[place]
        if member.id not in seen:
            seen.add(member.id)
            continue
        names = (f"{member.id}#{number}" for number in count(2))
        free = next(name for name in names if name not in taken)
        taken.add(free)
        apart[place] = replace(member, id=free)
    return tuple(apart)


def _standing(member: Member, scores: Scores) -> tuple[str, float, str]:
    """Return what orders members of one id: the better score, then all they say."""
    given = member.given or 0.0
    return member.id, given if scores.smaller_is_better else -given, _said(member)


def _id(passage: Passage, place: int, given: Given) -> str:
    if not isinstance(passage, Passage) or not isinstance(passage.text, str):
        msg = f"passage {place} is {passage!r}; expected a Passage with a text"
        raise InputError(msg)
    if not passage.text.strip():
        msg = f"passage {place} has no text; leave empty passages out"
        raise InputError(msg)
    if passage.id:
        return passage.id
    if given.ids == "required":
        msg = (
            f"passage {place} ({passage.text[:40]!r}) has no id; give it one, or say "
            "ids='derived' to have one made from its text"
        )
        raise InputError(msg)
    named = f"{passage.source_uri}\n{passage.text}"
    digest = hashlib.sha256(named.encode("utf-8", "surrogatepass")).hexdigest()
    return DERIVED + digest[:DERIVED_DIGITS]


def _score(passage: Passage, place: int, scores: Scores) -> float | None:
    if scores is Scores.NONE:
        return None
    if scores is Scores.ORDER:
        return float(place)
    return scores.checked(passage.score, f"passage {passage.id or place!r}")


def _said(member: Member) -> str:
    """Return all that a member says, as one text that is the same everywhere."""
    own = {str(key): value for key, value in member.passage.metadata.items()}
    plain = replace(member.passage, score=None, metadata=own)
    fields = [getattr(plain, name) for name in Passage.__slots__]
    row = (member.id, member.given, fields)
    return json.dumps(row, sort_keys=True, skipkeys=True, default=_named)


def _named(value: object) -> str:
    """Return what stands for a value that is not JSON; its address would not do."""
    return type(value).__name__
