"""Sweeps: the same questions under a grid of settings, and which ones are worth it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from itertools import product

import yaml

from kept.errors import InputError
from kept.evaluation.resampling import STANDARD, Interval, Resampling, mean_interval
from kept.evaluation.runs import EvaluationRun
from kept.model import Scalar

MOST_SETTINGS = 1000

Setting = Mapping[str, Scalar]


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepPoint:
    """One combination of settings: its quality, its refusals and its cost.

    *optimal* says that no other combination is as good in all three and better
    in one.
    """

    settings: Setting = field(hash=False)
    quality: Interval | None
    refused: float
    cost: float
    optimal: bool = False


def grid(options: Iterable[str]) -> tuple[dict[str, Scalar], ...]:
    """Spell out every combination of *options*.

    An option is ``name=0.3,0.4,0.5`` or ``name=0.3:0.5:0.1`` (from, to and with the
    last, step). Values are read as YAML: numbers, true and false, null, words.
    """
    named = dict(_option(text) for text in options)
    combinations = product(*named.values())
    found = [dict(zip(named, values, strict=True)) for values in combinations]
    if not named or len(found) > MOST_SETTINGS:
        msg = (
            f"the grid has {len(found) if named else 0} combinations; name between 1 "
            f"and {MOST_SETTINGS}, such as floor=0.3,0.4,0.5"
        )
        raise InputError(msg)
    return tuple(found)


def sweep(
    settings: Sequence[Setting],
    run: Callable[[Setting], EvaluationRun],
    *,
    measure: str,
    how: Resampling = STANDARD,
) -> tuple[SweepPoint, ...]:
    """Evaluate every setting and mark those on the frontier.

    *run* re-runs the stages on what was recalled once; the cost is the mean number
    of documents handed on per question.
    """
    points = [_point(each, run(each), measure, how) for each in settings]
    return tuple(
        SweepPoint(
            settings=p.settings,
            quality=p.quality,
            refused=p.refused,
            cost=p.cost,
            optimal=not any(_dominates(other, p) for other in points),
        )
        for p in points
    )


def documents_per_question(run: EvaluationRun) -> float:
    """Return how many documents a question is given, on average."""
    handed = sum(len(r.ranking) for r in run.records if r.refusal is None)
    return round(handed / max(1, len(run.records)), 9)


def _point(
    settings: Setting,
    run: EvaluationRun,
    measure: str,
    how: Resampling,
) -> SweepPoint:
    if measure not in run.header.measures:
        there = ", ".join(run.header.measures)
        msg = f"the run has no measure {measure!r}; it has: {there}"
        raise InputError(msg)
    refused = sum(r.refusal is not None for r in run.records)
    return SweepPoint(
        settings=settings,
        quality=mean_interval([r.measures[measure] for r in run.judged], how=how),
        refused=round(refused / max(1, len(run.records)), 9),
        cost=documents_per_question(run),
    )


def _dominates(one: SweepPoint, other: SweepPoint) -> bool:
    """Whether *one* is nowhere worse than *other* and somewhere better."""
    mine, theirs = _merits(one), _merits(other)
    return mine != theirs and all(a >= b for a, b in zip(mine, theirs, strict=True))


def _merits(point: SweepPoint) -> tuple[float, float, float]:
    quality = point.quality.estimate if point.quality else 0.0
    return quality, -point.refused, -point.cost


def _option(text: str) -> tuple[str, tuple[Scalar, ...]]:
    name, equals, listed = text.partition("=")
    if not name.strip() or not equals or not listed.strip():
        msg = f"{text!r} is no option of a grid; write name=0.3,0.4 or name=0.3:0.5:0.1"
        raise InputError(msg)
    if listed.count(":") == 2:  # noqa: PLR2004 -- from, to, step
        return name.strip(), tuple(_steps(text, *listed.split(":")))
    values = {word.strip(): _value(text, word) for word in listed.split(",")}
    return name.strip(), tuple(values.values())


def _value(text: str, word: str) -> Scalar:
    try:
        value = yaml.safe_load(word)
    except yaml.YAMLError:
        value = word.split()
    if not isinstance(value, Scalar):
        msg = f"{text!r} has a value {word!r} that is no single value; write a=1,2,3"
        raise InputError(msg)
    return value


def _steps(text: str, first: str, last: str, step: str) -> Iterable[Scalar]:
    """Count from *first* to *last* in decimals, so that 0.1 three times is 0.3."""
    try:
        low, high, by = Decimal(first), Decimal(last), Decimal(step)
    except InvalidOperation:
        low, high, by = Decimal(0), Decimal(0), Decimal(0)
    if by <= 0 or high < low or (high - low) / by > MOST_SETTINGS:
        msg = f"{text!r} counts nowhere; write from:to:step with a step above 0"
        raise InputError(msg)
    for i in range(int((high - low) / by) + 1):
        value = low + i * by
        yield int(value) if value == value.to_integral_value() else float(value)
