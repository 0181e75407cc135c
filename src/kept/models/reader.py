"""The reader: a small model of our own that reads question and passage together."""

import math
import threading
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib import resources
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kept._runtime import all_cores
from kept.kernel.model import Candidate, Chunk, Document, Query
from kept.kernel.ports import PassageReader, Reading, Reranker
from kept.kernel.signals import PLACES
from kept.models import weights as models
from kept.models.onnx_session import session
from kept.models.safetensors import read_tensors
from kept.models.weight_sources import Progress
from kept.models.wordpiece import WordPiece
from kept.text.languages import detect_language, in_latin_script

FILE = "reader.onnx"
VERSION = "kept-reader-v1"
MAX_TOKENS = 320
QUESTION_TOKENS = 96
ANSWER_TOKENS = 40
# The languages that questions were written in; a question that leaves its language
# open ("INV-49302 total") is read too.
LANGUAGES = frozenset({"en", "de", "fr", "es", "it", "pt", "nl"})
# A reading of 200 bytes each: one megabyte.
REMEMBERED = 5_000

Numbers = NDArray[np.float32]


@dataclass(frozen=True)
class ShippedReader:
    """Reads with the model that ships with Kept, on a processor.

    Its layers are in the package, its words are those of MiniLM, which is installed
    at the first call if it is missing. Each pair is read alone, unpadded and on one
    thread, so that a reading does not depend on what is read beside it.
    """

    threads: int = field(default_factory=all_cores, repr=False)
    progress: Progress = field(default=models.silent, repr=False, compare=False)

    @property
    def id(self) -> str:
        """Name the model and its version."""
        return VERSION

    def knows(self, question: str) -> bool:
        """Return whether the question is in a language that it was trained on."""
        if not in_latin_script(question):
            return False
        return detect_language(question) in {None, *LANGUAGES}

    def read(
        self, question: str, passages: Sequence[tuple[str, str]]
    ) -> Sequence[Reading]:
        """Return one reading per passage, given as (title, text), in order."""
        model = _loaded(self.progress)
        if len(passages) == 1 or self.threads == 1:
            return [model.reading(question, *each) for each in passages]
        with ThreadPoolExecutor(min(self.threads, len(passages))) as pool:
            return list(pool.map(lambda each: model.reading(question, *each), passages))


@dataclass(frozen=True)
class CachedReader:
    """Any reader, remembering what it read lately.

    The same pair has the same reading, so what is remembered changes no answer.
    """

    reader: PassageReader
    _known: "OrderedDict[tuple[str, str, str], Reading]" = field(
        default_factory=OrderedDict, init=False, repr=False, compare=False
    )
    _lock: threading.Lock = field(
        default_factory=threading.Lock, init=False, repr=False, compare=False
    )

    @property
    def id(self) -> str:
        """The name of the reader."""
        return self.reader.id

    def knows(self, question: str) -> bool:
        """Return what the reader says."""
        return self.reader.knows(question)

    def read(
        self, question: str, passages: Sequence[tuple[str, str]]
    ) -> Sequence[Reading]:
        """Read what is not known yet."""
        keys = [(question, *each) for each in passages]
        with self._lock:
            found = {key: self._known[key] for key in keys if key in self._known}
        fresh = list(dict.fromkeys(key for key in keys if key not in found))
        if fresh:
            read = self.reader.read(question, [key[1:] for key in fresh])
            found |= dict(zip(fresh, read, strict=True))
        with self._lock:
            for key in keys:
                self._known[key] = found[key]
                self._known.move_to_end(key)
            while len(self._known) > REMEMBERED:
                self._known.popitem(last=False)
        return [found[key] for key in keys]


@dataclass(frozen=True)
class RerankerAsReader:
    """A reranker in the place of a reader: its score is how much a passage is worth.

    It sees no span and knows every language that its model does.
    """

    reranker: Reranker

    @property
    def id(self) -> str:
        """The name of the reranker."""
        return self.reranker.id

    def knows(self, question: str) -> bool:
        """Leave it to the model."""
        return True

    def read(
        self, question: str, passages: Sequence[tuple[str, str]]
    ) -> Sequence[Reading]:
        """Return the log-odds of each score."""
        candidates = [
            _as_candidate(place, *each) for place, each in enumerate(passages)
        ]
        scores = self.reranker.scores(Query(text=question), candidates)
        return [Reading(worth=_log_odds(score)) for score in scores]


