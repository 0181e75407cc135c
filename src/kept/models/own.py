"""Models of one's own: any object with a port's method, checked and completed.

The ports ask for more than a stranger's object has, such as thresholds that were
measured. Here an object that embeds, scores, judges or reads becomes one that fits.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeVar

import numpy as np

from kept.errors import (
    BackendError,
    BadVectorError,
    EmbedderError,
    KeptError,
    SettingsError,
)
from kept.kernel.model import Candidate, Query
from kept.kernel.ports import Embedder, Opinion, Reading, Vectors
from kept.models.embedders import UNMEASURED_NEAR_MATCH, checked, require_text

GUIDE = "docs/how-to/bring-your-own-models.md has examples"
PROBE = "How long is a vector?"
LONGEST_ID = 200

T = TypeVar("T")


class EmbedsTexts(Protocol):
    """The least that an embedder of one's own has.

    It may also have *embed_query*, *dimension*, *near_match_distance*,
    *distance_thresholds* and *near_duplicate_cosine*, as `Embedder` does.
    """

    @property
    def id(self) -> str:
        """Name the model and version; vectors with another id never mix."""
        ...

    def embed(self, texts: list[str], /) -> Any:  # noqa: ANN401 -- lists or an array
        """Return one vector per text, in order, of any length but 0."""
        ...


class ScoresCandidates(Protocol):
    """The least that a reranker of one's own has."""

    @property
    def id(self) -> str:
        """Name the model or the method."""
        ...

    def scores(self, query: Query, candidates: Sequence[Candidate], /) -> Any:  # noqa: ANN401 -- a list or an array
        """Return one score in 0..1 per candidate, in order."""
        ...


class JudgesCandidates(Protocol):
    """The least that a judge of one's own has."""

    def review(self, query: Query, candidates: Sequence[Candidate], /) -> Any:  # noqa: ANN401 -- words will do
        """Return accept, reject or unsure for each candidate, in order."""
        ...


class ReadsPassages(Protocol):
    """The least that a reader of one's own has; it may also have *knows*."""

    @property
    def id(self) -> str:
        """Name the model and version; a calibration belongs to one of them."""
        ...

    def read(self, question: str, passages: Sequence[tuple[str, str]], /) -> Any:  # noqa: ANN401 -- numbers will do
        """Return a `Reading`, or its log-odds, per passage of (title, text)."""
        ...


