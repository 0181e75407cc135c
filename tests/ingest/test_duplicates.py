"""Duplicates: which two texts are one, and which only look it."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kept.ingest.duplicates import (
    NOTED_MISSES,
    NOTED_REJECTED,
    Comparing,
    DuplicateRules,
    DuplicateVerdict,
    Opening,
    near_duplicate,
)
from kept.models.embedders.hash import HashEmbedder

EMBEDDER = HashEmbedder()
RULES = DuplicateRules(cosine=0.90)
CLAUSES = " ".join(
    f"Clause {i}: the beneficiary reports indicator {i} to the office."
    for i in range(40)
)


def opening(document_id: str, text: str, vector: np.ndarray | None = None) -> Opening:
    """Return how a document begins, embedded unless a vector is given."""
    if vector is None:
        [vector] = EMBEDDER.embed([text])
    return Opening(document_id=document_id, text=text, vector=vector)


def judged(
    text: str, other: str, rules: DuplicateRules = RULES, chars: int = 800
) -> DuplicateVerdict:
    """Hold *text* against one other document."""
    return near_duplicate(
        opening("new", text[:chars]),
        text,
        [opening("old", other[:chars])],
        rules,
        lambda _: other,
    )


def test_a_text_with_a_word_appended_is_the_same_by_its_prefix() -> None:
    """The shorter opening is a prefix and fewer than 32 characters are added."""
    verdict = judged("A short note on rain." + " Impact.", "A short note on rain.")

    assert verdict.match is not None
    assert (verdict.match.document_id, verdict.match.rule) == ("old", "prefix")
    assert verdict.match.evidence["delta_chars"] == 8


@pytest.mark.parametrize(("added", "same"), [(31, True), (32, False)])
def test_the_prefix_rule_ends_at_32_characters(added: int, same: bool) -> None:  # noqa: FBT001
    """31 added characters are a trifle, 32 are not."""
    text = "A short note on rain."
    verdict = judged(text + "x" * added, text, DuplicateRules(cosine=0.999))

    assert (verdict.match is not None) is same


def test_a_small_change_is_the_same_by_cosine() -> None:
    """Openings whose cosine reaches the threshold, confirmed on the whole text."""
    verdict = judged(CLAUSES.replace("Clause 7:", "the clause 7 \u2013"), CLAUSES)

    assert verdict.match is not None
    assert verdict.match.rule == "cosine"
    assert verdict.match.evidence["cosine"] >= 0.90
    assert verdict.match.evidence["whole_text"] > 0.95


def test_just_below_the_threshold_the_edit_distance_decides() -> None:
    """A cosine in [t - 0.02, t) is enough if more than 95 % of letters agree."""
    text, other = "rain " * 19 + "Rain", "Rain " + "rain " * 18 + "rain"
    below = np.array([0.96, (1 - 0.96**2) ** 0.5], dtype=np.float32)
    unit = np.array([1.0, 0.0], dtype=np.float32)

    verdict = near_duplicate(
        opening("new", text, unit),
        text,
        [opening("old", other, below)],
        DuplicateRules(cosine=0.97),
        lambda _: other,
    )

    assert verdict.match is not None
    assert (verdict.match.rule, verdict.match.similarity) == (
        "edit_distance",
        0.979797980,
    )


def test_below_the_band_nothing_is_merged() -> None:
    """A cosine under t - 0.02 is a rejected pair, however alike the letters."""
    text, other = "a" * 99 + "b", "c" + "a" * 99
    far = np.array([0.94, (1 - 0.94**2) ** 0.5], dtype=np.float32)
    unit = np.array([1.0, 0.0], dtype=np.float32)

    verdict = near_duplicate(
        opening("new", text, unit),
        text,
        [opening("old", other, far)],
        DuplicateRules(cosine=0.97),
        lambda _: other,
    )

    assert verdict.match is None
    assert [(s.rule, s.accepted) for s in verdict.compared] == [("cosine", False)]


def test_a_shared_opening_is_not_a_shared_document() -> None:
    """The original threw the second document's remainder away; this notes a miss."""
    one = CLAUSES[:900] + " Annex on solar roofs. " * 60
    two = CLAUSES[:900] + " Annex on river barges. " * 60

    verdict = judged(two, one)

    assert verdict.match is None
    [miss] = verdict.near_misses
    assert (miss["document_id"], miss["rule"]) == ("old", "prefix")
    assert miss["whole_text"] < miss["whole_text_above"]