def _as_candidate(place: int, title: str, text: str) -> Candidate:
    name = f"passage-{place}"
    chunk = Chunk(id=name, document_id=name, ord=0, text=text)
    document = Document(id=name, title=title, chunk_count=1)
    return Candidate(chunk=chunk, document=document, score=0.0)


def _log_odds(score: float) -> float:
    inside = min(max(float(score), 1e-6), 1 - 1e-6)
    return round(math.log(inside / (1 - inside)), PLACES)


class _Tokens(NamedTuple):
    """A pair as tokens: which belong to the passage, and where they stand in it."""

    ids: list[int]
    kinds: list[int]
    places: list[tuple[int, int]]


@dataclass(frozen=True)
class _Model:
    """The loaded model."""

    tokenizer: WordPiece
    words: Numbers
    session: Any

    def reading(self, question: str, title: str, text: str) -> Reading:
        """Read one pair."""
        tokens = self._tokens(question, title, text)
        given = {
            "words": self.words[tokens.ids][None],
            "kinds": np.array([tokens.kinds], np.int64),
        }
        [[judged], [spans]] = self.session.run(["judged", "spans"], given)
        starts, ends = spans.astype(np.float64).T
        margin, first, last = _best_span(starts, ends, len(tokens.places))
        start = tokens.places[first][0] if tokens.places else 0
        end = tokens.places[last][1] if tokens.places else 0
        return Reading(
            worth=round(float(judged[0]), PLACES),
            answers=round(float(judged[1]), PLACES),
            margin=round(margin, PLACES),
            start=max(0, start),
            end=max(0, end),
        )

    def _tokens(self, question: str, title: str, text: str) -> _Tokens:
        tokenizer = self.tokenizer
        asked = tokenizer.encode(_readable(question), QUESTION_TOKENS)
        # Under its title, as it is embedded, unless the text begins with that.
        head = "" if not title or title in text[: len(title) + 20] else f"{title}\n"
        room = MAX_TOKENS - len(asked) - 1
        pieces = tokenizer.pieces(_readable(head + text))[:room]
        ids = [*asked, *(piece[0] for piece in pieces), tokenizer.last]
        kinds = [0] * len(asked) + [1] * (len(pieces) + 1)
        places = [(start - len(head), end - len(head)) for _, start, end in pieces]
        return _Tokens(ids, kinds, places)


def _best_span(starts: Numbers, ends: Numbers, count: int) -> tuple[float, int, int]:
    """Return how far the best span is ahead of none, and its first and last token.

    The passage's tokens are the last but one; the first token stands for no answer.
    """
    if not count:
        return -math.inf, 0, 0
    none = float(starts[0] + ends[0])
    own = slice(len(starts) - 1 - count, len(starts) - 1)
    begin, finish = starts[own], ends[own]
    sums = begin[:, None] + finish[None, :]
    place = np.arange(count)
    lengths = place[None, :] - place[:, None]
    sums[(lengths < 0) | (lengths >= ANSWER_TOKENS)] = -np.inf
    first, last = divmod(int(sums.argmax()), count)
    return float(sums[first, last]) - none, first, last


def _readable(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")


_loading = threading.Lock()
_models: dict[str, _Model] = {}


def _loaded(progress: Progress) -> _Model:
    """Return the model of this process, loaded by its first caller."""
    with _loading:
        folder = models.ready("minilm", progress=progress)
        key = str(folder)
        if key not in _models:
            graph = (resources.files("kept.models") / FILE).read_bytes()
            tensors = read_tensors(folder / models.WEIGHTS)
            _models[key] = _Model(
                WordPiece.from_file(folder / "tokenizer.json"),
                tensors["embeddings.word_embeddings.weight"],
                session(graph, ["CPUExecutionProvider"]),
            )
        return _models[key]


def ships() -> bool:
    """Return whether this build of Kept has the model."""
    return (resources.files("kept.models") / FILE).is_file()
