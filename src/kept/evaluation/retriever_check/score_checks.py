"""Checks of scores: their meaning, whether a floor can work, and near matches."""

import math
from collections.abc import Mapping, Sequence
from functools import partial
from statistics import median

from kept.evaluation.probability_scores import auroc, spearman
from kept.evaluation.retriever_check.observations import (
    Observed,
    RetrieverAnswer,
    TwinAsked,
)
from kept.evaluation.retriever_check.probes import folded
from kept.evaluation.retriever_check.report import CheckFinding, Severity, finding
from kept.text.tokens import content_words

SAME = 1e-9
# A few questions may have a single result, or be refused by chance.
OFTEN = 0.9
KEPT_SHARE = 0.95
SEPARATES = 0.8
REFUSES = 0.5
FEW = 3
ENOUGH = 10
STRONG = 0.7
PLACES = 6
DIRECTIONS = {
    "larger": "larger is better",
    "smaller": "smaller is better",
    "none": "in no order",
}

Numbers = dict[str, float | str]


def near_matches(observed: Observed) -> CheckFinding:
    """Check that sentences of passages find them, verbatim and with a word missing."""
    if not observed.twins:
        headline = "The results carry no sentences to ask for."
        return finding("near matches", Severity.SKIPPED, headline)
    places = [_place(one) for one in observed.twins]
    lost = [t for t, place in zip(observed.twins, places, strict=True) if place is None]
    first, of = places.count(1), len(places)
    verbatim = sum(1 for one in observed.twins if one.twin.verbatim)
    lost_verbatim = sum(1 for one in lost if one.twin.verbatim)
    found = partial(
        finding,
        "near matches",
        numbers={
            "passages": verbatim,
            "asked": of,
            "first": first,
            "lower": of - first - len(lost),
            "lost_verbatim": lost_verbatim,
            "lost_with_a_word_missing": len(lost) - lost_verbatim,
        },
    )
    if lost:
        return found(
            Severity.PROBLEM,
            f"{len(lost)} of {of} questions made of its own passages do not find the "
            f"passage in the top {observed.k}.",
            [f"Lost, for example: {lost[0].twin.question!r}."],
        )
    if first < of:
        return found(
            Severity.WARNING,
            f"{of - first} of {of} questions made of its own passages find something "
            "else first.",
        )
    return found(
        Severity.FINE,
        f"Asked for in its own words, whole and with one missing, each of {verbatim} "
        "passages comes first.",
    )


def _place(one: TwinAsked) -> int | None:
    sentence = folded(one.twin.sentence)
    for place, hit in enumerate(one.answer.hits, start=1):
        if sentence in folded(hit.text):
            return place
    return None


def floors(observed: Observed) -> CheckFinding:
    """Check that off-topic questions are refused, or could be by a floor."""
    probes = [answer for answer in observed.off_topic if not answer.error]
    answered = [answer for answer in probes if answer.hits]
    if not probes:
        headline = "No off-topic question could be asked."
        return finding("floors", Severity.SKIPPED, headline)
    numbers: Numbers = {"off_topic": len(probes), "answered": len(answered)}
    if len(answered) <= (1 - OFTEN) * len(probes):
        return finding(
            "floors",
            Severity.FINE,
            f"{len(probes) - len(answered)} of {len(probes)} off-topic "
            "questions were refused.",
            numbers=numbers,
        )
    fires = (
        "No floor fires" if len(answered) == len(probes) else "Too little is refused"
    )
    headline = (
        f"{fires}: {len(answered)} of {len(probes)} off-topic questions got "
        f"results, such as {answered[0].question!r} with {len(answered[0].hits)}."
    )
    tops, stray = observed.tops(observed.first), observed.tops(answered)
    if not tops or not stray or observed.direction == "none":
        return finding(
            "floors",
            Severity.PROBLEM,
            headline,
            ("Without comparable scores the caller cannot set one either.",),
            numbers=numbers,
        )
    return _could_refuse(observed.sign, headline, tops, stray, numbers)


def _could_refuse(
    sign: float,
    headline: str,
    tops: Sequence[float],
    stray: Sequence[float],
    numbers: Mapping[str, float | str],
) -> CheckFinding:
    """Report what the floor that keeps nearly all questions would refuse."""
    floor = sorted(tops)[math.floor((1 - KEPT_SHARE) * len(tops))]
    refused = sum(1 for top in stray if top < floor)
    area = auroc([*tops, *stray], [True] * len(tops) + [False] * len(stray))
    separation = 0.5 if area is None else area
    usual, astray = sign * median(tops), sign * median(stray)
    works = refused >= REFUSES * len(stray) and separation >= SEPARATES
    compared = (
        f"The best score of your questions is {_shown(usual)} in the median, of "
        f"off-topic ones {_shown(astray)}."
    )
    possible = (
        f"The floor that keeps {KEPT_SHARE:.0%} of your questions, "
        f"{_shown(sign * floor)}, would refuse {refused} of {len(stray)} off-topic "
        f"ones (AUROC {separation:.2f}; 0.50 is a coin)."
    )
    return finding(
        "floors",
        Severity.WARNING if works else Severity.PROBLEM,
        headline,
        (compared, possible),
        numbers={
            **numbers,
            "median_top": round(usual, PLACES),
            "median_top_off_topic": round(astray, PLACES),
            "floor": round(sign * floor, PLACES),
            "refused_by_it": refused,
            "auroc": round(separation, PLACES),
        },
        remedy=f"Set a floor; start with {_shown(sign * floor)}." if works else "",
    )


