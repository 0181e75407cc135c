"""Scores: what they mean, whether a floor can work, and whether near matches stay."""

import math
from collections.abc import Sequence
from statistics import median

from kept.auditing.observed import Answer, Observed, TwinAsked
from kept.auditing.probes import folded
from kept.auditing.report import Finding, Severity, finding
from kept.evaluation.scores import auroc, spearman
from kept.text.tokens import content_words

SAME = 1e-9
OFTEN = 0.9
KEPT_SHARE = 0.95
SEPARATES = 0.8
REFUSES = 0.5
FEW = 3
ENOUGH = 10
STRONG = 0.7
PLACES = 6


def near_matches(observed: Observed) -> Finding:
    """Ask for passages in their own words, whole and with one word missing."""
    if not observed.twins:
        headline = "The results carry no sentences to ask for."
        return finding("near matches", Severity.SKIPPED, headline)
    places = [_place(one) for one in observed.twins]
    lost = [t for t, place in zip(observed.twins, places, strict=True) if place is None]
    first, of = places.count(1), len(places)
    numbers = {
        "passages": sum(1 for one in observed.twins if one.twin.verbatim),
        "asked": of,
        "first": first,
        "lower": of - first - len(lost),
        "lost_verbatim": sum(1 for one in lost if one.twin.verbatim),
        "lost_with_a_word_missing": sum(1 for one in lost if not one.twin.verbatim),
    }
    if lost:
        return finding(
            "near matches",
            Severity.PROBLEM,
            f"{len(lost)} of {of} questions made of its own passages do not find the "
            f"passage in the top {observed.k}.",
            [f"Lost, for example: {lost[0].twin.question!r}."],
            numbers,
        )
    if first < of:
        return finding(
            "near matches",
            Severity.WARNING,
            f"{of - first} of {of} questions made of its own passages find something "
            "else first.",
            numbers=numbers,
        )
    return finding(
        "near matches",
        Severity.FINE,
        f"Asked for in its own words, whole and with one missing, each of "
        f"{numbers['passages']} passages comes first.",
        numbers=numbers,
    )


def _place(one: TwinAsked) -> int | None:
    sentence = folded(one.twin.sentence)
    for place, hit in enumerate(one.answer.hits, start=1):
        if sentence in folded(hit.text):
            return place
    return None


def floors(observed: Observed) -> Finding:
    """Ask what has no answer: is it refused, and could a floor refuse it."""
    probes = [answer for answer in observed.off_topic if not answer.error]
    answered = [answer for answer in probes if answer.hits]
    numbers = {"off_topic": len(probes), "answered": len(answered)}
    if not probes:
        headline = "No off-topic question could be asked."
        return finding("floors", Severity.SKIPPED, headline)
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
    return _could_refuse(observed, headline, tops, stray, numbers)


def _could_refuse(
    observed: Observed,
    headline: str,
    tops: Sequence[float],
    stray: Sequence[float],
    numbers: dict[str, int],
) -> Finding:
    """Say what the floor that keeps nearly all questions would refuse."""
    floor = sorted(tops)[math.floor((1 - KEPT_SHARE) * len(tops))]
    refused = sum(1 for top in stray if top < floor)
    area = auroc([*tops, *stray], [True] * len(tops) + [False] * len(stray))
    separation = 0.5 if area is None else area
    sign = -1.0 if observed.direction == "smaller" else 1.0
    usual, astray = _shown(sign * median(tops)), _shown(sign * median(stray))
    compared = (
        f"The best score of your questions is {usual} in the median, of off-topic ones "
        f"{astray}."
    )
    possible = (
        f"The floor that keeps {KEPT_SHARE:.0%} of your questions, "
        f"{_shown(sign * floor)}, would refuse {refused} of {len(stray)} off-topic "
        f"ones (AUROC {separation:.2f}; 0.50 is a coin)."
    )
    works = refused >= REFUSES * len(stray) and separation >= SEPARATES
    return finding(
        "floors",
        Severity.WARNING if works else Severity.PROBLEM,
        headline,
        (compared, possible),
        numbers={
            **numbers,
            "median_top": round(sign * median(tops), PLACES),
            "median_top_off_topic": round(sign * median(stray), PLACES),
            "floor": round(sign * floor, PLACES),
            "refused_by_it": refused,
            "auroc": round(separation, PLACES),
        },
        remedy=f"Set a floor; {_shown(sign * floor)} is where to begin."
        if works
        else "",
    )


