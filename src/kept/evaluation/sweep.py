"""Sweeps: one collection under a grid of settings, and which of them are worth it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from itertools import product

import yaml

from kept.errors import InputError
from kept.evaluation.collection import Collection
from kept.evaluation.corpus import Corpus, OnStep
from kept.evaluation.measures import Measures
from kept.evaluation.resampling import STANDARD, Interval, Resampling, mean_interval
from kept.evaluation.runs import EvaluationRun, QueryRecord
from kept.evaluation.suite import record_of
from kept.evaluation.system import (
    RecalledPool,
    Setup,
    SystemUnderTest,
    asking,
    header_of,
)
from kept.kernel.model import Scalar
from kept.kernel.presets import Plan, preset

MOST_SETTINGS = 1000

Setting = Mapping[str, Scalar]


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepPoint:
    """One combination of settings: its quality, its refusals and its cost.

    It is *optimal* if no other combination is as good in all three and better in one.
    """

    settings: Setting = field(hash=False)
    quality: Interval | None
    refused: float
    cost: float
    optimal: bool = False


def grid(options: Iterable[str]) -> tuple[dict[str, Scalar], ...]:
    """Return every combination of *options*.

    An option is ``name=0.3,0.4,0.5`` or ``name=0.3:0.5:0.1`` (from, to, step; the end
    is included). Values are read as YAML: numbers, true and false, null, words.
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
    """Evaluate every setting and mark those on the Pareto frontier.

    The cost is the mean number of documents returned per question.
    """
    points = [_point(each, run(each), measure, how) for each in settings]
    return tuple(
        replace(p, optimal=not any(_dominates(other, p) for other in points))
        for p in points
    )


def swept(
    collection: Collection,
    corpus: Corpus,
    setup: Setup,
    settings: Sequence[Setting],
    *,
    on_step: OnStep,
) -> tuple[SweepPoint, ...]:
    """Evaluate *corpus* under every setting; quality is the first measure.

    Recall runs once per question, and again only for a setting that changes the depth
    or the legs.
    """
    runs = _runs(collection, corpus, setup, settings, on_step)
    measure = setup.measures[0]
    return sweep(settings, lambda each: runs[_key(each)], measure=measure)


def documents_per_question(run: EvaluationRun) -> float:
    """Return the mean number of documents that a question gets."""
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
    """Return whether *one* is better in something and worse in nothing."""
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
        msg = f"{text!r} has a value {word!r} that is not a single value; write a=1,2,3"
        raise InputError(msg)
    return value


def _steps(text: str, first: str, last: str, step: str) -> Iterable[Scalar]:
    """Count from *first* to *last* in decimals, so that 0.1 three times is 0.3."""
    try:
        low, high, by = Decimal(first), Decimal(last), Decimal(step)
    except InvalidOperation:
        low, high, by = Decimal(0), Decimal(0), Decimal(0)
    if by <= 0 or high < low or (high - low) / by > MOST_SETTINGS:
        msg = f"{text!r} is not a range; write from:to:step with a step above 0"
        raise InputError(msg)
    for i in range(int((high - low) / by) + 1):
        value = low + i * by
        yield int(value) if value == value.to_integral_value() else float(value)


def _runs(
    collection: Collection,
    corpus: Corpus,
    setup: Setup,
    settings: Sequence[Setting],
    on_step: OnStep,
) -> dict[str, EvaluationRun]:
    _check_names(setup.preset, settings)
    measures = Measures.named(*setup.measures)
    plans = {
        _key(each): asking(corpus, setup.preset, {**setup.overrides, **each})
        for each in settings
    }
    records: dict[str, list[QueryRecord]] = {key: [] for key in plans}
    for done, question in enumerate(collection.questions, start=1):
        grades = collection.qrels.get(question.id, {})
        for key, (asked, recall) in _recalled(plans, question.text).items():
            # A sweep compares no decisions; without them all records fit in memory.
            ranked = replace(asked.guarded(recall), touches=())
            records[key].append(record_of(question, ranked, grades, measures))
        on_step(f"sweeping {collection.name}", done, len(collection.questions))
    header = header_of(collection, next(iter(plans.values())), setup)
    return {
        key: EvaluationRun(header=header, records=tuple(each))
        for key, each in records.items()
    }


def _recalled(
    plans: Mapping[str, SystemUnderTest], question: str
) -> dict[str, tuple[SystemUnderTest, RecalledPool]]:
    """Recall once for all plans with the same depth and legs."""
    recalls: dict[object, RecalledPool] = {}
    for asked in plans.values():
        if (depths := _depths(asked.plan)) not in recalls:
            recalls[depths] = asked.recall(question)
    return {key: (asked, recalls[_depths(asked.plan)]) for key, asked in plans.items()}


def _depths(plan: Plan) -> tuple[tuple[int, ...], tuple[str, ...]]:
    return plan.waves, plan.legs


def _check_names(preset_name: str, settings: Iterable[Setting]) -> None:
    """Raise if a setting varies k: a ranking is measured at one length."""
    chosen = preset(preset_name)
    fixed = {chosen.k_setting, chosen.settings.variable(chosen.k_setting)}
    for name in sorted({name for each in settings for name in each} & fixed):
        msg = (
            f"{name} is not swept: a ranking is measured at one length; "
            "sweep a floor, a limit or a weight"
        )
        raise InputError(msg)


def _key(setting: Setting) -> str:
    return repr(sorted(setting.items()))
