"""Sweeping: many settings on what was recalled once."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from kept.errors import InputError
from kept.evaluating.asking import Asking, Recall, asking
from kept.evaluating.corpus import Corpus, Tell
from kept.evaluating.ranking import Setup, header_of
from kept.evaluation.collection import Collection
from kept.evaluation.measures import Measures
from kept.evaluation.runs import EvaluationRun, QueryRecord
from kept.evaluation.suite import record_of
from kept.evaluation.sweep import Setting, SweepPoint, sweep
from kept.presets import Plan, preset

Runs = Mapping[str, EvaluationRun]


def swept(
    collection: Collection,
    corpus: Corpus,
    setup: Setup,
    settings: Sequence[Setting],
    *,
    tell: Tell,
) -> tuple[SweepPoint, ...]:
    """Run the stages under every setting and mark the frontier by the first measure.

    The legs are asked once per question; only a setting that changes how deep or
    in which legs to look asks them again.
    """
    runs = _runs(collection, corpus, setup, settings, tell)
    measure = setup.measures[0]
    return sweep(settings, lambda each: runs[_key(each)], measure=measure)


def _runs(
    collection: Collection,
    corpus: Corpus,
    setup: Setup,
    settings: Sequence[Setting],
    tell: Tell,
) -> Runs:
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
            ranked = replace(asked.guarded(recall), touches=())
            records[key].append(record_of(question, ranked, grades, measures))
        tell(f"sweeping {collection.name}", done, len(collection.questions))
    header = header_of(collection, next(iter(plans.values())), setup)
    return {
        key: EvaluationRun(header=header, records=tuple(each))
        for key, each in records.items()
    }


def _recalled(
    plans: Mapping[str, Asking], question: str
) -> dict[str, tuple[Asking, Recall]]:
    """Recall for every plan, those that look alike together."""
    recalls: dict[tuple[tuple[int, ...], tuple[str, ...]], Recall] = {}
    for asked in plans.values():
        if (look := _look(asked.plan)) not in recalls:
            recalls[look] = asked.recall(question)
    return {key: (asked, recalls[_look(asked.plan)]) for key, asked in plans.items()}


def _look(plan: Plan) -> tuple[tuple[int, ...], tuple[str, ...]]:
    return plan.waves, plan.legs


def _check_names(preset_name: str, settings: Iterable[Setting]) -> None:
    """Refuse to vary how many come back: the ranking needs as many as it can get."""
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
