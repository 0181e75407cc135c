"""Relevance: a probability that depends on a candidate's own signals alone."""

import timeit
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kept.errors import InputError, MissingSignalError
from kept.kernel.calibration import Calibration, Curve, shipped
from kept.kernel.model import Candidate, Chunk, Document
from kept.knowledge_base.base import KnowledgeBase

IDS = ["minilm-int8-v1:384", "hash-v1:512", "openai:text-embedding-3-small:1536"]
SIGNALS = ("cosine", "coverage", "bm25_share", "focus", "strength")
TEXTS = [
    "The Leeds office opens at eight and closes at six.",
    "Invoice INV-49302 was paid on 3 March after a reminder.",
    "The pump of model TW-C235 costs 410 euro without tax.",
    "Employees have 28 days of leave, and five more after ten years.",
    "A lost laptop is reported to security within one hour.",
    "Travel by train is booked in second class, abroad too.",
]

shares = st.floats(0.0, 1.0).map(lambda x: round(x, 6))
cosines = st.floats(-1.0, 1.0).map(lambda x: round(x, 6))


def candidate(**signals: float) -> Candidate:
    """Return a candidate with these signals, the strength from two of them."""
    given_signals = {name: signals.get(name, 0.0) for name in SIGNALS}
    given_signals["strength"] = max(given_signals["cosine"], given_signals["focus"])
    document = Document(id="d")
    return Candidate(
        chunk=Chunk(id="d:0", document_id="d", ord=0, text="text"),
        document=document,
        score=0.0,
        signals=given_signals,
    )


def relevance(calibration: Calibration, **signals: float) -> float:
    """Return the relevance of one candidate."""
    [found] = calibration((candidate(**signals),))
    return found.signal("relevance")


@pytest.mark.parametrize("embedder", IDS)
@given(
    less=st.fixed_dictionaries(
        {"cosine": cosines, "coverage": shares, "focus": shares}
    ),
    more=st.floats(0.0, 1.0),
    what=st.sampled_from(["cosine", "coverage", "focus"]),
)
def test_more_evidence_never_lowers_relevance(
    embedder: str, less: dict[str, float], more: float, what: str
) -> None:
    """Relevance never falls as the cosine, the coverage or the focus grows."""
    calibration = shipped(embedder)
    raised = {**less, what: min(1.0, less[what] + more)}

    assert relevance(calibration, **raised) >= relevance(calibration, **less)


@pytest.mark.parametrize("embedder", IDS)
@given(cosine=cosines, coverage=shares, focus=shares)
def test_relevance_is_a_probability(
    embedder: str, cosine: float, coverage: float, focus: float
) -> None:
    """It lies between 0 and 1, whatever is measured."""
    found = relevance(shipped(embedder), cosine=cosine, coverage=coverage, focus=focus)

    assert 0.0 <= found <= 1.0


@given(pool=st.lists(st.tuples(cosines, shares, shares), min_size=1, max_size=20))
def test_the_other_candidates_change_nothing(
    pool: list[tuple[float, float, float]],
) -> None:
    """A candidate has the same relevance alone and in any company."""
    calibration = shipped(IDS[0])
    candidates = tuple(
        candidate(cosine=cosine, coverage=coverage, focus=focus)
        for cosine, coverage, focus in pool
    )

    together = calibration(candidates)
    alone = [calibration((c,))[0] for c in candidates]

    assert [c.signal("relevance") for c in together] == [
        c.signal("relevance") for c in alone
    ]


