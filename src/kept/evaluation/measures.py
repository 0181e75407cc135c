"""Measures of a ranking, under their `ir_measures` names."""

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import ir_measures

from kept.errors import InputError
from kept.evaluation.trec import Qrels, Ranking, Run, best_first

DEFAULT_MEASURES = ("nDCG@10", "R@100", "RR", "Success@3")

Values = Mapping[str, float]


@dataclass(frozen=True)
class Measures:
    """Measures to take of every ranking, such as ``nDCG@10``, ``R@100``, ``RR``.

    ``hits@k`` is another name of ``Success@k``.
    """

    names: tuple[str, ...]
    parsed: tuple[Any, ...] = field(repr=False, compare=False)

    @classmethod
    def named(cls, *names: str) -> Self:
        """Parse *names*; the error names one that is unknown."""
        # Two spellings of one measure would be averaged twice.
        parsed = tuple(dict.fromkeys(_parsed(name) for name in names))
        if not parsed:
            msg = "no measure was named; name one, such as nDCG@10"
            raise InputError(msg)
        return cls(tuple(str(measure) for measure in parsed), parsed)

    def of_query(self, grades: Mapping[str, int], ranking: Ranking) -> dict[str, float]:
        """Measure one ranking; an empty one counts as 0 in every measure.

        Ties are broken by document id before anything is measured.
        """
        return self.of_run({"q": grades}, {"q": ranking})["q"]

    def of_run(self, qrels: Qrels, run: Run) -> dict[str, dict[str, float]]:
        """Measure every judged query; one that the run left out counts as 0."""
        # ir_measures leaves out queries without results.
        values = {q: dict.fromkeys(self.names, 0.0) for q in qrels}
        answered = {q: _by_rank(run[q]) for q in qrels if run.get(q)}
        judged = {q: dict(qrels[q]) for q in answered}
        if answered:
            for metric in ir_measures.iter_calc(self.parsed, judged, answered):
                values[metric.query_id][str(metric.measure)] = round(
                    float(metric.value), 9
                )
        return values


def means(values: Iterable[Values]) -> dict[str, float]:
    """Average each measure over the queries, in exact summation."""
    rows = list(values)
    if not rows:
        return {}
    return {
        # fsum is exact, so the mean does not depend on the order of the questions.
        name: round(math.fsum(row[name] for row in rows) / len(rows), 9)
        for name in rows[0]
    }


def _parsed(name: str) -> Any:  # noqa: ANN401 -- ir_measures has no types
    alias = re.sub(r"^hits@", "Success@", name.strip(), flags=re.IGNORECASE)
    supports: Callable[[Any], bool] = ir_measures.DefaultPipeline.supports
    try:
        measure = ir_measures.parse_measure(alias)
        supported = supports(measure)
    except (NameError, ValueError, AssertionError) as error:
        msg = (
            f"there is no measure {name!r}, or it lacks a parameter; use ir_measures "
            f"names, such as {', '.join(DEFAULT_MEASURES)}"
        )
        raise InputError(msg) from error
    if not supported:
        msg = f"the measure {name!r} needs a tool that is not installed; choose another"
        raise InputError(msg)
    return measure


def _by_rank(ranking: Ranking) -> dict[str, float]:
    """Return ranks in place of scores: trec_eval reads float32, in which more tie."""
    ordered = best_first(ranking)
    return {each: float(len(ordered) - i) for i, (each, _) in enumerate(ordered)}
