"""Answers: text whose every marker leads to a source, or a plain "nothing found"."""

import math
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from typing_extensions import TypedDict

from kept.kernel.model import Candidate, Scalar
from kept.kernel.ports import ChatModel, Embedder
from kept.kernel.record import Selection
from kept.kernel.signals import PLACES
from kept.models.prompts import (
    Context,
    ContextRecord,
    Prompt,
    Recorder,
    build,
    log_context,
)
from kept.models.prompts.fence import fenced, neutral, nonce_for, summed
from kept.search.answer.citations import (
    Citation,
    MarkerCheck,
    citation,
    markers,
    without_markers,
)
from kept.search.answer.disagreement import Disagreement, disagreements
from kept.search.answer.extractive import (
    Extract,
    chosen,
    extracts,
    missing_words,
    readings_of,
    snippet_of,
    strong,
)
from kept.search.answer.support import Support, support

NOTHING_FOUND = (
    "I couldn't find relevant documents for this question. "
    "Try other words, or add a document that answers it."
)
UNSUPPORTED = "None of the sources supports this answer."
NO_SHORT_ANSWER = "No short answer; these passages are about it."
CLOSE = "These passages are close, but I do not see the answer in them."
NOT_FOUND = "NOT_FOUND"
BOLD = "**"

# Shared words never make it certain that a sentence answers.
SUREST_UNREAD = 0.75
# Words, not percents: the estimate is coarse, and a quotation that is word for word may
# still be the answer to another question.
ANSWERING = (
    (0.8, "it answers the question"),
    (0.5, "it seems to answer the question"),
    (0.0, "it may not answer the question"),
)

Kind = Literal["extractive", "generative", "passages", "none"]


class AnswerJson(TypedDict):
    """An answer with its citations, without the search that it rests on."""

    text: str
    kind: Kind
    supported: bool
    faithfulness: float | None
    answers: float | None
    missing: list[str]
    disagreements: list[dict[str, Any]]
    quotes: list[dict[str, Any]]
    citations: list[dict[str, Any]]
    removed_markers: list[str]
    record: dict[str, Any] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What is said, on which sources, and how far they carry it.

    *answers* estimates from 0 to 1 whether the question is answered: by the reader
    where it has read, else by how much of the question the quoted sentences cover.
    *missing* are words of the question that no source has. *removed_markers* pointed
    nowhere and are no longer in the text. *record* says how the prompt was built, if
    there was one.
    """

    text: str
    kind: Kind
    supported: bool = False
    answers: float | None = None
    missing: tuple[str, ...] = ()
    disagreements: tuple[Disagreement, ...] = ()
    citations: tuple[Citation, ...] = ()
    extracts: tuple[Extract, ...] = ()
    removed_markers: tuple[str, ...] = ()
    support: Support | None = None
    record: ContextRecord | None = None

    @property
    def faithfulness(self) -> float | None:
        """How far the sources carry the text, from 0 to 1."""
        return self.support.faithfulness if self.support else None

    def as_data(self) -> AnswerJson:
        """Return the answer as JSON holds it."""
        return {
            "text": self.text,
            "kind": self.kind,
            "supported": self.supported,
            "faithfulness": self.faithfulness,
            "answers": self.answers,
            "missing": list(self.missing),
            "disagreements": [one.as_data() for one in self.disagreements],
            "quotes": [one.as_data() for one in self.extracts],
            "citations": [one.as_data() for one in self.citations],
            "removed_markers": list(self.removed_markers),
            "record": self.record.as_data() if self.record else None,
        }


@dataclass(frozen=True, kw_only=True)
class Answerer:
    """Answers questions from selections; without a *model*, by extracts.

    *secret* makes the fences of prompts unforeseeable; *relevance* names the signal
    shown beside a source, which is low when less than *low_below*; *personal* blots
    out e-mail addresses and telephone numbers before a passage goes to the model.
    """

    model: ChatModel | None = None
    secret: bytes = field(default=b"", repr=False)
    embedder: Embedder | None = None
    relevance: str = "relevance"
    low_below: float = 0.0
    personal: bool = False
    record: Recorder = log_context
    parameters: Mapping[str, Scalar] = field(default_factory=dict, hash=False)

    def __call__(self, question: str, selection: Selection) -> Answer:
        """Return the whole answer."""
        running = self.stream(question, selection)
        for _ in running:
            pass
        return running.answer

    def stream(self, question: str, selection: Selection) -> "AnswerStream":
        """Return an iterator over the answer's text; it holds the answer at the end."""
        return AnswerStream(self, question, selection)

    def prompt(self, question: str, selection: Selection, model: ChatModel) -> Prompt:
        """Build the prompt for *model*, every passage behind its fence."""
        asked = neutral(question)
        passages = [
            neutral(c.chunk.text, personal=self.personal) for c in selection.candidates
        ]
        nonce = nonce_for(self.secret, asked.text, *(p.text for p in passages))
        fields = {
            "nonce": nonce,
            "passages": fenced([p.text for p in passages], nonce),
            "question": asked.text,
        }
        context = Context(
            chunk_ids=tuple(c.id for c in selection.candidates),
            metrics=_metrics(selection, self.relevance),
            redactions=summed((asked, *passages)),
            parameters=self.parameters,
        )
        return build("answer", fields, model, context)


