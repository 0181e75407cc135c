"""Answers: text whose every marker leads to a source, or a plain "nothing found"."""

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from typing_extensions import TypedDict

from kept.kernel.model import Candidate, Scalar
from kept.kernel.ports import ChatModel, Embedder
from kept.kernel.record import Selection
from kept.models.prompts import (
    Context,
    ContextRecord,
    Prompt,
    Recorder,
    build,
    log_context,
)
from kept.models.prompts.fence import (
    fenced,
    neutral,
    nonce_for,
    summed,
)
from kept.search.answer.citations import (
    LOW_RELEVANCE,
    Citation,
    MarkerCheck,
    citation,
    markers,
    without_markers,
)
from kept.search.answer.extractive import (
    Extract,
    chosen,
    extracts,
    snippet_of,
)
from kept.search.answer.support import Support, support

NOTHING_FOUND = (
    "I couldn't find relevant documents for this question. "
    "Try other words, or add a document that answers it."
)
UNSUPPORTED = "None of the sources supports this answer."
NOT_FOUND = "NOT_FOUND"

Kind = Literal["extractive", "generative", "none"]


class AnswerJson(TypedDict):
    """An answer with its citations, without the search that it rests on."""

    text: str
    kind: Kind
    supported: bool
    faithfulness: float | None
    citations: list[dict[str, Any]]
    removed_markers: list[str]
    record: dict[str, Any] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What is said, on which sources, and how far they carry it.

    *removed_markers* pointed nowhere and are no longer in the text. *record* tells
    how the prompt was built, if there was one.
    """

    text: str
    kind: Kind
    supported: bool = False
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
    low_below: float = LOW_RELEVANCE
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
        """Build what *model* is told, every passage behind its fence."""
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
            self._answer = _extracted(answerer, self._question, candidates)
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
        self._answer = Answer(
            text=text.strip(),
            kind="generative",
            supported=found.grounded,
            citations=_citations(answerer, self._question, candidates, check.used),
            removed_markers=check.removed,
            support=found,
            record=prompt.record,
        )


def _extracted(
    answerer: Answerer, question: str, candidates: Sequence[Candidate]
) -> Answer:
    """Answer with sentences of the sources, each with its marker."""
    found = extracts(question, candidates, answerer.embedder)
    picked = chosen(found)
    text = " ".join(
        f"{without_markers(one.text)} {markers([one.source])}" for one in picked
    )
    return Answer(
        text=text or NOTHING_FOUND,
        kind="extractive" if picked else "none",
        supported=bool(picked),
        citations=_citations(
            answerer,
            question,
            candidates,
            frozenset(one.source for one in picked),
            found,
        )
        if picked
        else (),
        extracts=tuple(picked),
        support=support(text, [c.chunk.text for c in candidates]) if picked else None,
    )


def _citations(
    answerer: Answerer,
    question: str,
    candidates: Sequence[Candidate],
    used: frozenset[int],
    found: Sequence[Extract] | None = None,
) -> tuple[Citation, ...]:
    sentences = extracts(question, candidates) if found is None else found
    return tuple(
        citation(
            candidate,
            marker,
            snippet_of(marker, sentences, candidate.chunk.text),
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
