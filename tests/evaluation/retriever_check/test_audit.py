"""An audit finds what a retriever does wrong, and nothing where nothing is."""

import asyncio
import itertools
import json
import math
from collections.abc import Callable
from typing import Any

import pytest

from kept import KnowledgeBase
from kept.errors import InputError
from kept.evaluation.retriever_check import QuestioningEffort, RetrieverReport, audit
from kept.evaluation.retriever_check.html_page import as_html
from kept.evaluation.retriever_check.report import Severity

TOWNS = ("Leeds", "Kiel", "Graz", "Turin", "Lyon", "Ghent", "Porto", "Basel")
TEXTS = [
    f"The {town} office opens at {hour} sharp and shuts {hour + 8} hours from midnight"
    for hour, town in enumerate(TOWNS, start=6)
]
QUESTIONS = [f"When does the office in {town} open its doors?" for town in TOWNS]
Result = tuple[str, str, float]


def overlap(question: str, text: str) -> float:
    """Return the share of a question's words that a text has."""
    words = set(question.lower().replace("?", "").replace(".", "").split())
    return len(words & set(text.lower().replace(".", "").split())) / len(words)


def good(question: str, k: int) -> list[Result]:
    """Search as one should: absolute scores, a floor, a total order."""
    scored = [(str(n), text, overlap(question, text)) for n, text in enumerate(TEXTS)]
    spread = [(i, t, s + int(i) / 1e6) for i, t, s in scored if s >= 0.2]
    return sorted(spread, key=lambda hit: (-hit[2], hit[0]))[:k]


def report_on(search: Callable[..., Any], **more: Any) -> RetrieverReport:  # noqa: ANN401 -- options
    """Audit a retriever with little effort."""
    return audit(
        search, QUESTIONS, k=4, effort=QuestioningEffort(runs=2, threads=4), **more
    )


def severities(report: RetrieverReport) -> dict[str, str]:
    """Return how bad each finding is."""
    return {one.check: str(one.severity) for one in report.findings}


def test_a_good_retriever_gets_no_complaint() -> None:
    """Every check is fine, and the worst would come first."""
    report = report_on(good)

    assert severities(report) == dict.fromkeys(
        [
            *("near matches", "floors", "scores", "order"),
            *("ties", "duplicates", "failures"),
        ],
        "fine",
    )
    assert report.problems == 0


def test_the_same_audit_says_the_same() -> None:
    """Nothing in it depends on the clock or on luck."""
    assert report_on(good).as_data() == report_on(good).as_data()


def test_min_max_scores_are_recognised() -> None:
    """The best is 1 and the worst 0 for whatever is asked, and k moves the rest."""

    def search(question: str, k: int) -> list[Result]:
        scored = sorted(
            ((overlap(question, t) + n / 1e6, str(n), t) for n, t in enumerate(TEXTS)),
            reverse=True,
        )[:k]
        low, high = scored[-1][0], scored[0][0]
        return [(i, t, (s - low) / (high - low)) for s, i, t in scored]

    found = report_on(search).of("scores")

    assert found.severity is Severity.PROBLEM
    assert any("min-max" in expected for expected in found.details)
    assert any("depend on k" in expected for expected in found.details)
    assert found.numbers["best_is_always"] == 1.0
    floors = report_on(search).of("floors")
    assert floors.severity is Severity.PROBLEM
    assert floors.numbers["auroc"] == 0.5
    assert floors.numbers["refused_by_it"] == 0


def test_scores_of_places_are_recognised() -> None:
    """As reciprocal ranks are: every question has the same scores."""

    def search(question: str, k: int) -> list[Result]:
        hits = enumerate(good(question, k), start=1)
        return [(i, text, 1 / (60 + place)) for place, (i, text, _) in hits]

    details = report_on(search).of("scores").details

    assert any("only the place" in expected for expected in details)


def test_distances_are_recognised() -> None:
    """Smaller is better, and a floor is a ceiling."""

    def search(question: str, k: int) -> list[dict[str, Any]]:
        everything = [
            (1 - overlap(question, t) + n / 1e6, n) for n, t in enumerate(TEXTS)
        ]
        return [
            {"id": n, "text": TEXTS[n], "distance": d}
            for d, n in sorted(everything)[:k]
        ]

    report = report_on(search)

    assert report.of("scores").numbers["direction"] == "smaller"
    assert "smaller is better, called 'distance'" in report.of("scores").headline
    assert report.of("floors").severity is Severity.WARNING
    assert report.of("floors").numbers["refused_by_it"] >= 15


def test_an_order_that_is_not_the_scores_is_a_warning() -> None:
    """Larger is mostly better, but two places are swapped."""

    def search(question: str, k: int) -> list[Result]:
        first, second, *rest = good(question, k)
        return [second, first, *rest][:k]

    found = report_on(search).of("scores")

    assert found.severity is Severity.WARNING
    assert found.numbers["direction"] == "larger"
    assert found.numbers["not_sorted"] == len(QUESTIONS)


