"""Collections: passages, questions, and judgements of which answers which.

A collection is a folder:

* ``corpus.jsonl``: ``{"_id", "title", "text", "metadata"}`` per line;
* ``queries.jsonl``: ``{"_id", "text", "metadata"}`` per line, and optionally
  ``"answerable": false`` (or true), ``"kind": "far" | "near" | "on_topic"`` and
  ``"answers": [...]``, all of which may also be keys of ``metadata``;
* ``qrels/test.tsv`` (or ``dev``, ``train``): ``query-id corpus-id score`` with a
  header, or TREC's four columns without one.

``metadata.is_impossible`` (SQuAD 2) and ``metadata.in_scope`` (CLINC) mean the same
as ``answerable``. Without judgements, a passage is relevant to a question if both have
the same ``metadata.intent``. A ``.json`` file is read as SQuAD 2.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from kept.errors import InputError, UnreadableSourceError
from kept.evaluation.json_lines import Line, json_lines, text_lines
from kept.evaluation.trec import Qrels, read_qrels

QUESTION_FIELDS = ("question", "query", "text")


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionPassage:
    """A document of a collection, before ingestion."""

    id: str
    text: str
    title: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question of a collection.

    *answerable* is None where the collection does not say. *kind* is that of an
    unanswerable question: ``far`` (from another set), ``near`` (same register) or
    ``on_topic``; they differ in difficulty and are reported separately.
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
    passages: tuple[CollectionPassage, ...]
    questions: tuple[Question, ...]
    qrels: Qrels = field(default_factory=dict, hash=False)
    unknown: Unknown = Unknown()

    @property
    def judged(self) -> tuple[Question, ...]:
        """The questions that count for ranking: judged and not unanswerable."""
        answerable = (q for q in self.questions if q.answerable is not False)
        return tuple(q for q in answerable if q.id in self.qrels)

    @property
    def marked(self) -> tuple[Question, ...]:
        """The questions that are marked as answerable or not."""
        return tuple(q for q in self.questions if q.answerable is not None)

    @property
    def fingerprint(self) -> str:
        """A digest of everything in it, the same on every machine."""
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
        """Return a copy with at most *at_most* questions, in a fixed random choice.

        It depends on the ids alone, so that every machine asks the same questions.
        """

        def digest(question: Question) -> str:
            return hashlib.sha256(question.id.encode()).hexdigest()

        # The first questions of a file are often about the same documents; digests mix
        # them.
        chosen = {q.id for q in sorted(self.questions, key=digest)[:at_most]}
        kept = tuple(q for q in self.questions if q.id in chosen)
        return replace(self, questions=kept)

    def probed(self, probes: Iterable[Question]) -> Self:
        """Return a copy that also asks *probes*, as unanswerable far questions."""
        added = tuple(
            Question(id=f"probe:{p.id}", text=p.text, answerable=False, kind="far")
            for p in probes
        )
        marked = _marked(self.questions, self.qrels)
        unique((q.id for q in marked + added), "question", self.name)
        return replace(self, questions=marked + added)


def assembled(
    name: str,
    passages: Sequence[CollectionPassage],
    questions: Sequence[Question],
    qrels: Qrels,
    *,
    strict: bool = False,
) -> Collection:
    """Build a collection, counting the judgements that name unknown ids.

    With *strict* such judgements are an error; duplicate ids always are. Where some
    questions are marked as unanswerable, those with judgements become answerable.
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
    """Mark judged questions as answerable, unless they are marked already."""
    return tuple(
        replace(q, answerable=True) if q.answerable is None and q.id in qrels else q
        for q in questions
    )


def unique(ids: Iterable[str], kind: str, where: str) -> None:
    """Raise if an id is not unique."""
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
        found = {p: grade for p, grade in grades.items() if p in passages}
        lost_passages += len(grades) - len(found)
        examples += [p for p in grades if p not in found]
        if found:
            known[question_id] = found
    return known, Unknown(
        questions=lost_questions,
        passages=lost_passages,
        examples=tuple(examples[:3]),
    )


def _feed(digest: "hashlib._Hash", *fields: str) -> None:
    for each in fields:
        raw = each.encode()
        # The length keeps "ab" + "c" apart from "a" + "bc".
        digest.update(f"{len(raw)}:".encode())
        digest.update(raw)


def load_collection(
    path: Path, *, split: str = "test", strict: bool = False
) -> Collection:
    """Load a folder in the convention above, or a SQuAD 2 file."""
    if path.is_file():
        return load_squad(path)
    for name in ("corpus.jsonl", "queries.jsonl"):
        if not (path / name).is_file():
            raise UnreadableSourceError(
                str(path),
                f"there is no {name} in it",
                "give a folder with corpus.jsonl, queries.jsonl and qrels/test.tsv",
            )
    passages = tuple(_passages(path / "corpus.jsonl"))
    questions = tuple(load_questions(path / "queries.jsonl"))
    return assembled(
        path.resolve().name,
        passages,
        questions,
        _folder_qrels(path, split, passages, questions),
        strict=strict,
    )


