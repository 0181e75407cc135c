"""The judge: a chat model that accepts references one by one, or raises."""

import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextvars import copy_context
from dataclasses import dataclass, field

from kept.kernel.model import Candidate, Query
from kept.kernel.pool import Pool
from kept.kernel.ports import ChatModel, Opinion
from kept.models.http_client import calling_off
from kept.models.prompts import Context, Prompt, Recorder, build, log_context
from kept.models.prompts.fence import fenced, neutral, nonce_for, summed
from kept.models.replies import object_of, parsed

SCHEMA = object_of(
    {"verdict": {"type": "string", "enum": [word.value for word in Opinion]}}
)
EXPECTED = 'JSON such as {"verdict": "accept"}'


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """What the judge reads: a passage of another person, and its score.

    Without an *item*, the evidence is a question, and the passage has no score.
    """

    item: str | None
    evidence: str
    text: str
    label: int | None = None
    chunk_id: str = ""


@dataclass(frozen=True, kw_only=True)
class LLMJudge:
    """Asks a chat model about each reference; what it cannot say raises.

    Up to *at_once* references are asked about at the same time, and the opinions
    come back in order. With *enough*, reading stops once that many are accepted,
    counted in the order in which a limit would serve them; those left unread count
    as unsure. Set it only to the cap that follows: then nothing else changes.
    The *secret* makes the fences of the prompts unforeseeable.
    """

    model: ChatModel
    secret: bytes = field(repr=False)
    at_once: int = 4
    enough: int | None = None
    record: Recorder = field(default=log_context, repr=False)

    def review(
        self, query: Query, candidates: Sequence[Candidate]
    ) -> Sequence[Opinion]:
        """Return one opinion per candidate, in order, or raise.

        The query's text is the evidence, its item names the label. A query without
        an item is a question, and the passages are judged as answers to it.
        """
        # In the order of the cap that follows, so that reading less gives the same
        # selection.
        pool = Pool.of(candidates)
        served = pool.keeping(pool.seats())
        references = [_reference(query, c) for c in served]
        opinions = self.read(references)
        by_id = {c.id: opinion for c, opinion in zip(served, opinions, strict=True)}
        return [by_id[candidate.id] for candidate in candidates]

    def read(self, references: Sequence[Reference]) -> list[Opinion]:
        """Return one opinion per reference, in order; the first fault raises."""
        opinions: list[Opinion] = []
        while len(opinions) < len(references):
            if self.enough is not None:
                accepted = opinions.count(Opinion.ACCEPT)
                if accepted >= self.enough:
                    return opinions + [Opinion.UNSURE] * (
                        len(references) - len(opinions)
                    )
                # Never more at once than may still be accepted: each further opinion
                # would be paid for and not used.
                wave = min(self.at_once, self.enough - accepted)
            else:
                wave = len(references)
            opinions += self._together(references[len(opinions) :][:wave])
        return opinions

    def ask(self, reference: Reference) -> Opinion:
        """Return the opinion about one reference, or raise."""
        prompt = self.prompt(reference)
        self.record(prompt.record)
        reply = self.model.complete(prompt.messages, json_schema=SCHEMA)
        return Opinion(parsed(reply, SCHEMA, EXPECTED)["verdict"])

    def prompt(self, reference: Reference) -> Prompt:
        """Build the prompt about one reference."""
        evidence, text = neutral(reference.evidence), neutral(reference.text)
        item = neutral(reference.item or "")
        nonce = nonce_for(self.secret, item.text, evidence.text, text.text)
        asked = fenced([evidence.text], nonce)
        passage = fenced([text.text], nonce, first=2)
        label = "unknown" if reference.label is None else str(reference.label)
        name, fields = (
            ("judge_question", {"question": asked, "passage": passage})
            if reference.item is None
            else (
                "judge",
                {
                    "item": item.text,
                    "evidence": asked,
                    "label": label,
                    "reference": passage,
                },
            )
        )
        context = Context(
            chunk_ids=(reference.chunk_id,),
            metrics={"item": reference.item, "label": reference.label},
            redactions=summed((item, evidence, text)),
        )
        return build(name, {"nonce": nonce, **fields}, self.model, context)

    def _together(self, references: Sequence[Reference]) -> list[Opinion]:
        """Ask about several at once; the first fault calls off the rest."""
        pool = ThreadPoolExecutor(self.at_once, thread_name_prefix="kept-judge")
        called_off = threading.Event()

        def ask(reference: Reference) -> Opinion:
            calling_off.set(called_off)
            if called_off.is_set():
                return Opinion.UNSURE
            try:
                return self.ask(reference)
            except BaseException:
                called_off.set()
                raise

        try:
            # A context of its own for each, so that its logs and spans belong here.
            asked = [pool.submit(copy_context().run, ask, one) for one in references]
            wait(asked, return_when=FIRST_EXCEPTION)
            _raise_first(asked)
            return [future.result() for future in asked]
        finally:
            called_off.set()
            # Without waiting: a judge that hangs must not delay the error of another.
            # The flag keeps the abandoned threads from calling again.
            pool.shutdown(wait=False, cancel_futures=True)


def _raise_first(asked: Iterable["Future[Opinion]"]) -> None:
    for future in asked:
        if future.done() and (error := future.exception()):
            raise error


def _reference(query: Query, candidate: Candidate) -> Reference:
    item = query.item
    return Reference(
        item=item,
        evidence=query.text,
        text=candidate.chunk.text,
        label=None if item is None else candidate.chunk.labels.get(item),
        chunk_id=candidate.id,
    )