class AnswerStream:
    """An answer on its way: iterate over its text, then read ``answer``.

    Pieces are checked before they are handed on: a marker that points nowhere is
    never seen. Closing the iterator stops the model.
    """

    def __init__(self, answerer: Answerer, question: str, selection: Selection) -> None:
        self._answerer = answerer
        self._question = question
        self._selection = selection
        self._answer: Answer | None = None
        self._pieces = self._run()

    def __iter__(self) -> Iterator[str]:
        return self._pieces

    def close(self) -> None:
        """Stop reading; the model stops too."""
        self._pieces.close()

    @property
    def answer(self) -> Answer:
        """The whole answer; there is one only after the last piece."""
        if self._answer is None:
            msg = "the answer is not complete; iterate to the end first"
            raise RuntimeError(msg)
        return self._answer

    def _run(self) -> Generator[str, None, None]:
        answerer, candidates = self._answerer, self._selection.candidates
        if not candidates:
            self._answer = Answer(text=NOTHING_FOUND, kind="none")
            yield NOTHING_FOUND
        elif answerer.model is None:
            self._answer = _extracted(answerer, self._question, self._selection)
            yield self._answer.text
        else:
            yield from self._generated(answerer.model)

    def _generated(self, model: ChatModel) -> Iterator[str]:
        answerer, candidates = self._answerer, self._selection.candidates
        prompt = answerer.prompt(self._question, self._selection, model)
        answerer.record(prompt.record)
        check = MarkerCheck(len(candidates))
        said: list[str] = []
        pieces = model.stream(prompt.messages)
        try:
            for piece in _held_back(pieces, NOT_FOUND):
                if out := check.feed(piece):
                    said.append(out)
                    yield out
        finally:
            getattr(pieces, "close", lambda: None)()
        if rest := check.finish():
            said.append(rest)
            yield rest
        text = "".join(said)
        if _says_nothing(text):
            self._answer = Answer(text=NOTHING_FOUND, kind="none", record=prompt.record)
            yield NOTHING_FOUND
            return
        found = support(text, [c.chunk.text for c in candidates], answerer.embedder)
        if not found.grounded:
            note = f"\n\n{UNSUPPORTED}"
            text += note
            yield note
        read = readings_of(self._selection)
        sentences = extracts(self._question, candidates, read=read)
        self._answer = Answer(
            text=text.strip(),
            kind="generative",
            supported=found.grounded,
            answers=_answering(candidates, sentences) if found.grounded else 0.0,
            missing=missing_words(self._question, candidates),
            disagreements=disagreements(self._question, sentences, candidates),
            citations=_citations(answerer, candidates, check.used, sentences),
            removed_markers=check.removed,
            support=found,
            record=prompt.record,
        )


