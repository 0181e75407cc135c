"""Score meanings: how the scores of another retriever are to be read."""

import math
from dataclasses import dataclass
from enum import StrEnum
from numbers import Real
from typing import Literal, Self

from kept.errors import InputError

LARGEST = 1e15
SLACK = 1e-6

Order = Literal["given", "kept"]
Cosines = Literal["own", "given"]
Ids = Literal["derived", "required"]


class Scores(StrEnum):
    """What the scores of handed-in passages mean.

    Each has a sentence in ``doc``, whether ``smaller_is_better``, and the range
    from ``low`` to ``high`` that it cannot leave.
    """

    doc: str
    smaller_is_better: bool
    low: float
    high: float

    def __new__(
        cls, value: str, doc: str, low: float = -LARGEST, high: float = LARGEST
    ) -> Self:
        """Make a string that knows what it stands for."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.doc = doc
        member.smaller_is_better = "smaller is better" in doc
        member.low, member.high = low, high
        return member

    COSINE = "cosine", "cosine similarity, larger is better", -1.0, 1.0
    COSINE_DISTANCE = "cosine_distance", "1 - cosine, smaller is better", 0.0, 2.0
    SIMILARITY = "similarity", "any similarity, larger is better"
    DISTANCE = "distance", "any distance, smaller is better", 0.0
    BM25 = "bm25", "BM25, larger is better", 0.0
    RERANK = "rerank", "a reranker's score or logit, larger is better"
    ORDER = "order", "no scores, but the best comes first: smaller is better"
    NONE = "none", "neither scores nor an order that means anything"

    @property
    def is_cosine(self) -> bool:
        """Whether a cosine can be read off it."""
        return self in {Scores.COSINE, Scores.COSINE_DISTANCE}

    def checked(self, score: object, name: str) -> float:
        """Return the score of the passage called *name*, or say what is wrong."""
        if score is None:
            msg = (
                f"{name} has no score, but the scores are said to be {self.value!r}; "
                "give every passage its score, or say scores='order' if the best come "
                "first, or scores='none'"
            )
            raise InputError(msg)
        if isinstance(score, bool) or not isinstance(score, Real):
            msg = f"{name} has the score {score!r}; expected a number"
            raise InputError(msg)
        score = _finite(score, name)
        if not self.low - SLACK <= score <= self.high + SLACK:
            msg = (
                f"{name} has the score {score:g}, which is no {self.value} "
                f"({self.doc}, {_range(self.low, self.high)}); say what the scores "
                f"really are: {_listed()}"
            )
            raise InputError(msg)
        return score


def _finite(score: Real, name: str) -> float:
    """Return a number of any kind, numpy's too, as Python's own."""
    try:
        number = float(score)
    except OverflowError:
        number = math.inf
    if math.isfinite(number):
        return number
    msg = (
        f"{name} has the score {number}; expected a finite number. Leave the "
        "passage out, or mend what scored it"
    )
    raise InputError(msg)


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """How handed-in passages are to be read.

    *scores* says what their scores mean. *order* is whose order counts: the
    ``given`` one, in which case the stages only take away, or ``kept``, that of the
    preset. *cosines* are our ``own``, by the configured embedder, or the ``given``
    ones. Missing *ids* are ``derived`` from the text, or ``required``.
    """

    scores: Scores
    order: Order = "given"
    cosines: Cosines = "own"
    ids: Ids = "derived"

    @classmethod
    def of(
        cls,
        scores: str | None,
        *,
        order: str | None = None,
        cosines: str = "own",
        ids: str = "derived",
    ) -> Self:
        """Read what the caller says, and refuse what it cannot mean."""
        meant = _scores(scores)
        default = "kept" if meant is Scores.NONE else "given"
        chosen = _one_of("order", order or default, ("given", "kept"))
        if meant is Scores.NONE and chosen == "given":
            msg = "order is 'given', but scores is 'none'; there is no order to keep"
            raise InputError(msg)
        measured = _one_of("cosines", cosines, ("own", "given"))
        if measured == "given" and not meant.is_cosine:
            msg = (
                f"cosines is 'given', but the scores are {meant.value!r}; expected "
                "scores 'cosine' or 'cosine_distance', or cosines 'own'"
            )
            raise InputError(msg)
        named = _one_of("ids", ids, ("derived", "required"))
        return cls(scores=meant, order=chosen, cosines=measured, ids=named)  # type: ignore[arg-type]  # checked above


def _scores(name: str | None) -> Scores:
    for one in Scores:
        if one.value == name:
            return one
    met = "not said" if name is None else repr(name)
    msg = f"what the scores mean is {met}; expected one of: {_listed()}; say it "
    msg += "with 'scores', on the command line with --scores"
    raise InputError(msg)


def _one_of(name: str, met: str, expected: tuple[str, ...]) -> str:
    if met in expected:
        return met
    msg = f"{name} is {met!r}; expected {' or '.join(map(repr, expected))}"
    raise InputError(msg)


def _listed() -> str:
    return ", ".join(f"{one.value} ({one.doc})" for one in Scores)


def _range(low: float, high: float) -> str:
    return f"at least {low:g}" if high == LARGEST else f"from {low:g} to {high:g}"