def scores(observed: Observed) -> CheckFinding:
    """Check the range and direction of scores, and what they depend on."""
    hits = [hit for answer in observed.first for hit in answer.hits]
    given = [hit.score for hit in hits if hit.score is not None]
    finite = [score for score in given if math.isfinite(score)]
    missing, broken = len(hits) - len(given), len(given) - len(finite)
    numbers: Numbers = {
        "results": len(hits),
        "without_score": missing,
        "not_finite": broken,
        "direction": observed.direction,
    }
    if not hits:
        return finding("scores", Severity.SKIPPED, "There were no results to score.")
    if not given:
        headline = "The results have no scores: good and bad answers look the same."
        return finding("scores", Severity.WARNING, headline, numbers=numbers)
    headline = "No score is a number."
    if finite:
        numbers["lowest"], numbers["highest"] = min(finite), max(finite)
        span = f"from {_shown(min(finite))} to {_shown(max(finite))}"
        name = next((hit.score_name for hit in hits if hit.score_name), "")
        called = f", called {name!r}" if name else ""
        headline = f"Scores run {span}, {DIRECTIONS[observed.direction]}{called}."
    wrong = [
        _incomplete(missing, broken, len(hits)),
        _relative(observed, numbers),
        _by_place(observed),
        _depends_on_k(observed, numbers),
    ]
    numbers["not_sorted"] = observed.unsorted
    doubts = [_unsorted(observed), _grows_with_length(observed, numbers)]
    severity = Severity.WARNING if any(doubts) else Severity.FINE
    return finding(
        "scores",
        Severity.PROBLEM if any(wrong) else severity,
        headline,
        filter(None, (*wrong, *doubts)),
        numbers,
    )


def _incomplete(missing: int, broken: int, of: int) -> str:
    if not missing and not broken:
        return ""
    return (
        f"{missing} of {of} results have no score and {broken} one that is no number."
    )


def _unsorted(observed: Observed) -> str:
    if not observed.unsorted:
        return ""
    return (
        f"{observed.unsorted} of {len(observed.first)} answers are not sorted by them: "
        "something else decides the order."
    )


def _grows_with_length(observed: Observed, numbers: Numbers) -> str:
    """Detect scores that are sums over the words of the question, as of BM25."""
    answers = [answer for answer in observed.first if answer.scores]
    lengths = [float(len(content_words(answer.question))) for answer in answers]
    rho = spearman(lengths, observed.tops(answers)) if len(answers) >= ENOUGH else None
    if rho is None:
        return ""
    numbers["correlation_with_length"] = round(rho, PLACES)
    if rho < STRONG:
        return ""
    return (
        "They grow with the length of the question (rank correlation "
        f"{rho:.2f}), so that one floor for all refuses the short ones."
    )


def _relative(observed: Observed, numbers: Numbers) -> str:
    """Detect min-max scaling: every question's best is 1 and its worst is 0."""
    differing = _differing(observed)
    if len(differing) < FEW:
        return ""
    best = [max(s, key=lambda value: observed.sign * value) for s in differing]
    whole = sum(1 for s in differing if _is(max(s), 1.0) and _is(min(s), 0.0))
    fixed = sum(1 for value in best if _is(value, best[0]))
    numbers["best_is_always"] = best[0] if fixed == len(best) else "different"
    if whole >= OFTEN * len(differing):
        return (
            f"They are relative (min-max): in {whole} of {len(differing)} questions "
            "the best is exactly 1 and the worst exactly 0, however good the best is."
        )
    if fixed >= OFTEN * len(best):
        return (
            f"They are relative: in {fixed} of {len(best)} questions the best is "
            f"exactly {_shown(best[0])}, however good it is."
        )
    return ""


def _by_place(observed: Observed) -> str:
    """Detect scores that depend on the place alone, as of rank fusion."""
    differing = _differing(observed)
    shortest = min(map(len, differing), default=0)
    same = all(
        _is(score, first)
        for scores in differing
        for score, first in zip(scores[:shortest], differing[0], strict=False)
    )
    if len(differing) < FEW or shortest < FEW or not same:
        return ""
    return "They are only the place: every question has the same scores in a row."


def _differing(observed: Observed) -> list[tuple[float, ...]]:
    """Return the scores of the answers whose scores are not all equal."""
    return [a.scores for a in observed.first if len(set(a.scores)) > 1]


def _depends_on_k(observed: Observed, numbers: Numbers) -> str:
    pairs = [(a.first, a.more) for a in observed.asked if a.more is not None]
    changed = sum(1 for first, more in pairs if _changed(first, more))
    numbers["changed_by_k"] = changed
    if not changed:
        return ""
    return (
        f"They depend on k: asked for twice as many, {changed} of {len(pairs)} "
        "questions gave the same passage another score."
    )


def _changed(first: RetrieverAnswer, more: RetrieverAnswer) -> bool:
    before = {hit.key: hit.score for hit in first.hits}
    pairs = ((hit.score, before.get(hit.key)) for hit in more.hits)
    return any(
        now is not None and then is not None and not _is(now, then)
        for now, then in pairs
    )


def _is(value: float, other: float) -> bool:
    # NaN differs from itself, but a score that stays NaN has not changed.
    neither = math.isnan(value) and math.isnan(other)
    return neither or math.isclose(value, other, rel_tol=1e-6, abs_tol=SAME)


def _shown(value: float) -> str:
    return f"{value:.3g}" if math.isfinite(value) else "nothing"