def _extracted(answerer: Answerer, question: str, selection: Selection) -> Answer:
    """Answer with sentences of the sources, each with its marker, or show the sources.

    Where no sentence answers, the passages are the answer: they were worth citing.
    """
    candidates, read = selection.candidates, readings_of(selection)
    found = extracts(question, candidates, answerer.embedder, read)
    picked, missing = chosen(found), missing_words(question, candidates)
    if not any(c.chunk.text.strip() for c in candidates):
        return Answer(text=NOTHING_FOUND, kind="none")
    if not picked:
        return Answer(
            text=CLOSE if missing or read else NO_SHORT_ANSWER,
            kind="passages",
            missing=missing,
            citations=_citations(answerer, candidates, strong(candidates), found),
        )
    opposed = disagreements(question, found, candidates)
    text = " ".join(f"{_quoted(one)} {markers([one.source])}" for one in picked)
    used = {one.source for one in picked}.union(*(one.sources for one in opposed))
    return Answer(
        text="\n\n".join((text, *(str(one) for one in opposed))),
        kind="extractive",
        supported=True,
        answers=_answering(candidates, picked),
        missing=missing,
        disagreements=opposed,
        citations=_citations(answerer, candidates, frozenset(used), found),
        extracts=tuple(picked),
        support=support(text, [c.chunk.text for c in candidates]),
    )


def verdict(answer: Answer) -> str:
    """Return in words where an answer comes from and whether it is one, or ""."""
    if answer.kind == "extractive":
        said = "Word for word from the sources"
    elif answer.kind == "generative":
        held = "supported" if answer.supported else "not supported"
        said = f"Written by a language model, {held} by the sources"
    else:
        return ""
    sure = answer.answers or 0.0
    words = next(words for least, words in ANSWERING if sure >= least)
    return f"{said}; {words}"


def _quoted(one: Extract) -> str:
    """Return a quotation as text of an answer, the reader's span in bold."""
    text = without_markers(one.text)
    if one.span is None:
        return text
    start, end = one.span
    return f"{text[:start]}{BOLD}{text[start:end]}{BOLD}{text[end:]}"


def _answering(
    candidates: Sequence[Candidate], found: Sequence[Extract]
) -> float | None:
    """Estimate whether the question is answered, from 0 to 1."""
    read = [
        c.signals["read_answers"] for c in candidates if "read_answers" in c.signals
    ]
    if any(read):
        return round(1 / (1 + math.exp(-max(read))), PLACES)
    covered = max((one.coverage for one in found if one.answers), default=0.0)
    return min(covered, SUREST_UNREAD)


def _citations(
    answerer: Answerer,
    candidates: Sequence[Candidate],
    used: frozenset[int],
    found: Sequence[Extract],
) -> tuple[Citation, ...]:
    return tuple(
        citation(
            candidate,
            marker,
            snippet_of(marker, found, candidate.chunk.text),
            (answerer.relevance, answerer.low_below),
            cited=marker in used,
        )
        for marker, candidate in enumerate(candidates, 1)
    )


def _held_back(pieces: Iterator[str], word: str) -> Iterator[str]:
    """Yield *pieces*, but nothing while all of it could still become *word*."""
    held = ""
    for piece in pieces:
        held += piece
        if not word.startswith(held.strip()) and not held.strip().startswith(word):
            yield held
            held = ""
            break
    yield from pieces
    if held and not _says_nothing(held):
        yield held


def _says_nothing(text: str) -> bool:
    return text.strip().strip(".[]\"'*`") in {"", NOT_FOUND}


def _metrics(selection: Selection, relevance: str) -> Mapping[str, Scalar]:
    known = [
        c.signals[relevance] for c in selection.candidates if relevance in c.signals
    ]
    return {
        "recalled": selection.recalled,
        "added": selection.added,
        "selected": len(selection.candidates),
        "dropped": len(selection.dropped),
        "best_relevance": max(known, default=None),
        "lowest_relevance": min(known, default=None),
    }