def test_scores_that_are_no_numbers_are_counted() -> None:
    """None and NaN, each with how many."""

    def search(question: str, k: int) -> list[Any]:
        first, *rest = good(question, k)
        return [(*first[:2], math.nan), *((i, text, None) for i, text, _ in rest)]

    found = report_on(search).of("scores")

    assert found.severity is Severity.PROBLEM
    assert found.numbers["not_finite"] == len(QUESTIONS)
    assert found.numbers["without_score"] == found.numbers["results"] - len(QUESTIONS)
    assert found.numbers["changed_by_k"] == 0
    assert found.headline == "No score is a number."


def test_texts_without_scores_are_a_warning() -> None:
    """A good answer looks like a bad one."""
    report = report_on(lambda question, k: [hit[1] for hit in good(question, k)])

    assert report.of("scores").severity is Severity.WARNING
    assert report.of("ties").severity is Severity.SKIPPED


def test_an_order_that_flips_from_run_to_run_is_found() -> None:
    """Every other call turns the first two around."""
    turns = itertools.count()

    def search(question: str, k: int) -> list[Result]:
        hits = good(question, k)
        return hits[1::-1] + hits[2:] if next(turns) % 3 == 0 else hits

    found = report_on(search).of("order")

    assert found.severity is Severity.PROBLEM
    assert found.numbers["flips_across_runs"] > 0
    assert "asked again" in found.details[0].lower()


def test_a_top_that_changes_with_k_is_found() -> None:
    """Asked for more, it ranks differently."""

    def search(question: str, k: int) -> list[Result]:
        return good(question, k)[::-1]

    found = report_on(search).of("order")

    assert found.numbers["flips_across_k"] == len(QUESTIONS)
    assert found.numbers["flips_across_runs"] == 0


def test_ids_that_change_from_call_to_call_are_found() -> None:
    """The texts are the same, but they cannot be cited."""
    fresh = itertools.count()

    def search(question: str, k: int) -> list[Result]:
        return [(str(next(fresh)), text, s) for _, text, s in good(question, k)]

    found = report_on(search).of("order")

    assert found.severity is Severity.PROBLEM
    assert found.numbers["flips_across_ids"] == len(QUESTIONS)
    assert found.numbers["flips_across_runs"] == 0


def test_a_tie_through_the_cut_is_found() -> None:
    """Places k and k + 1 have the same score."""

    def search(question: str, k: int) -> list[Result]:
        return [(i, text, round(s, 1)) for i, text, s in good(question, k)]

    found = report_on(search).of("ties")

    assert found.severity is Severity.PROBLEM
    assert found.numbers["tied_at_the_cut"] > 0


def test_repeats_are_counted_and_other_numbers_are_other_facts() -> None:
    """Exact and near; the offices differ by their hours and are no repeats."""

    def search(question: str, k: int) -> list[Result]:
        hits = good(question, k)
        _, text, score = hits[0]
        copies = [("copy", text, score), ("near", f"{text}!!", score)]
        return [*hits[:1], *copies, *hits[1:]][:k]

    found = report_on(search).of("duplicates")

    assert found.severity is Severity.PROBLEM
    assert found.numbers["exact_or_near"] == 2 * len(QUESTIONS)


def test_a_lost_near_match_is_found() -> None:
    """A retriever that leaves out what is too good is caught by its own words."""

    def search(question: str, k: int) -> list[Result]:
        return [hit for hit in good(question, 99) if hit[2] < 0.8][:k]

    found = report_on(search).of("near matches")

    assert found.severity is Severity.PROBLEM
    assert found.numbers["lost_verbatim"] > 0
    assert "Lost, for example: 'The" in found.details[0]


def test_a_near_match_that_is_not_first_is_a_warning() -> None:
    """It is there, behind something else."""

    def search(question: str, k: int) -> list[Result]:
        hits = good(question, k)
        return [("banner", "Subscribe to our newsletter today", 9.0), *hits][:k]

    assert report_on(search).of("near matches").severity is Severity.WARNING


def test_questions_that_fail_are_counted() -> None:
    """Their exception and line are reported; the others are audited."""

    def search(question: str, k: int) -> list[Result]:
        if "Kiel" in question:
            raise KeyError("kiel")
        return good(question, k)

    found = report_on(search).of("failures")

    assert found.severity is Severity.PROBLEM
    assert "raised KeyError: 'kiel' (" in found.details[0]
    assert "test_audit.py, line" in found.details[0]


def test_a_retriever_without_k_is_asked_without() -> None:
    """What depends on k is left out."""
    report = report_on(lambda question: good(question, 4))

    assert report.of("order").headline == (
        "The same question gets the same order, on threads too."
    )


@pytest.mark.parametrize("name", ["top_k", "limit", "n_results"])
def test_k_may_have_another_name(name: str) -> None:
    """By keyword, as the function calls it."""
    scope: dict[str, Any] = {"good": good}
    exec(f"def search(q, *, {name}=3):\n    return good(q, {name})", scope)  # noqa: S102 -- ours

    assert report_on(scope["search"]).problems == 0


