"""Collections: passages, questions, and which answers which."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

from kept.errors import InputError

Qrels = Mapping[str, Mapping[str, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A document of a collection, as handed in."""

    id: str
    text: str
    title: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question of a collection.

    *answerable* is None where nobody said. *kind* names the sort of an
    unanswerable question: ``far`` (of another set), ``near`` (same register) or
    ``on_topic``; the kinds differ in difficulty and are reported apart.
    """

    id: str
    text: str
    answerable: bool | None = None
    kind: str = ""
    answers: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """How many judgements name an id that the collection does not have."""

    questions: int = 0
    passages: int = 0
    examples: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.questions or self.passages)

    def __str__(self) -> str:
        return (
            f"{self.questions} judgements name an unknown question and "
            f"{self.passages} an unknown passage (such as {', '.join(self.examples)})"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection:
    """Passages, questions and judgements under one name.

    Passages and questions have unique ids, and every judgement names ids that
    exist; `assembled` is the way to build one.
    """

    name: str
    passages: tuple[Passage, ...]
    questions: tuple[Question, ...]
    qrels: Qrels = field(default_factory=dict, hash=False)
    unknown: Unknown = Unknown()

    @property
    def judged(self) -> tuple[Question, ...]:
        """The questions that count for ranking: judged and not unanswerable."""
        return tuple(
            q
            for q in self.questions
            if q.id in self.qrels and q.answerable is not False
        )

    @property
    def marked(self) -> tuple[Question, ...]:
        """The questions that are marked as answerable or not."""
        return tuple(q for q in self.questions if q.answerable is not None)

    @property
    def fingerprint(self) -> str:
        """Return a digest of everything in it, the same on every machine."""
        digest = hashlib.sha256()
        for passage in self.passages:
            _feed(digest, "p", passage.id, passage.title, passage.text)
        for question in self.questions:
            _feed(digest, "q", question.id, question.text, str(question.answerable))
        for question_id in sorted(self.qrels):
            for passage_id, grade in sorted(self.qrels[question_id].items()):
                _feed(digest, "j", question_id, passage_id, str(grade))
        return digest.hexdigest()

    def limited(self, at_most: int) -> Self:
        """Return a copy with at most *at_most* questions, chosen by their ids.

        The choice looks random and is not: it depends on the ids alone, so that
        the same questions are asked on every machine.
        """
        shuffled = sorted(self.questions, key=lambda q: _digest(q.id))
        chosen = {q.id for q in shuffled[:at_most]}
        return replace(
            self, questions=tuple(q for q in self.questions if q.id in chosen)
        )

    def probed(self, probes: Iterable[Question]) -> Self:
        """Return a copy that also asks *probes*, as far questions without an answer."""
        added = tuple(
            Question(id=f"probe:{p.id}", text=p.text, answerable=False, kind="far")
            for p in probes
        )
        marked = _marked(self.questions, self.qrels)
        unique((q.id for q in marked + added), "question", self.name)
        return replace(self, questions=marked + added)


def assembled(
    name: str,
    passages: Sequence[Passage],
    questions: Sequence[Question],
    qrels: Qrels,
    *,
    strict: bool = False,
) -> Collection:
    """Build a collection, counting the judgements that name unknown ids.

    With *strict* such judgements are an error. Twice the same id always is. Where
    some questions are marked as unanswerable, those with judgements can be answered.
    """
    unique((p.id for p in passages), "passage", name)
    unique((q.id for q in questions), "question", name)
    known, unknown = _known(qrels, {q.id for q in questions}, {p.id for p in passages})
    if unknown and strict:
        msg = f"{name}: {unknown}; complete the files or run without strict"
        raise InputError(msg)
    if any(q.answerable is False for q in questions):
        questions = _marked(questions, known)
    return Collection(
        name=name,
        passages=tuple(passages),
        questions=tuple(
            q for q in questions if q.id in known or q.answerable is not None
        ),
        qrels=known,
        unknown=unknown,
    )


def _marked(questions: Iterable[Question], qrels: Qrels) -> tuple[Question, ...]:
    """Return the questions, the judged as answerable where nobody said."""
    return tuple(
        replace(q, answerable=True) if q.answerable is None and q.id in qrels else q
        for q in questions
    )


def unique(ids: Iterable[str], kind: str, where: str) -> None:
    """Raise when an id comes twice."""
    seen: set[str] = set()
    for each in ids:
        if each in seen:
            msg = f"{where}: the {kind} id {each!r} comes twice; ids must be unique"
            raise InputError(msg)
        seen.add(each)


def _known(
    qrels: Qrels, questions: set[str], passages: set[str]
) -> tuple[dict[str, Mapping[str, int]], Unknown]:
    """Split judgements into those of known ids and a count of the others."""
    known: dict[str, Mapping[str, int]] = {}
    lost_questions = lost_passages = 0
    examples: list[str] = []
    for question_id, grades in qrels.items():
        if question_id not in questions:
            lost_questions += len(grades)
            examples.append(question_id)
            continue
        missing = [p for p in grades if p not in passages]
        lost_passages += len(missing)
        examples += missing
        found = (
            {p: g for p, g in grades.items() if p in passages} if missing else grades
        )
        if found:
            known[question_id] = found
    return known, Unknown(
        questions=lost_questions,
        passages=lost_passages,
        examples=tuple(examples[:3]),
    )


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _feed(digest: "hashlib._Hash", *fields: str) -> None:
    for each in fields:
        raw = each.encode()
        digest.update(f"{len(raw)}:".encode())
        digest.update(raw)