def test_changed_numbers_keep_two_revisions_apart() -> None:
    """A deadline that moved is another fact, however alike the rest."""
    old = CLAUSES + " The deadline is 15 March 2026 and the budget 200,000 euro."
    new = old.replace("15 March", "30 April")

    assert judged(new, old).match is None
    assert judged(new, old).near_misses[0]["differs_in"] == [
        *("15", "march"),
        *("30", "april"),
    ]
    reworded = DuplicateRules(cosine=0.90, reworded=True)
    assert judged(new, old, reworded).match is None


@pytest.mark.parametrize(
    ("before", "after", "changed"),
    [
        ("from 40 to 60 percent", "from 60 to 40 percent", ["40", "to"]),
        ("until 15 March 2026", "until 15 April 2026", ["march", "april"]),
        ("until May 15, 2026", "until June 15, 2026", ["may", "june"]),
        ("by the 1st March", "by the 1st May", ["march", "may"]),
        ("bis 15. März 2026", "bis 15. Mai 2026", ["märz", "mai"]),
    ],
)
def test_numbers_that_changed_places_and_months_keep_apart_too(
    before: str, after: str, changed: list[str]
) -> None:
    """The same numbers in another order, or of another month, are another fact."""
    old = f"{CLAUSES} It runs {before}, as agreed."

    verdict = judged(old.replace(before, after), old)

    assert verdict.match is None
    assert verdict.near_misses[0]["differs_in"] == changed


@pytest.mark.parametrize(
    ("added", "same"),
    [(" Page 7 of 9.", True), (" Impact.", True), (" Paid in March 2027.", False)],
)
def test_numbers_that_are_added_keep_apart_unless_a_printer_added_them(
    added: str,
    same: bool,  # noqa: FBT001
) -> None:
    """A new date could never be cited if the text was taken for the old one."""
    assert (judged(CLAUSES + added, CLAUSES).match is not None) is same


def test_the_first_of_the_given_order_that_passes_wins() -> None:
    """Candidates come newest first, and the order decides, not the best score."""
    text = "The pump runs at night and rests by day."
    others = [opening("newest", text + " Ok."), opening("older", text)]

    verdict = near_duplicate(
        opening("new", text),
        text,
        others,
        RULES,
        lambda i: {"newest": text + " Ok."}.get(i, text),
    )

    assert verdict.match is not None
    assert verdict.match.document_id == "newest"


def test_case_and_punctuation_are_ignored() -> None:
    """What was found to be near is compared without case and punctuation."""
    text, other = "THE PUMP, RUNS; AT NIGHT!", "the pump runs at night"

    assert judged(text, other, DuplicateRules(cosine=0.5)).match is not None


def test_the_mean_of_the_first_chunks_may_decide() -> None:
    """Documents of which only the intro changed are found by their mean."""
    near, far = np.eye(2, dtype=np.float32)
    mean = np.array([0.8, 0.6], dtype=np.float32)
    one = Opening(document_id="new", text="x", vector=near, mean=mean)
    two = Opening(document_id="old", text="y", vector=far, mean=mean)
    rules = DuplicateRules(cosine=0.97, mean_of=3)

    verdict = near_duplicate(one, CLAUSES, [two], rules, lambda _: CLAUSES + "!")

    assert verdict.match is not None
    assert verdict.match.evidence["mean_cosine"] == 1.0


def test_a_threshold_of_one_is_off_for_every_embedder() -> None:
    """In the original, 1.0 did not switch reuse off under the hash embedder."""
    assert not DuplicateRules(cosine=1.0).on
    assert DuplicateRules(cosine=0.999).on


