"""Embeddings over HTTP, from any server that speaks OpenAI's protocol."""

import hashlib
import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kept._runtime import Closing
from kept.errors import BadVectorError, SettingsError
from kept.kernel.ports import Vectors
from kept.models.embedders import UNMEASURED_NEAR_MATCH, checked, require_text
from kept.models.embedders.endpoint import Endpoint

PROBE = "How long is a vector?"


@dataclass(frozen=True, slots=True)
class TextKind:
    """How a server is told what a text is: a *prefix*, or *fields* of the request.

    A field that is None is left out of the request, also one that Kept would send.
    """

    prefix: str = ""
    fields: Mapping[str, Any] = field(default_factory=dict)

    @property
    def mark(self) -> str:
        """What decides the vector besides the text."""
        return json.dumps([self.prefix, dict(self.fields)], sort_keys=True)


PLAIN = TextKind()


class OpenAiEmbedder(Closing):
    """Embed through the ``/embeddings`` endpoint below *base_url*.

    Works with OpenAI, Ollama, vLLM and llama.cpp; safe to share between threads.
    Without *dimension*, the server is asked for it once; with *send_dimension* the
    server is asked to shorten its vectors to it. *answers_as* is the name that the
    server gives its model, where that is not *model*. Connection errors and the
    statuses 429 and 503 are tried again, at most *retries* times; nothing else is.

    *questions* and *passages* say how the model was trained to tell them apart;
    *headers* go with every request.

    How near is near depends on the model: the thresholds are cautious until you
    measure them. Whether a text gets the same bytes in every batch is up to the
    server; ``EmbedderContract`` finds out.
    """

    def __init__(  # noqa: PLR0913 -- a server has as many settings as it has
        self,
        base_url: str,
        model: str,
        api_key: str | None = None,
        *,
        dimension: int | None = None,
        send_dimension: bool = False,
        answers_as: str | None = None,
        questions: TextKind = PLAIN,
        passages: TextKind = PLAIN,
        headers: Mapping[str, str] | None = None,
        batch_size: int = 64,
        timeout_seconds: float = 60.0,
        retries: int = 3,
        retry_wait_seconds: float = 0.5,
        near_match_distance: float = UNMEASURED_NEAR_MATCH,
        distance_thresholds: tuple[float, float] = (0.42, 0.50),
        near_duplicate_cosine: float = 0.97,
    ) -> None:
        self.model = model
        self.near_match_distance = near_match_distance
        self.distance_thresholds = distance_thresholds
        self.near_duplicate_cosine = near_duplicate_cosine
        self._expected = dimension
        self._extra = {"dimensions": dimension} if send_dimension and dimension else {}
        self._answers_as = answers_as
        self._questions = questions
        self._passages = passages
        self._batch_size = _at_least(1, batch_size, "batch_size")
        self._asking = threading.Lock()
        self._endpoint = Endpoint(
            base_url,
            "embeddings",
            api_key,
            headers=headers or {},
            timeout_seconds=timeout_seconds,
            retries=_at_least(0, retries, "retries"),
            retry_wait_seconds=retry_wait_seconds,
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model!r} at {str(self._endpoint)!r})"

    def close(self) -> None:
        """Close every connection."""
        self._endpoint.close()

    @property
    def id(self) -> str:
        """Name the protocol, the model, its dimension, and how texts are marked."""
        name = f"openai:{self.model}:{self.dimension}"
        if self._questions == self._passages == PLAIN:
            return name
        marks = f"{self._questions.mark}{self._passages.mark}"
        return f"{name}:{hashlib.sha256(marks.encode()).hexdigest()[:8]}"

    @property
    def dimension(self) -> int:
        """How long a vector is."""
        with self._asking:
            if self._expected is None:
                [row] = self._asked([PROBE], self._questions)
                self._expected = len(_numbers(row, 0, [PROBE], self.model))
            return self._expected

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one unit vector per text, in order, as rows."""
        return self._embedded(texts, self._passages)

    def embed_query(self, texts: Sequence[str]) -> Vectors:
        """Return the same for questions."""
        return self._embedded(texts, self._questions)

    def _embedded(self, texts: Sequence[str], kind: TextKind) -> Vectors:
        require_text(texts)
        size = self.dimension
        rows = np.empty((len(texts), size), dtype=np.float32)
        for start in range(0, len(texts), self._batch_size):
            batch = texts[start : start + self._batch_size]
            for position, row in enumerate(self._asked(batch, kind), start):
                rows[position] = self._unit(row, position, texts, size)
        return checked(rows, texts, self.id)

    def _unit(
        self, row: object, position: int, texts: Sequence[str], size: int
    ) -> NDArray[np.float64]:
        numbers = _numbers(row, position, texts, self.model)
        if len(numbers) != size:
            msg = (
                f"{self.model} at {self._endpoint} returned {len(numbers)} numbers "
                f"for text {position} of {len(texts)}, expected {size}; two models "
                "never mix. Configure the model that the vectors were made with"
            )
            raise BadVectorError(msg)
        largest = np.abs(numbers).max()
        if not np.isfinite(largest) or largest == 0:
            what = "is zero" if largest == 0 else "has a NaN or an infinity in it"
            raise _unusable(what, position, texts, self.model)
        # Divided by the largest first: squares of huge numbers would overflow.
        scaled = numbers / largest
        unit: NDArray[np.float64] = scaled / np.sqrt(np.square(scaled).sum())
        return unit

    def _asked(self, texts: Sequence[str], kind: TextKind) -> list[object]:
        """Return what the server gives for each text, in the order of the texts."""
        # JSON can carry half a surrogate pair, but most servers reject it.
        readable = [
            f"{kind.prefix}{text}".encode("utf-8", "replace").decode("utf-8")
            for text in texts
        ]
        request = {"model": self.model, "input": readable, "encoding_format": "float"}
        sent = {**request, **self._extra, **kind.fields}
        body = self._endpoint.post({k: v for k, v in sent.items() if v is not None})
        try:
            reply = json.loads(body)
            answered = reply.get("model")
            count = len(reply["data"])
            # Servers may answer in another order, and some leave the index out.
            entries = {e.get("index", n): e for n, e in enumerate(reply["data"])}
            rows = [entries[n]["embedding"] for n in range(len(texts))]
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            self._endpoint.fail(
                f"did not answer with {len(texts)} embeddings, but with "
                f"{self._endpoint.excerpt(body)}",
                "check that base_url names an OpenAI-compatible server",
                error,
            )
        if count != len(texts):
            self._endpoint.fail(
                f"returned {count} embeddings for {len(texts)} texts",
                "lower batch_size, or change the server",
            )
        self._require_model(answered)
        return rows

    def _require_model(self, answered: object) -> None:
        wanted = self._answers_as or self.model
        # Servers add a version or a tag to the name that was asked for.
        versions = tuple(wanted + mark for mark in "-:@")
        if answered and answered != wanted and not str(answered).startswith(versions):
            self._endpoint.fail(
                f"answered with the model {answered!r}, expected {wanted!r}",
                "configure the model that runs there, or, if they are the same, set "
                "answers_as",
            )


def _at_least(least: int, value: int, name: str) -> int:
    if value < least:
        msg = f"{name} is {value}, expected at least {least}"
        raise SettingsError(msg)
    return value


def _numbers(
    row: object, position: int, texts: Sequence[str], model: str
) -> NDArray[np.float64]:
    try:
        numbers: NDArray[np.float64] = np.array(row, dtype=np.float64)
    except (TypeError, ValueError):
        numbers = np.empty(0)
    if numbers.ndim != 1 or not len(numbers):
        what = "is not a list of numbers"
        raise _unusable(what, position, texts, model)
    return numbers


def _unusable(
    what: str, position: int, texts: Sequence[str], model: str
) -> BadVectorError:
    msg = (
        f"openai:{model}: the vector of text {position} of {len(texts)} "
        f"({texts[position][:40]!r}) {what}; expected finite numbers that are not all "
        "zero. Nothing was stored; check the server"
    )
    return BadVectorError(msg)
