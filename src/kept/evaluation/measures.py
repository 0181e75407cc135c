"""Measures of a ranking, under their `ir_measures` names.

The usual ones are calculated here, as trec_eval defines them; any other is passed to
`ir_measures`, which the extra ``eval`` brings.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from kept._runtime import needing
from kept.errors import InputError
from kept.evaluation.trec import Qrels, Ranking, Run, best_first

DEFAULT_MEASURES = ("nDCG@10", "R@100", "RR", "Success@3")

Values = Mapping[str, float]
Gains = Sequence[int]
"""The grade of each ranked document, the best rank first; 0 where it has none."""

_USUAL = re.compile(r"(nDCG|RR|AP|R|P|Success)(?:@([1-9][0-9]*))?")


def _ndcg(gains: Gains, relevant: Gains, k: int | None) -> float:
    def discounted(grades: Gains) -> float:
        return math.fsum(g / math.log2(i + 2) for i, g in enumerate(grades[:k]))

    return discounted(gains) / discounted(relevant)


def _reciprocal_rank(gains: Gains, relevant: Gains, k: int | None) -> float:
    return next((1 / (i + 1) for i, gain in enumerate(gains[:k]) if gain), 0.0)


def _average_precision(gains: Gains, relevant: Gains, k: int | None) -> float:
    ranks = [i + 1 for i, gain in enumerate(gains[:k]) if gain]
    found = ((n + 1) / rank for n, rank in enumerate(ranks))
    return math.fsum(found) / len(relevant)


def _recall(gains: Gains, relevant: Gains, k: int | None) -> float:
    return sum(map(bool, gains[:k])) / len(relevant)


def _precision(gains: Gains, relevant: Gains, k: int | None) -> float:
    return sum(map(bool, gains[:k])) / (k or 1)


def _success(gains: Gains, relevant: Gains, k: int | None) -> float:
    return float(any(gains[:k]))


Formula = Callable[[Gains, Gains, int | None], float]
_FORMULAS: Mapping[str, Formula] = {
    "nDCG": _ndcg,
    "RR": _reciprocal_rank,
    "AP": _average_precision,
    "R": _recall,
    "P": _precision,
    "Success": _success,
}
_CUT = frozenset({"R", "P", "Success"})
"""Those that mean nothing without a depth."""


@dataclass(frozen=True, slots=True)
class UsualMeasure:
    """One of the formulas at a depth; None is the whole ranking."""

    formula: str
    k: int | None

    def __str__(self) -> str:
        return self.formula if self.k is None else f"{self.formula}@{self.k}"

    def of(self, grades: Mapping[str, int], ranked: Iterable[str]) -> float:
        """Measure one ranking; without anything relevant it is 0."""
        relevant = sorted((g for g in grades.values() if g > 0), reverse=True)
        gains = [max(0, grades.get(each, 0)) for each in ranked]
        return _FORMULAS[self.formula](gains, relevant, self.k) if relevant else 0.0


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
        ranked = {
            q: [each for each, _ in best_first(run[q])] for q in qrels if run.get(q)
        }
        for query, ids in ranked.items():
            for measure in self.parsed:
                if isinstance(measure, UsualMeasure):
                    met = measure.of(qrels[query], ids)
                    values[query][str(measure)] = round(met, 9)
        others = [m for m in self.parsed if not isinstance(m, UsualMeasure)]
        for query, name, value in _measured_elsewhere(others, qrels, ranked):
            values[query][name] = round(value, 9)
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
    usual = _USUAL.fullmatch(alias)
    if usual and (usual[2] or usual[1] not in _CUT):
        return UsualMeasure(usual[1], int(usual[2]) if usual[2] else None)
    with needing("eval", f"the measure {name!r}"):
        import ir_measures  # noqa: PLC0415 -- slow to load, and an extra

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
    # Other spellings of the usual ones, such as MRR and NDCG@10.
    return _parsed(str(measure)) if str(measure) != alias else measure


def _measured_elsewhere(
    measures: Sequence[Any], qrels: Qrels, ranked: Mapping[str, Sequence[str]]
) -> Iterable[tuple[str, str, float]]:
    """Yield query, measure and value of what `ir_measures` calculates."""
    if not measures or not ranked:
        return
    import ir_measures  # noqa: PLC0415 -- as above

    # Ranks in place of scores: trec_eval reads float32, in which more of them tie.
    run = {
        query: {each: float(len(ids) - i) for i, each in enumerate(ids)}
        for query, ids in ranked.items()
    }
    judged = {query: dict(qrels[query]) for query in run}
    for metric in ir_measures.iter_calc(measures, judged, run):
        yield metric.query_id, str(metric.measure), float(metric.value)