def test_huge_texts_are_compared_in_linear_time() -> None:
    """Beyond a size, runs of words are compared instead of letters."""
    words = " ".join(f"word{i}" for i in range(60_000))

    assert judged(words + " Impact.", words).match is not None
    assert judged(words, words[: len(words) // 2] + " x" * 200_000).match is None


@given(st.text(min_size=1, max_size=300), st.text(min_size=200, max_size=300))
def test_unrelated_remainders_are_never_merged(head: str, tail: str) -> None:
    """Whatever the opening, a remainder that differs keeps documents apart."""
    one = head + "alpha beta gamma " * 200
    two = head + tail + "delta epsilon zeta " * 200

    verdict = near_duplicate(
        opening("new", "same"), one, [opening("old", "same")], RULES, lambda _: two
    )

    assert verdict.match is None


def notices(count: int) -> list[str]:
    """Return texts of one template that differ by a number alone."""
    notice = (
        "Dear customer, your order {} was received and is sent within three days to "
        "the address in your account. Keep this letter until the parcel is there, and "
        "ask our service, open on every working day, about anything that is missing."
    )
    return [notice.format(100_000 + i) for i in range(count)]


def test_of_many_texts_of_one_template_the_nearest_misses_are_noted() -> None:
    """What is noted of a text does not grow with those that are like it."""
    texts = notices(50)
    [new, *others] = [opening(text, text) for text in texts]

    verdict = near_duplicate(new, texts[0], others, RULES, str)

    cosines = [miss["cosine"] for miss in verdict.near_misses]
    every = [float(new.vector @ other.vector) for other in others]
    assert verdict.match is None
    assert sorted(cosines) == pytest.approx(sorted(every)[-NOTED_MISSES:])
    assert verdict.more_misses == len(others) - NOTED_MISSES
    assert [s.accepted for s in verdict.compared] == [False] * NOTED_REJECTED
    assert min(s.similarity for s in verdict.compared) == pytest.approx(
        sorted(every)[-NOTED_REJECTED]
    )


def test_misses_and_comparisons_keep_the_order_they_were_compared_in() -> None:
    """Of those equally near the first are noted, which are the newest."""
    texts = notices(30)
    others = [opening(text, text, np.ones(2, np.float32)) for text in texts[1:]]

    verdict = near_duplicate(
        opening("new", texts[0], np.ones(2, np.float32)), texts[0], others, RULES, str
    )

    noted = [miss["document_id"] for miss in verdict.near_misses]
    assert noted == texts[1 : 1 + NOTED_MISSES]


def test_the_nearest_are_chosen_by_the_cosine_of_their_openings() -> None:
    """Letters are more alike than vectors are, and do not push nearer ones out."""
    texts = notices(41)
    new, *others = (opening(text, text, np.ones(2, np.float32)) for text in texts)
    below = np.array([1.0, 0.62], dtype=np.float32)
    others = [
        replace(other, vector=below) if place % 2 else other
        for place, other in enumerate(others)
    ]

    verdict = near_duplicate(
        new, texts[0], others, DuplicateRules(cosine=0.98), text_of=str
    )

    assert [miss["rule"] for miss in verdict.near_misses] == ["cosine"] * NOTED_MISSES
    assert {s.rule for s in verdict.compared} == {"cosine"}
    assert verdict.more_misses == len(others) - NOTED_MISSES


def test_a_match_behind_many_misses_is_found_and_kept() -> None:
    """However many were rejected before, what is accepted is kept with them."""
    texts = notices(50)
    others = [opening(text, text) for text in texts[1:]]
    others.append(opening(texts[0] + " Bye.", texts[0] + " Bye."))

    verdict = near_duplicate(opening("new", texts[0]), texts[0], others, RULES, str)

    assert verdict.match is not None
    assert verdict.match.document_id == texts[0] + " Bye."
    assert [s.accepted for s in verdict.compared] == [False] * NOTED_REJECTED + [True]


def test_whole_texts_are_read_once_for_all_that_are_held_against_them() -> None:
    """Texts of one template suspect the same documents, which are not read again."""
    texts = notices(12)
    openings = [opening(text, text) for text in texts]
    read: list[str] = []

    def text_of(document_id: str) -> str:
        read.append(document_id)
        return document_id

    compared = Comparing(RULES, text_of)
    for new in openings[:6]:
        compared(new, new.text, openings[6:])

    assert sorted(read) == texts[6:]
