"""Checks of stability: changing order, ties at the cut, repeats and failures."""

import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import pairwise

from rapidfuzz.distance import Levenshtein

from kept.evaluation.retriever_check.hits import Hit
from kept.evaluation.retriever_check.observations import (
    Observed,
    ObservedQuestion,
    RetrieverAnswer,
)
from kept.evaluation.retriever_check.probes import folded
from kept.evaluation.retriever_check.report import CheckFinding, Severity, finding

# Nine tenths alike and the same numbers: two invoices of one layout are not repeats.
NEAR = 0.9
# An edit distance is quadratic in the length.
COMPARED_CHARS = 4_000
SHOWN_CHARS = 60
SHOWN = 2
_NUMBER = re.compile(r"\d+")


def order(observed: Observed) -> CheckFinding:
    """Check that the same question always gets the same results in the same order."""
    asked = [one for one in observed.asked if not one.first.error]
    flipped = {
        "runs": [one for one in asked if _differs(one.first, one.runs[1:])],
        "threads": [one for one in asked if _differs(one.first, [one.threaded])],
        "k": [one for one in asked if _cut_differs(one)],
        "ids": [one for one in asked if _other_ids(one)],
    }
    headings = {
        "runs": "Asked again, {n} of {of} questions got another order",
        "threads": "Asked concurrently, {n} of {of} got another order",
        "k": "Asked for fewer or more, {n} of {of} got another top",
        "ids": "Asked again, {n} of {of} got the same texts under other ids",
    }
    details = [
        headings[name].format(n=len(of), of=len(asked))
        + f", such as {of[0].question!r}."
        for name, of in flipped.items()
        if of
    ]
    numbers = {f"flips_across_{name}": len(of) for name, of in flipped.items()}
    found = partial(finding, "order", numbers={**numbers, "questions": len(asked)})
    if details:
        headline = "The same question gets different answers."
        return found(Severity.PROBLEM, headline, details)
    also = ", and whatever k is" if observed.takes_k else ""
    return found(
        Severity.FINE,
        f"The same question gets the same order, on threads too{also}.",
    )


def ties(observed: Observed) -> CheckFinding:
    """Check for equal scores, and whether the cut runs through a tie."""
    scored = [one for one in observed.asked if one.first.scores]
    if not scored:
        return finding("ties", Severity.SKIPPED, "There are no scores to tie.")
    tied = [a for a in scored if len(set(a.first.scores)) < len(a.first.scores)]
    cut = [one for one in scored if _tied_at_cut(one, observed.k)]
    numbers = {
        "questions": len(scored),
        "with_ties": len(tied),
        "tied_at_the_cut": len(cut),
    }
    found = partial(finding, "ties", numbers=numbers)
    if not tied and not cut:
        return found(
            Severity.FINE, f"No two of the top {observed.k} have the same score."
        )
    details = [
        f"In {len(cut)} of {len(scored)} the tie runs through place {observed.k}: "
        f"chance decides which is cited, as for {one.question!r}."
        for one in cut[:1]
    ]
    return found(
        Severity.PROBLEM if cut else Severity.WARNING,
        f"In {len(tied)} of {len(scored)} questions several results have the very same "
        "score; only a second key, such as the id, makes their order certain.",
        details,
    )


def duplicates(observed: Observed) -> CheckFinding:
    """Check how many of the top k repeat another result."""
    answers = [answer for answer in observed.first if answer.hits]
    if not any(hit.text for answer in answers for hit in answer.hits):
        headline = "The results carry no text to compare."
        return finding("duplicates", Severity.SKIPPED, headline)
    exact = sum(len(_repeats(answer.hits, str.__eq__)) for answer in answers)
    near = {answer.question: _repeats(answer.hits, _similar) for answer in answers}
    places = sum(len(answer.hits) for answer in answers)
    wasted = sum(map(len, near.values()))
    affected = sum(map(bool, near.values()))
    numbers = {
        "places": places,
        "exact": exact,
        "exact_or_near": wasted,
        "questions_affected": affected,
    }
    if not wasted:
        headline = f"None of the top {observed.k} repeats another."
        return finding("duplicates", Severity.FINE, headline, numbers=numbers)
    worst = max(near, key=lambda question: (len(near[question]), question))
    return finding(
        "duplicates",
        Severity.PROBLEM,
        f"{wasted} of {places} places in the top {observed.k} repeat another "
        f"({exact} word for word), in {affected} of {len(answers)} questions.",
        [f"Most for {worst!r}: {', '.join(map(repr, near[worst][:SHOWN]))}."],
        numbers,
    )


def failures(observed: Observed) -> CheckFinding:
    """Check how many calls raised an exception."""
    every = [
        *(answer for one in observed.asked for answer in one.answers),
        *observed.off_topic,
        *(one.answer for one in observed.twins),
    ]
    failed = [answer for answer in every if answer.error]
    numbers = {"calls": len(every), "failed": len(failed)}
    if not failed:
        headline = "Every question was answered."
        return finding("failures", Severity.FINE, headline, numbers=numbers)
    headline = f"{len(failed)} of {len(every)} calls failed."
    details = [f"{failed[0].error}."]
    return finding("failures", Severity.PROBLEM, headline, details, numbers)


def _differs(first: RetrieverAnswer, others: Iterable[RetrieverAnswer]) -> bool:
    return any(not one.error and one.keys != first.keys for one in others)


def _other_ids(one: ObservedQuestion) -> bool:
    """Return whether a repeated call gave the same texts other ids."""
    ids = [hit.id for hit in one.first.hits]
    return any(
        not run.error
        and run.keys == one.first.keys
        and [hit.id for hit in run.hits] != ids
        for run in one.runs[1:]
    )


def _cut_differs(one: ObservedQuestion) -> bool:
    """Return whether a shorter answer is not the beginning of a longer one."""
    depths = [a for a in (one.fewer, one.first, one.more) if a and not a.error]
    return any(
        longer.keys[: shorter.k] != shorter.keys for shorter, longer in pairwise(depths)
    )


def _tied_at_cut(one: ObservedQuestion, k: int) -> bool:
    scores = one.more.scores if one.more is not None else ()
    return len(scores) > k and scores[k - 1] == scores[k]


def _repeats(hits: Sequence[Hit], same: Callable[[str, str], bool]) -> list[str]:
    """Return the texts that repeat one before them."""
    kept: list[str] = []
    repeated: list[str] = []
    for hit in hits:
        text = folded(hit.text)
        if text and any(same(text, other) for other in kept):
            repeated.append(_short(hit.text))
        elif text:
            kept.append(text)
    return repeated


def _similar(text: str, other: str) -> bool:
    """Return whether two texts say the same; another number is another fact."""
    if _NUMBER.findall(text) != _NUMBER.findall(other):
        return False
    one, two = text[:COMPARED_CHARS], other[:COMPARED_CHARS]
    return Levenshtein.normalized_similarity(one, two, score_cutoff=NEAR) >= NEAR


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= SHOWN_CHARS else line[: SHOWN_CHARS - 1] + "…"