class OwnEmbedder:
    """An embedder of one's own; its vectors are brought to length 1.

    Thresholds that it does not have are cautious: only a passage that says nearly the
    same as the question is protected.
    """

    def __init__(self, given: EmbedsTexts) -> None:
        _demand(given, "embedder", "embed", "embed(texts)")
        self.given = given
        self._dimension: int | None = getattr(given, "dimension", None)

    def __repr__(self) -> str:
        return f"OwnEmbedder({self.id!r})"

    @property
    def id(self) -> str:
        """The id of the object."""
        return self.given.id

    @property
    def dimension(self) -> int:
        """How long a vector is: as the object says, or as it shows once."""
        if self._dimension is None:
            self._dimension = int(self._units(self.given.embed, [PROBE]).shape[1])
        return self._dimension

    @property
    def near_match_distance(self) -> float:
        """The object's own, or a cautious one."""
        return getattr(self.given, "near_match_distance", UNMEASURED_NEAR_MATCH)

    @property
    def distance_thresholds(self) -> tuple[float, float]:
        """The object's own, or those of the near-match document."""
        return getattr(self.given, "distance_thresholds", (0.42, 0.50))

    @property
    def near_duplicate_cosine(self) -> float:
        """The object's own, or the one of `minilm`."""
        return getattr(self.given, "near_duplicate_cosine", 0.97)

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one unit vector per text, in order, as rows."""
        return self._rows(self.given.embed, texts)

    def embed_query(self, texts: Sequence[str]) -> Vectors:
        """Return the same for questions, by *embed_query* if the object has it."""
        return self._rows(getattr(self.given, "embed_query", self.given.embed), texts)

    def _rows(self, embed: Callable[[list[str]], Any], texts: Sequence[str]) -> Vectors:
        require_text(texts)
        if not texts:
            return np.empty((0, self.dimension), dtype=np.float32)
        rows = checked(self._units(embed, list(texts)), texts, self.id)
        if rows.shape[1] != self.dimension:
            msg = (
                f"{self.id} returned vectors of {rows.shape[1]} numbers, expected "
                f"{self.dimension}. Nothing was stored; fix or change the embedder"
            )
            raise BadVectorError(msg)
        return rows

    def _units(self, embed: Callable[[list[str]], Any], texts: list[str]) -> Any:  # noqa: ANN401 -- checked next
        """Return what the object gives for *texts*, each row brought to length 1."""
        made = _called(self.id, "the embedder", partial(embed, texts), EmbedderError)
        try:
            rows = np.asarray(made, dtype=np.float64)
        except (TypeError, ValueError, RuntimeError) as error:
            msg = (
                f"{self.id} returned {type(made).__name__}, which is no array of "
                f"numbers ({error}). Return a list of lists or a numpy array"
            )
            raise BadVectorError(msg) from error
        if rows.ndim != 2 or not rows.size:  # noqa: PLR2004 -- rows and columns
            msg = (
                f"{self.id} returned an array of shape {rows.shape} for {len(texts)} "
                "texts; expected one row per text, also for a single text"
            )
            raise BadVectorError(msg)
        # Divided by the largest first: squares of huge numbers would overflow. What
        # is zero or no number stays so, and is refused by the caller.
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            largest = np.abs(rows).max(axis=1, keepdims=True)
            scaled = np.where(largest == 0, 0.0, rows / largest)
            lengths = np.sqrt(np.square(scaled).sum(axis=1, keepdims=True))
            return np.where(lengths == 0, 0.0, scaled / lengths)


@dataclass(frozen=True, eq=False)
class OwnReranker:
    """A reranker of one's own."""

    given: ScoresCandidates

    def __post_init__(self) -> None:
        _demand(self.given, "reranker", "scores", "scores(query, candidates)")

    def __repr__(self) -> str:
        # Part of the configuration's fingerprint: the object's own repr may have an
        # address in it.
        return f"OwnReranker({self.id!r})"

    @property
    def id(self) -> str:
        """The id of the object."""
        return self.given.id

    def scores(self, query: Query, candidates: Sequence[Candidate]) -> Sequence[float]:
        """Return the object's scores, as plain numbers."""
        ask = partial(self.given.scores, query, tuple(candidates))
        return [_number(one, self.id) for one in _listed(self.id, "the reranker", ask)]


@dataclass(frozen=True, eq=False)
class OwnJudge:
    """A judge of one's own."""

    given: JudgesCandidates

    def __post_init__(self) -> None:
        _demand(self.given, "judge", "review", "review(query, candidates)", named=False)

    def __repr__(self) -> str:
        return f"OwnJudge({self.id!r})"

    @property
    def id(self) -> str:
        """The id of the object, or the name of its class."""
        return str(getattr(self.given, "id", type(self.given).__qualname__))

    def review(
        self, query: Query, candidates: Sequence[Candidate]
    ) -> Sequence[Opinion]:
        """Return the object's opinions, which may be words."""
        ask = partial(self.given.review, query, tuple(candidates))
        return [_opinion(one, self.id) for one in _listed(self.id, "the judge", ask)]