def test_k_and_depth_change_nothing(
    make_base: Callable[..., KnowledgeBase], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same chunk and question have the same relevance at any k and depth."""
    base = make_base()
    for text in TEXTS:
        base.add(text)

    def relevances(k: int, depth: int) -> dict[str, float]:
        monkeypatch.setenv("KEPT_DEPTH", str(depth))
        selection = base.search("When does the Leeds office open?", k=k).selection
        found = (*selection.candidates, *selection.dropped)
        return {c.id: c.signal("relevance") for c in found}

    wide = relevances(8, 50)

    for k, depth in ((1, 1), (1, 50), (3, 2), (8, 3)):
        narrow = relevances(k, depth)
        assert narrow
        assert narrow.items() <= wide.items()


def test_every_other_signal_and_the_score_stay() -> None:
    """Calibration adds one signal and changes nothing else."""
    before = candidate(cosine=0.5, coverage=0.5, focus=0.2)

    [after] = shipped(IDS[0])((before,))

    assert after.signals == {**before.signals, "relevance": after.signal("relevance")}
    assert replace(after, signals=before.signals) == before


def test_nothing_in_nothing_out() -> None:
    """An empty pool stays empty."""
    assert shipped(IDS[0])(()) == ()


def test_a_missing_signal_is_named() -> None:
    """A store that does not measure a signal of the calibration raises an error."""
    bare = replace(candidate(), signals={"cosine": 0.5})

    with pytest.raises(MissingSignalError, match="coverage"):
        shipped(IDS[0])((bare,))


def test_relevance_is_set_once() -> None:
    """A second calibration of the same candidates is a mistake."""
    calibration = shipped(IDS[0])
    once = calibration((candidate(),))

    with pytest.raises(ValueError, match="relevance"):
        calibration(once)


@pytest.mark.parametrize(
    ("knots", "values", "problem"),
    [
        ((0.0, 1.0), (0.0, -1.0), "values that fall"),
        ((0.0, 0.0), (0.0, 1.0), "knots that do not rise"),
        ((0.0,), (0.0,), "1 knots"),
        ((0.0, 1.0), (0.0,), "2 knots and 1 values"),
        ((0.0, 1.0), (0.0, float("nan")), "not finite"),
    ],
)
def test_a_curve_that_could_mislead_is_refused(
    knots: tuple[float, ...], values: tuple[float, ...], problem: str
) -> None:
    """Curves rise, and say where they are broken."""
    with pytest.raises(InputError, match=problem):
        Curve("cosine", knots, values)


def test_a_curve_is_level_beyond_its_ends() -> None:
    """Nothing is extrapolated."""
    curve = Curve("cosine", (0.2, 0.6), (0.0, 2.0))

    assert curve(np.array([-1.0, 0.2, 0.4, 0.6, 1.0])).tolist() == [0, 0, 1, 2, 2]


def test_the_id_changes_with_every_number() -> None:
    """Two calibrations that could differ in an answer have different ids."""
    one = Calibration("one", "hash-", -1.0, (Curve("cosine", (0.0, 1.0), (0.0, 1.0)),))

    changed = [
        replace(one, intercept=-1.000001),
        replace(one, embedder="minilm-"),
        replace(one, other_scripts=one),
        replace(one, curves=(Curve("cosine", (0.0, 1.0), (0.0, 1.000001)),)),
        replace(one, curves=(Curve("coverage", (0.0, 1.0), (0.0, 1.0)),)),
    ]

    assert len({one.id, *(each.id for each in changed)}) == 1 + len(changed)
    assert replace(one, provenance={"date": "2026-11-16"}).id == one.id


@pytest.mark.parametrize(
    "question",
    ["Ποιο βουνό είναι το ψηλότερο;", "Кто написал роман?", "非洲最高的山", "ما هو؟"],
)
def test_words_are_judged_in_an_unknown_script(question: str) -> None:
    """To an English model all Greek is alike: a cosine of .85 alone says nothing."""
    calibration = shipped("minilm-int8-v1:384")

    [far, near] = calibration(
        (
            candidate(cosine=0.85),
            candidate(cosine=0.1, coverage=0.5, bm25_share=0.35),
        ),
        question,
    )

    other = calibration.other_scripts
    assert other is not None
    assert (far.signal("meaning"), near.signal("meaning")) == (0.0, 0.1)
    assert far.signal("relevance") == relevance(other, bm25_share=0.0)
    assert near.signal("relevance") == relevance(other, bm25_share=0.35)
    assert far.signal("relevance") < calibration.floors["generous"]


@pytest.mark.parametrize("embedder", IDS)
def test_a_question_in_latin_script_is_weighed_by_its_cosine(embedder: str) -> None:
    """German, and letters of another script among others, change nothing."""
    calibration, pool = shipped(embedder), (candidate(cosine=0.85),)

    plain = calibration(pool)

    assert calibration(pool, "Größe der β-Synuclein-Probe?") == plain
    if not embedder.startswith("minilm"):
        assert calibration(pool, "Кто написал роман?") == plain


def test_a_hundred_candidates_are_calibrated_quickly() -> None:
    """One query's calibration takes well under a millisecond."""
    pool = tuple(
        candidate(cosine=i / 100, coverage=i / 100, focus=i / 200) for i in range(100)
    )
    calibration = shipped(IDS[0])

    fastest = min(timeit.repeat(lambda: calibration(pool), number=10, repeat=20)) / 10

    assert fastest < 0.001
