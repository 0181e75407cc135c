"""The deterministic support check, sentence by sentence."""

import os
import runpy
from pathlib import Path

import pytest

from kept.models.embedders.hash import HashEmbedder
from kept.search.answer.support import SentenceSupport, support

ROOT = Path(__file__).parents[3]
DATA = Path(os.environ.get("KEPT_DATA", ROOT.parent / "shared" / "data"))
PASSAGE = (
    "The grant pays up to 1,250.00 euros for three years. "
    "Applications from Ghana are not accepted. The office is in Lisbon."
)


def checked(answer: str, *passages: str) -> SentenceSupport:
    """Return the verdict on an answer of one sentence."""
    [sentence] = support(answer, passages or (PASSAGE,)).sentences
    return sentence


def test_a_verbatim_sentence_is_supported() -> None:
    """What is copied is carried in full."""
    found = checked("The office is in Lisbon. [1]")

    assert (found.judgement, found.score, found.cited) == ("supported", 1.0, True)
    assert found.passages == (1,)


def test_a_sentence_is_held_against_what_it_cites() -> None:
    """A true sentence with the wrong marker is not supported by its source."""
    right = checked("The office is in Lisbon [2].", "Cats sleep all day.", PASSAGE)
    wrong = checked("The office is in Lisbon [1].", "Cats sleep all day.", PASSAGE)

    assert (right.judgement, wrong.judgement) == ("supported", "unsupported")


def test_a_sentence_without_a_marker_is_held_against_all() -> None:
    """It may be true, but it does not say where from."""
    found = checked("The office is in Lisbon.", "Cats sleep all day.", PASSAGE)

    assert (found.judgement, found.cited, found.passages) == (
        "supported",
        False,
        (1, 2),
    )
    assert not support("The office is in Lisbon.", [PASSAGE]).grounded


@pytest.mark.parametrize(
    ("answer", "missing"),
    [
        ("The grant pays up to 1250 euros for 3 years [1].", ()),
        ("The grant pays up to 1,250 euros for three years [1].", ()),
        ("The grant pays up to 1.250,00 euros [1].", ()),
        ("The grant pays up to 2,250 euros for three years [1].", ("2250",)),
        ("The grant pays up to 1,250 euros for five years [1].", ("5",)),
    ],
)
def test_numbers_are_compared_by_value(answer: str, missing: tuple[str, ...]) -> None:
    """Separators and number words do not matter; another number does."""
    found = checked(answer)

    assert found.missing_numbers == missing
    assert (found.judgement == "supported") is not bool(missing)


def test_a_name_that_no_source_has_costs() -> None:
    """A swapped name is noticed."""
    found = checked("The grant office is in Madrid [1].")

    assert found.missing_names == ("Madrid",)
    assert found.score < checked("The grant office is in Lisbon [1].").score


@pytest.mark.parametrize(
    ("answer", "denial"),
    [
        ("Applications from Ghana are accepted [1].", True),
        ("Applications from Ghana aren't accepted [1].", False),
        ("The office is not in Lisbon [1].", True),
    ],
)
def test_saying_the_opposite_is_noticed(answer: str, *, denial: bool) -> None:
    """The same words with a denial on one side only are no support."""
    found = checked(answer)

    assert found.denial is denial
    assert (found.judgement == "supported") is not denial


@pytest.mark.parametrize(
    "answer",
    [
        "I'm sorry, I cannot find that.",
        "The passages do not mention the fee.",
        "Would you like to know more about the grant?",
        "Yes.",
        "Let me know about other questions.",
    ],
)
def test_what_claims_nothing_is_not_counted(answer: str) -> None:
    """Courtesies, questions and refusals are neither true nor false."""
    found = support(answer, [PASSAGE])

    assert [s.judgement for s in found.sentences] == ["no_claim"]
    assert found.faithfulness is None


def test_faithfulness_is_the_weighted_mean_of_claims() -> None:
    """Half of the words supported, half not; the courtesy does not count."""
    found = support(
        "The office is in Lisbon. [1] Bananas ripen quickly. [1] I hope that helps!",
        [PASSAGE],
    )

    claims = [s for s in found.sentences if s.judgement != "no_claim"]
    assert [s.score for s in claims] == [1.0, 0.0]
    total = sum(s.weight for s in claims)
    assert found.faithfulness == pytest.approx(claims[0].weight / total, abs=1e-9)


def test_markers_after_the_full_stop_belong_to_the_sentence_before() -> None:
    """Both habits of writing are read alike."""
    found = support(
        "The office is in Lisbon. [2] Cats sleep. [1]", ["Cats sleep.", PASSAGE]
    )

    assert [s.passages for s in found.sentences] == [(2,), (1,)]


def test_without_passages_nothing_is_supported() -> None:
    """An answer from nowhere scores 0."""
    found = support("The office is in Lisbon.", [])

    assert found.faithfulness == 0.0
    assert found.sentences[0].judgement == "unsupported"


def test_an_empty_answer_claims_nothing() -> None:
    """Nothing said, nothing to check."""
    assert support("", [PASSAGE]).faithfulness is None


def test_an_embedder_adds_nearness() -> None:
    """The cosine with the nearest cited sentence joins the score."""
    found = support("The office is in Lisbon. [1] Yes.", [PASSAGE, " "], HashEmbedder())

    assert found.sentences[0].cosine == pytest.approx(1.0)
    assert found.sentences[0].score == pytest.approx(1.0)
    assert support("", [PASSAGE], HashEmbedder()).sentences == ()


@pytest.mark.evaluation_data
def test_the_check_agrees_with_human_votes() -> None:
    """On mtrag the score separates unfaithful answers from faithful ones."""
    if not (DATA / "mtrag").exists():
        pytest.skip("needs mtrag in the folder named by KEPT_DATA")
    benchmark = runpy.run_path(str(ROOT / "benchmarks" / "faithfulness.py"))

    figures = benchmark["agreement"](benchmark["scored"](DATA / "mtrag", None))

    assert figures["spearman"] > 0.5
    assert figures["auroc_below_4"] > 0.78
    assert figures["auroc_at_most_2"] > 0.84