@dataclass(frozen=True, eq=False)
class OwnReader:
    """A reader of one's own."""

    given: ReadsPassages

    def __post_init__(self) -> None:
        _demand(self.given, "reader", "read", "read(question, passages)")

    def __repr__(self) -> str:
        return f"OwnReader({self.id!r})"

    @property
    def id(self) -> str:
        """The id of the object."""
        return self.given.id

    def knows(self, question: str) -> bool:
        """Return what the object says, or that it knows every language."""
        knows = getattr(self.given, "knows", None)
        return True if knows is None else bool(knows(question))

    def read(
        self, question: str, passages: Sequence[tuple[str, str]]
    ) -> Sequence[Reading]:
        """Return the object's readings; a number is the log-odds of being worth it."""
        ask = partial(self.given.read, question, tuple(passages))
        return [
            one if isinstance(one, Reading) else Reading(worth=_number(one, self.id))
            for one in _listed(self.id, "the reader", ask)
        ]


@dataclass(frozen=True, slots=True)
class OwnModels:
    """The models that a program brings, in place of those that the settings name."""

    embedder: Embedder | None = None
    reranker: OwnReranker | None = None
    judge: OwnJudge | None = None
    reader: OwnReader | None = None

    @classmethod
    def of(
        cls,
        *,
        embedder: EmbedsTexts | None = None,
        reranker: ScoresCandidates | None = None,
        judge: JudgesCandidates | None = None,
        reader: ReadsPassages | None = None,
    ) -> "OwnModels":
        """Return the objects as what the ports ask for, or say what one lacks."""
        return cls(
            None if embedder is None else OwnEmbedder(embedder),
            None if reranker is None else OwnReranker(reranker),
            None if judge is None else OwnJudge(judge),
            None if reader is None else OwnReader(reader),
        )


NO_OWN = OwnModels()


def _demand(
    given: object, role: str, method: str, call: str, *, named: bool = True
) -> None:
    """Raise unless *given* has the *method* and, if it has to be *named*, an id."""
    if isinstance(given, type):
        msg = f"the {role} is the class {given.__name__}; hand in an object of it"
        raise SettingsError(msg)
    wanted = f"an object with `id` and `{call}`" if named else f"one with `{call}`"
    kind = type(given).__qualname__
    if not callable(getattr(given, method, None)):
        msg = f"the {role} is a {kind} without `{method}`; expected {wanted} ({GUIDE})"
        raise SettingsError(msg)
    if not named:
        return
    name = getattr(given, "id", None)
    if not (isinstance(name, str) and name.strip() and name.isprintable()):
        met = "has no `id`" if name is None else f"has the id {name!r}"
        msg = (
            f"the {role} is a {kind} that {met}; expected a text that names model "
            f"and version, such as 'all-mpnet-base-v2' ({GUIDE})"
        )
        raise SettingsError(msg)
    if len(name) > LONGEST_ID:
        msg = f"the id of the {role} has {len(name)} characters, at most {LONGEST_ID}"
        raise SettingsError(msg)


def _called(
    name: str,
    role: str,
    call: Callable[[], T],
    kind: type[BackendError] = BackendError,
) -> T:
    try:
        return call()
    except KeptError:
        raise
    except Exception as error:
        msg = f"{role} {name!r} failed: {type(error).__name__}: {error}"
        raise kind(msg) from error


def _listed(name: str, role: str, call: Callable[[], Any]) -> list[Any]:
    made = _called(name, role, call)
    try:
        return list(made)
    except TypeError as error:
        msg = (
            f"{role} {name!r} returned {type(made).__name__}; it must return a list "
            "with one entry for each, in order"
        )
        raise BackendError(msg) from error


def _number(given: Any, name: str) -> float:  # noqa: ANN401 -- checked here
    try:
        return float(given)
    except (TypeError, ValueError) as error:
        msg = f"{name!r} returned {given!r}, expected a number"
        raise BackendError(msg) from error


def _opinion(given: object, name: str) -> Opinion:
    try:
        return Opinion(str(given))
    except ValueError as error:
        known = ", ".join(Opinion)
        msg = f"the judge {name!r} returned {given!r}, expected one of: {known}"
        raise BackendError(msg) from error
