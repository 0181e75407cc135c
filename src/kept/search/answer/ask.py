"""Ask: search for a question, then answer it, streamed or whole."""

import logging
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass, field, replace
from html import escape
from typing import Any

from kept._runtime import Logger, heard
from kept.kernel.record import Refusal
from kept.search.answer.answer import Answer, Answerer, AnswerJson
from kept.search.answer.citations import Citation
from kept.search.query_log import search_facts
from kept.search.recorded import Recorded, recorded
from kept.search.render import (
    FingerprintsJson,
    PassageJson,
    RecordJson,
    RefusalJson,
    candidate_json,
    fingerprints_json,
    record_json,
    refusal_json,
)
from kept.search.retrieve import Found

ASK = "ask"
BROKEN_OFF = "broken off"

logger = Logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Asked:
    """An answer, and the search that it rests on; ``str()`` of it is the answer.

    *timings* are those of the search with the time that the answer took; they take
    no part in equality.
    """

    found: Found
    answer: Answer
    timings: Mapping[str, float] = field(
        default_factory=dict, compare=False, hash=False
    )

    @property
    def text(self) -> str:
        """The answer, or why there is none."""
        return self.answer.text

    @property
    def citations(self) -> tuple[Citation, ...]:
        """The sources that the answer points to, by its markers."""
        return tuple(one for one in self.answer.citations if one.cited)

    @property
    def refused(self) -> Refusal | None:
        """Why the question was answered with nothing, if it was."""
        return self.found.refused

    def __bool__(self) -> bool:
        """Whether there is an answer."""
        return self.found.refused is None

    def __str__(self) -> str:
        """Return the answer and the sources that it points to."""
        sources = (
            f"[{one.marker}] {one.title or one.source_uri}" for one in self.citations
        )
        return "\n".join((self.text, *sources))

    def __repr__(self) -> str:
        return f"<answer to {self.found.request.question!r}: {self.answer.kind}>"

    def _repr_html_(self) -> str:
        sources = "".join(
            f"<li value={one.marker}>{escape(one.title or one.source_uri)}: "
            f"{escape(one.snippet)}</li>"
            for one in self.citations
        )
        return f"<p>{escape(self.text)}</p><ol>{sources}</ol>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How asking ended: with an answer, or with what came between."""

    found: Found
    answer: Answer | None = None
    error: str | None = None


class StreamedAsk:
    """An answer on its way: iterate over its text, then read ``asked``.

    What was *found* is known from the beginning; a refusal is its own answer.
    However it ends, *done* hears of it: also of a fault, and of a reader who left.
    """

    def __init__(
        self, found: Found, answerer: Answerer, done: Callable[[Ending], None]
    ) -> None:
        self.found = found
        self._answerer = answerer
        self._done = done
        self._asked: Asked | None = None
        self._pieces = self._run()

    def __iter__(self) -> Iterator[str]:
        return self._pieces

    def close(self) -> None:
        """Stop reading; a model stops too."""
        self._pieces.close()

    @property
    def asked(self) -> Asked:
        """The whole answer; there is one only after the last piece."""
        if self._asked is None:
            msg = "the answer is not complete; iterate to the end first"
            raise RuntimeError(msg)
        return self._asked

    def _run(self) -> Generator[str, None, None]:
        began = time.perf_counter()
        answer: Answer | None = None
        error: str | None = BROKEN_OFF
        try:
            answer = yield from self._answered()
            error = None
        except Exception as fault:
            error = type(fault).__name__
            raise
        finally:
            took = round((time.perf_counter() - began) * 1000, 3)
            if answer is not None:
                timings = {**self.found.timings, "answer": took}
                self._asked = Asked(found=self.found, answer=answer, timings=timings)
            self._done(Ending(found=self.found, answer=answer, error=error))

    def _answered(self) -> Generator[str, None, Answer]:
        refused = self.found.refused
        if refused is not None:
            yield refused.message
            return Answer(text=refused.message, kind="none")
        question = self.found.request.question
        stream = self._answerer.stream(question, self.found.selection)
        yield from stream
        return stream.answer


class AskedJson(AnswerJson):
    """An answer with the search that it rests on."""

    question: str
    refused: RefusalJson | None
    context: list[PassageJson]
    search: RecordJson
    fingerprints: FingerprintsJson
    timings: dict[str, float]


def asked_json(asked: Asked) -> AskedJson:
    """Return an answer with its search as every door shows it."""
    found = asked.found
    return {
        "question": found.request.question,
        **asked.answer.as_data(),
        "refused": refusal_json(found.refused),
        "context": [
            candidate_json(one, found.request.question, cited=False)
            for one in found.context
        ],
        "search": record_json(found.selection),
        "fingerprints": fingerprints_json(found.fingerprints),
        "timings": dict(asked.timings),
    }


def answer_facts(asked: Asked, preset: str) -> dict[str, Any]:
    """Return the state and the numbers that an answer rests on, for the audit."""
    answer = asked.answer
    return {
        **search_facts(asked.found, preset),
        "kind": answer.kind,
        "supported": answer.supported,
        "faithfulness": answer.faithfulness,
        "citations": sum(1 for one in answer.citations if one.cited),
        "model": answer.record.model if answer.record else None,
    }


def recorded_ask(
    ending: Ending, preset: str, *, with_text: bool, trace_id: str = ""
) -> Recorded:
    """Return what is kept of a question that was asked, refused or answered.

    It is a recorded query with how it ended; the answer's text only if wanted.
    """
    query = recorded(ending.found, preset, with_text=with_text, trace_id=trace_id)
    answer = _facts(ending)
    if with_text and ending.answer:
        answer["text"] = ending.answer.text
    return replace(query, result={**query.result, "kind": ASK, "answer": answer})


def tell_answer(ending: Ending) -> None:
    """Log how asking ended, without a word of question or answer."""
    if not heard(logging.INFO):
        return
    refused = ending.found.refused
    facts = {name: v for name, v in _facts(ending).items() if name != "prompt"}
    logger.info(
        "question_asked",
        tenant=ending.found.request.tenant,
        refused=refused.reason if refused else None,
        **facts,
    )


def _facts(ending: Ending) -> dict[str, Any]:
    answer = ending.answer
    if answer is None:
        return {"kind": None, "error": ending.error}
    record = answer.record
    return {
        "kind": answer.kind,
        "error": None,
        "supported": answer.supported,
        "faithfulness": answer.faithfulness,
        "cited": [one.chunk_id for one in answer.citations if one.cited],
        "removed_markers": len(answer.removed_markers),
        "model": record.model if record else None,
        "prompt": record.as_data() if record else None,
    }