def scores(observed: Observed) -> Finding:
    """Ask what the scores mean: their range, direction and what they depend on."""
    hits = [hit for answer in observed.first for hit in answer.hits]
    missing = sum(1 for hit in hits if hit.score is None)
    broken = sum(1 for h in hits if h.score is not None and not math.isfinite(h.score))
    numbers: dict[str, float | str] = {
        "results": len(hits),
        "without_score": missing,
        "not_finite": broken,
        "direction": observed.direction,
    }
    if not hits:
        return finding("scores", Severity.SKIPPED, "There were no results to score.")
    if missing == len(hits):
        return finding(
            "scores",
            Severity.WARNING,
            "The results have no scores: nobody can tell a good answer from a bad one.",
            numbers=numbers,
        )
    finite = [h.score for h in hits if h.score is not None and math.isfinite(h.score)]
    if finite:
        numbers["lowest"], numbers["highest"] = min(finite), max(finite)
    wrong = [
        told
        for told in (
            _incomplete(missing, broken, len(hits)),
            _relative(observed, numbers),
            _by_place(observed),
            _moving(observed, numbers),
        )
        if told
    ]
    what = {
        "larger": "larger is better",
        "smaller": "smaller is better",
        "none": "in no order",
    }[observed.direction]
    name = next((hit.score_name for hit in hits if hit.score_name), "")
    called = f", called {name!r}" if name else ""
    headline = "No score is a number."
    if finite:
        span = f"from {_shown(min(finite))} to {_shown(max(finite))}"
        headline = f"Scores run {span}, {what}{called}."
    numbers["not_sorted"] = observed.unsorted
    doubts = [*filter(None, (_unsorted(observed), _growing(observed, numbers)))]
    severity = Severity.WARNING if doubts else Severity.FINE
    return finding(
        "scores",
        Severity.PROBLEM if wrong else severity,
        headline,
        [*wrong, *doubts],
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


def _growing(observed: Observed, numbers: dict[str, float | str]) -> str:
    """Tell scores that grow with the question, as sums over its words do."""
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


def _relative(observed: Observed, numbers: dict[str, float | str]) -> str:
    """Tell the signature of min-max: each question's best is 1 and its worst is 0."""
    telling = [a.scores for a in observed.first if len(set(a.scores)) > 1]
    if len(telling) < FEW:
        return ""
    sign = -1.0 if observed.direction == "smaller" else 1.0
    best = [max(s, key=lambda value: sign * value) for s in telling]
    whole = sum(1 for s in telling if _is(max(s), 1.0) and _is(min(s), 0.0))
    fixed = sum(1 for value in best if _is(value, best[0]))
    numbers["best_is_always"] = best[0] if fixed == len(best) else "different"
    if whole >= OFTEN * len(telling):
        return (
            f"They are relative (min-max): in {whole} of {len(telling)} questions the "
            "best is exactly 1 and the worst exactly 0, however good the best is."
        )
    if fixed >= OFTEN * len(best):
        return (
            f"They are relative: in {fixed} of {len(best)} questions the best is "
            f"exactly {_shown(best[0])}, however good it is."
        )
    return ""


def _by_place(observed: Observed) -> str:
    """Tell scores that are the place in disguise, as those of rank fusion are."""
    telling = [a.scores for a in observed.first if len(set(a.scores)) > 1]
    if len(telling) < FEW:
        return ""
    shortest = min(map(len, telling))
    same = all(
        all(_is(scores[place], telling[0][place]) for scores in telling)
        for place in range(shortest)
    )
    if not same or shortest < FEW:
        return ""
    return "They only tell the place: every question has the same scores in a row."


def _moving(observed: Observed, numbers: dict[str, float | str]) -> str:
    """Tell scores that change with how many are asked for."""
    pairs = [(a.first, a.more) for a in observed.asked if a.more is not None]
    moved = sum(1 for first, more in pairs if _changed(first, more))
    numbers["changed_by_k"] = moved
    if not moved:
        return ""
    return (
        f"They depend on k: asked for twice as many, {moved} of {len(pairs)} questions "
        "gave the same passage another score."
    )


def _changed(first: Answer, more: Answer) -> bool:
    then = {hit.key: hit.score for hit in first.hits}
    return any(
        hit.score is not None
        and then.get(hit.key) is not None
        and not _is(hit.score, float(then[hit.key] or 0.0))
        for hit in more.hits
    )


def _is(value: float, other: float) -> bool:
    neither = math.isnan(value) and math.isnan(other)
    return neither or math.isclose(value, other, rel_tol=1e-6, abs_tol=SAME)


def _shown(value: float) -> str:
    return f"{value:.3g}" if math.isfinite(value) else "nothing"
