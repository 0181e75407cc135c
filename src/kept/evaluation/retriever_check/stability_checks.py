"""Stability: order that flips, ties that luck decides, places taken by repeats."""

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

from rapidfuzz.distance import Levenshtein

from kept.auditing.hits import Hit
from kept.auditing.observed import Answer, Asked, Observed
from kept.auditing.probes import folded
from kept.auditing.report import Finding, Severity, finding

NEAR = 0.9
COMPARED_CHARS = 4_000
SHOWN_CHARS = 60
SHOWN = 2
_NUMBER = re.compile(r"\d+")


def order(observed: Observed) -> Finding:
    """Ask whether the same question gets the same answer."""
    asked = [one for one in observed.asked if not one.first.error]
    flipped = {
        "runs": [one for one in asked if _differs(one.first, one.runs[1:])],
        "threads": [one for one in asked if _differs(one.first, [one.threaded])],
        "k": [one for one in asked if _cut_differs(one)],
        "ids": [one for one in asked if _renamed(one)],
    }
    numbers = {f"flips_across_{name}": len(of) for name, of in flipped.items()}
    numbers["questions"] = len(asked)
    headings = {
        "runs": "asked again, {n} of {of} questions got another order",
        "threads": "asked beside others, {n} of {of} got another order",
        "k": "asked for fewer or more, {n} of {of} got another top",
        "ids": "asked again, {n} of {of} got the same texts under other ids",
    }
    told = [
        headings[name].format(n=len(of), of=len(asked)) + f", such as {_named(of[0])}."
        for name, of in flipped.items()
        if of
    ]
    if not told:
        also = ", and whatever k is" if observed.takes_k else ""
        headline = f"The same question gets the same order, on threads too{also}."
        return finding("order", Severity.FINE, headline, numbers=numbers)
    return finding(
        "order",
        Severity.PROBLEM,
        "The same question gets different answers.",
        [one[0].upper() + one[1:] for one in told],
        numbers,
    )


def ties(observed: Observed) -> Finding:
    """Ask where scores are equal, and whether the cut runs through a tie."""
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
    if not tied and not cut:
        headline = f"No two of the top {observed.k} have the same score."
        return finding("ties", Severity.FINE, headline, numbers=numbers)
    details = []
    if cut:
        details.append(
            f"In {len(cut)} of {len(scored)} the tie runs through place {observed.k}: "
            f"chance decides who is cited, as for {_named(cut[0])}."
        )
    return finding(
        "ties",
        Severity.PROBLEM if cut else Severity.WARNING,
        f"In {len(tied)} of {len(scored)} questions several results have the very same "
        "score; only a second key, such as the id, makes their order certain.",
        details,
        numbers,
    )


def duplicates(observed: Observed) -> Finding:
    """Ask how many places of the top k say what another place says already."""
    answers = [answer for answer in observed.first if answer.hits]
    if not any(hit.text for answer in answers for hit in answer.hits):
        return finding(
            "duplicates", Severity.SKIPPED, "The results carry no text to compare."
        )
    exact = {answer.question: _repeats(answer.hits, _same) for answer in answers}
    near = {answer.question: _repeats(answer.hits, _alike) for answer in answers}
    places = sum(len(answer.hits) for answer in answers)
    wasted = sum(len(of) for of in near.values())
    numbers = {
        "places": places,
        "exact": sum(len(of) for of in exact.values()),
        "exact_or_near": wasted,
        "questions_affected": sum(1 for of in near.values() if of),
    }
    if not wasted:
        headline = f"All of the top {observed.k} say something of their own."
        return finding("duplicates", Severity.FINE, headline, numbers=numbers)
    worst = max(near, key=lambda question: (len(near[question]), question))
    return finding(
        "duplicates",
        Severity.PROBLEM,
        f"{wasted} of {places} places in the top {observed.k} repeat another "
        f"({numbers['exact']} word for word), in {numbers['questions_affected']} of "
        f"{len(answers)} questions.",
        [f"Most for {worst!r}: {', '.join(map(repr, near[worst][:SHOWN]))}."],
        numbers,
    )


def failures(observed: Observed) -> Finding:
    """Ask how often it raised instead of answering."""
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
    return finding(
        "failures",
        Severity.PROBLEM,
        f"{len(failed)} of {len(every)} calls failed.",
        [failed[0].error + "."],
        numbers,
    )


def _differs(first: Answer, others: Iterable[Answer]) -> bool:
    return any(not one.error and one.keys != first.keys for one in others)


def _renamed(one: Asked) -> bool:
    """Tell whether the same texts came back under other names."""
    names = [hit.id for hit in one.first.hits]
    return any(
        not run.error
        and run.keys == one.first.keys
        and [hit.id for hit in run.hits] != names
        for run in one.runs[1:]
    )


def _cut_differs(one: Asked) -> bool:
    """Tell whether a shorter answer is not the beginning of a longer one."""
    depths = [a for a in (one.fewer, one.first, one.more) if a and not a.error]
    return any(
        longer.keys[: shorter.k] != shorter.keys for shorter, longer in pairwise(depths)
    )


def _tied_at_cut(one: Asked, k: int) -> bool:
    scores = one.more.scores if one.more is not None else ()
    return len(scores) > k and scores[k - 1] == scores[k]


def _named(one: Asked) -> str:
    return repr(one.question)


def _repeats(hits: Sequence[Hit], same: Callable[[str, str], bool]) -> list[str]:
    """Return the texts that repeat one before them."""
    kept: list[str] = []
    repeated: list[str] = []
    for hit in hits:
        text = folded(hit.text)
        if not text:
            continue
        if any(same(text, other) for other in kept):
            repeated.append(_short(hit.text))
        else:
            kept.append(text)
    return repeated


def _same(text: str, other: str) -> bool:
    return text == other


def _alike(text: str, other: str) -> bool:
    """Tell whether two texts say the same; another number is another fact."""
    if _NUMBER.findall(text) != _NUMBER.findall(other):
        return False
    one, two = text[:COMPARED_CHARS], other[:COMPARED_CHARS]
    return Levenshtein.normalized_similarity(one, two, score_cutoff=NEAR) >= NEAR


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= SHOWN_CHARS else line[: SHOWN_CHARS - 1] + "…"
