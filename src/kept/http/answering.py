"""Answering for a caller: from the cache where that is sound, else piece by piece."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from kept.asking import Asked, Asking, asked_json
from kept.http.cache import Key
from kept.http.callers import Caller
from kept.http.problems import Shown, problem_of
from kept.http.schemas import AskIn
from kept.http.searching import (
    ANSWERED,
    beside,
    cache_key,
    facts_of_answer,
    failures_noted,
    light,
    question_kept,
    trace_of,
    within_limits,
)
from kept.http.streaming import Events
from kept.logs import Logger
from kept.render import found_json
from kept.retrieve import Found

ASK = "ask"
BROKEN_OFF = "broken_off"

logger = Logger(__name__)


@dataclass(frozen=True)
class Answering:
    """A question on its way to an answer, or one whose answer is still known.

    Only word-for-word answers are remembered: a language model may well say
    something else the next time. *key* is none where nothing may be remembered.
    """

    caller: Caller
    preset: str
    running: Asking | Asked
    trace: str
    key: Key | None = field(default=None, repr=False)

    @classmethod
    def begun(cls, caller: Caller, asked: AskIn) -> "Answering":
        """Search for a question, unless its answer is still known."""
        request = within_limits(caller, asked)
        with failures_noted(caller, ASK, request.question):
            base = caller.base(asked.preset)
            parts = cache_key(caller, base, request)
            same = asked.extractive or base.models.chat() is None
            known = caller.service.asked.get(parts) if same else None
            preset = base.settings.preset
            if known is not None:
                answer, trace = known
                mine = replace(answer, found=replace(answer.found, request=request))
                return cls(caller, preset, mine, trace)
            trace = trace_of(base, parts)
            running = base.asking(request, extractive=asked.extractive, trace_id=trace)
        return cls(caller, preset, running, trace, parts if same else None)

    @property
    def found(self) -> Found:
        """The search that the answer rests on."""
        return self.running.found

    @property
    def cached(self) -> bool:
        """Whether the answer was still known."""
        return isinstance(self.running, Asked)

    def headers(self) -> dict[str, str]:
        """Return what is said of an answer beside it."""
        return beside(self.trace, cached=self.cached)

    def whole(self) -> dict[str, Any]:
        """Wait for the whole answer."""
        with failures_noted(self.caller, ASK, self.found.request.question):
            for _ in self._pieces():
                pass
        return self._ended()

    def events(self, request_id: str) -> Events:
        """Yield an answer on its way; however it ends, the audit hears of it."""
        question = self.found.request.question
        trace = self.trace or None
        try:
            yield "found", {**found_json(self.found), "trace": trace}
            with failures_noted(self.caller, ASK, question):
                for piece in self._pieces():
                    yield "piece", {"text": piece}
            answer = self._ended()
        except GeneratorExit:
            self._close()
            kept = question_kept(self.caller, question)
            self.caller.note(ASK, BROKEN_OFF, **kept, facts={"trace": trace})
            raise
        except Exception as error:
            logger.exception("answer_broke_off", request=request_id)
            problem = problem_of(error)
            shown = Shown(code=problem.code, detail=problem.detail, instance=request_id)
            yield "problem", shown.as_data()
            return
        yield "answer", {**answer, "trace": trace}

    def _pieces(self) -> Iterator[str]:
        if isinstance(self.running, Asked):
            return iter((self.running.answer.text,))
        return iter(self.running)

    def _close(self) -> None:
        if isinstance(self.running, Asking):
            self.running.close()

    def _ended(self) -> dict[str, Any]:
        """Return a whole answer, once its row is in the audit."""
        cached = isinstance(self.running, Asked)
        asked = self.running if isinstance(self.running, Asked) else self.running.asked
        refused = asked.found.refused
        service = self.caller.service
        service.metrics.cache.labels("hit" if cached else "miss").inc()
        if not cached:
            service.metrics.answered(ASK, asked.found)
        if self.key is not None:
            known = replace(asked, found=light(asked.found))
            service.asked.put(self.key, (known, self.trace))
        self.caller.note(
            ASK,
            refused.reason if refused else ANSWERED,
            **question_kept(self.caller, asked.found.request.question),
            facts=facts_of_answer(asked, self.preset)
            | {"cached": cached, "trace": self.trace or None},
        )
        return asked_json(asked)