def test_a_coroutine_is_awaited() -> None:
    """An async function is a retriever too."""

    async def search(question: str, k: int) -> list[Result]:
        await asyncio.sleep(0)
        return good(question, k)

    assert report_on(search).problems == 0


def test_a_retriever_of_a_framework_is_asked_by_its_method(base: KnowledgeBase) -> None:
    """LangChain's invoke, here of our own retriever, which passes."""
    from kept.doors.langchain import KeptRetriever  # noqa: PLC0415 -- only here

    for text in TEXTS:
        base.add(text)

    report = report_on(KeptRetriever(base=base, k=4))

    assert report.retriever.endswith("invoke")
    assert severities(report)["floors"] == "fine"
    assert severities(report)["order"] == "fine"
    assert severities(report)["near matches"] == "fine"


def test_a_knowledge_base_of_ours_can_be_audited(base: KnowledgeBase) -> None:
    """It refuses what is off topic and keeps its order, on threads and for any k."""
    for text in TEXTS:
        base.add(text)

    report = report_on(base)

    assert severities(report)["floors"] == "fine"
    assert severities(report)["order"] == "fine"
    assert severities(report)["near matches"] == "fine"
    assert severities(report)["duplicates"] == "fine"


@pytest.fixture
def base(make_base: Callable[..., KnowledgeBase]) -> KnowledgeBase:
    """Return an empty knowledge base that cites generously: few results say little."""
    base = make_base()
    base.override({"cite": "generous"})
    return base


def test_a_retriever_that_never_answers_is_refused() -> None:
    """With its own words."""

    def search(question: str, k: int) -> list[Result]:
        raise ConnectionError(question)

    with pytest.raises(InputError, match="raised ConnectionError: When does"):
        report_on(search)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda: audit(good, []), "there are no questions"),
        (lambda: audit(good, ["a"], k=0), "k is 0"),
        (lambda: audit(good, ["a"], effort=QuestioningEffort(runs=1)), "runs is 1"),
        (lambda: audit(3, ["a"]), "cannot be called"),
        (lambda: audit(dict, ["a"]), "dict is a class; expected an instance"),
    ],
)
def test_what_cannot_be_audited_is_refused(
    call: Callable[[], RetrieverReport], expected: str
) -> None:
    """What was met, and what was expected."""
    with pytest.raises(InputError, match=expected):
        call()


def test_the_report_is_json_and_a_page() -> None:
    """Numbers are plain, and what a retriever says cannot break the page."""
    report = report_on(lambda question, k: [("<b>bold</b> & more words in it", 1.0)])

    json.dumps(report.as_data(), allow_nan=False)
    page = as_html(report)
    assert page.startswith("<!doctype html>")
    assert "<b>" not in page


def test_scores_that_grow_with_the_question_are_a_warning() -> None:
    """A sum over the words of a question is no measure of its best answer."""
    words = ["opens", "closes", "Monday", "Tuesday", "holiday", "summer", "winter"]
    longer = [
        " ".join(["office", *words[:n], town]) for n in range(7) for town in TOWNS
    ]

    def search(question: str, k: int) -> list[Result]:
        count = len(question.split())
        return [(i, text, score + count) for i, text, score in good("office the", k)]

    found = audit(search, longer, k=4, effort=QuestioningEffort(runs=2)).of("scores")

    assert found.severity is Severity.WARNING
    assert found.numbers["correlation_with_length"] > 0.9
    assert "grow with the length of the question" in found.details[0]


def test_ids_alone_leave_the_texts_unchecked() -> None:
    """Nothing can be asked for in its own words, and nothing repeats another."""
    report = report_on(lambda question, k: [{"id": str(n)} for n in range(k)])

    assert report.of("near matches").severity is Severity.SKIPPED
    assert report.of("duplicates").severity is Severity.SKIPPED


def test_a_result_without_text_repeats_nothing() -> None:
    """Two of them beside a text are no repeats."""
    bare = [{"id": "x", "score": 0.1}, {"id": "y", "score": 0.0}]

    def search(question: str, k: int) -> list[Any]:
        return [*good(question, k - 2), *bare]

    assert report_on(search).of("duplicates").severity is Severity.FINE


def test_nothing_at_all_is_left_unjudged() -> None:
    """A retriever that refuses everything has no scores, and a floor that fires."""
    report = report_on(lambda question, k: [])

    assert report.of("scores").severity is Severity.SKIPPED
    assert report.of("floors").severity is Severity.FINE


def test_scores_divided_by_the_best_are_recognised() -> None:
    """The best is always the same, though the worst is not 0."""

    def search(question: str, k: int) -> list[Result]:
        hits = good(question, k)
        return [(i, text, score / hits[0][2]) for i, text, score in hits]

    [expected] = report_on(search).of("scores").details

    assert expected.startswith(
        "They are relative: in 8 of 8 questions the best is exactly 1"
    )


def test_a_function_without_a_signature_is_given_k() -> None:
    """As those of compiled modules are; its failure is reported as its own."""
    with pytest.raises(InputError, match="max raised TypeError"):
        audit(max, ["a question"])