def load_questions(path: Path) -> Iterator[Question]:
    """Yield the questions of a JSON-lines file, numbering those without an id."""
    for line, record in json_lines(path):
        nested = record.get("metadata") or {}
        answers = record.get("answers", record.get("answer", nested.get("answers", ())))
        answerable, kind = _answerable(line, {**nested, **record})
        yield Question(
            id=line.text({"_id": str(line.number), **record}, "_id"),
            text=line.text(record, "text", "question"),
            answerable=answerable,
            kind=kind,
            answers=tuple(dict.fromkeys(map(str, answers))),
            metadata=nested,
        )


def load_question_texts(path: Path) -> list[str]:
    """Read the distinct questions of a file: one per line, as text or as JSON."""
    found = [_question_text(line, text.strip()) for line, text in text_lines(path)]
    if not found:
        msg = f"{path} holds no questions; write one per line"
        raise InputError(msg)
    return list(dict.fromkeys(found))


def load_probes(path: Path, limit: int | None = None) -> tuple[Question, ...]:
    """Return the questions of another set, from its folder or file."""
    file = path / "queries.jsonl" if path.is_dir() else path
    asked = Collection(
        name=path.stem, passages=(), questions=tuple(load_questions(file))
    )
    return asked.questions if limit is None else asked.limited(limit).questions


def load_squad(path: Path) -> Collection:
    """Load a SQuAD 2 file; its impossible questions are on-topic unanswerable."""
    try:
        articles = json.loads(path.read_text("utf-8-sig"))["data"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UnreadableSourceError(
            str(path), f"not a SQuAD 2 file ({error})", 'expected {"data": [...]}'
        ) from error
    passages: list[CollectionPassage] = []
    questions: list[Question] = []
    qrels: dict[str, dict[str, int]] = {}
    for article in articles:
        for paragraph in article["paragraphs"]:
            passage_id = f"p{len(passages)}"
            passages.append(
                CollectionPassage(
                    id=passage_id, title=article["title"], text=paragraph["context"]
                )
            )
            for qa in paragraph["qas"]:
                questions.append(_squad_question(qa))
                if questions[-1].answerable:
                    qrels[questions[-1].id] = {passage_id: 1}
    return assembled(path.stem, passages, questions, qrels)


def _question_text(line: Line, text: str) -> str:
    """Return the question of a line, which may be JSON as in BEIR's queries."""
    if not text.startswith("{"):
        return text
    try:
        row = json.loads(text)
    except (ValueError, RecursionError) as error:
        advice = "write a question, or an object with one"
        raise line.error(problem=f"not JSON ({error})", advice=advice) from error
    for name in QUESTION_FIELDS:
        if isinstance(row.get(name), str) and row[name].strip():
            return str(row[name]).strip()
    expected = f"expected one of: {', '.join(QUESTION_FIELDS)}"
    raise line.error(problem="no question in it", advice=expected)


def _passages(path: Path) -> Iterator[CollectionPassage]:
    for line, record in json_lines(path):
        yield CollectionPassage(
            id=line.text(record, "_id"),
            title=str(record.get("title") or ""),
            text=line.text(record, "text"),
            metadata=record.get("metadata") or {},
        )


def _answerable(line: Line, record: Mapping[str, Any]) -> tuple[bool | None, str]:
    """Read whether a question has an answer, and if not, of which kind it is."""
    for key, when_true, kind in (
        ("answerable", True, "near"),
        ("is_impossible", False, "on_topic"),
        ("in_scope", True, "near"),
    ):
        flag = record.get(key)
        if flag is None:
            continue
        if not isinstance(flag, bool):
            raise line.error(problem=f"{key} is {flag!r}", advice="write true or false")
        answerable = flag is when_true
        return answerable, "" if answerable else str(record.get("kind") or kind)
    return None, ""


def _folder_qrels(
    path: Path,
    split: str,
    passages: tuple[CollectionPassage, ...],
    questions: tuple[Question, ...],
) -> Qrels:
    """Read the judgements of a split, or treat equal intents as relevant."""
    folder = path / "qrels"
    if folder.is_dir():
        file = folder / f"{split}.tsv"
        if not file.is_file():
            there = ", ".join(sorted(f.stem for f in folder.glob("*.tsv"))) or "none"
            raise UnreadableSourceError(
                str(folder), f"there is no split {split!r}", f"choose one of: {there}"
            )
        return read_qrels(file)
    by_intent: dict[str, dict[str, int]] = {}
    for passage in passages:
        if intent := passage.metadata.get("intent"):
            by_intent.setdefault(intent, {})[passage.id] = 1
    return {
        q.id: by_intent[q.metadata["intent"]]
        for q in questions
        if q.answerable is not False and q.metadata.get("intent") in by_intent
    }


def _squad_question(qa: Mapping[str, Any]) -> Question:
    impossible = bool(qa.get("is_impossible", False))
    return Question(
        id=qa["id"],
        text=qa["question"],
        answerable=not impossible,
        kind="on_topic" if impossible else "",
        answers=tuple(dict.fromkeys(answer["text"] for answer in qa["answers"])),
    )
