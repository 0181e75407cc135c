"""Protection: who is shielded, and on which numbers."""

import pytest

from kept.errors import MissingSignalError, SettingsError
from kept.kernel.model import Query
from kept.kernel.pool import Pool
from kept.kernel.stages import ProtectKeywordHit, ProtectNearMatches
from kept.testing.tables import candidates, decisions_in

QUERY = Query(text="q")


def test_a_candidate_at_the_very_distance_is_protected() -> None:
    """The bound is inclusive, and the evidence holds both sides of it."""
    pool = candidates("""
        a 0.95
        b 0.90
        c 0.8999
    """)

    outcome = ProtectNearMatches(0.10)(QUERY, pool)

    assert [c.id for c in outcome.kept if c.protected] == ["a", "b"]
    assert decisions_in(outcome) == [
        ("a", "protected", "near_match", {"distance": 0.05, "at_most": 0.1}),
        ("b", "protected", "near_match", {"distance": 0.1, "at_most": 0.1}),
    ]


def test_nearness_that_was_not_read_protects_only_where_words_bear_it_out() -> None:
    """In a script unknown to the embedder, near alone is no near match."""
    pool = candidates("""
        a 0.95 meaning=0.2
        b 0.95 meaning=0.9
        c 0.95
    """)

    for borne_out, protected in ((True, ["b", "c"]), (False, ["a", "b", "c"])):
        outcome = ProtectNearMatches(0.10, borne_out=borne_out)(QUERY, pool)
        assert [c.id for c in outcome.kept if c.protected] == protected


def test_with_nothing_near_the_pool_passes_untouched() -> None:
    """No near match leaves no trace."""
    pool = candidates("a 0.5")

    outcome = ProtectNearMatches(0.10)(QUERY, pool)

    assert outcome.pool is pool
    assert decisions_in(outcome) == []


def test_a_candidate_without_a_distance_is_an_error_not_far() -> None:
    """A missing measurement is never read as a number."""
    [candidate] = candidates("a 0.5")
    bare = type(candidate)(
        chunk=candidate.chunk, document=candidate.document, score=0.5
    )

    with pytest.raises(MissingSignalError, match="chunk a has no signal 'distance'"):
        ProtectNearMatches(0.10)(QUERY, Pool.of([bare]))


def test_only_the_strongest_keyword_hit_is_protected() -> None:
    """At most one, at the bound inclusive; ties go to the lower chunk id."""
    pool = candidates("""
        a 0.9 bm25=3 keyword_norm=0.5
        c 0.8 bm25=3 keyword_norm=0.5
        b 0.7 bm25=1 keyword_norm=0.1
    """)

    outcome = ProtectKeywordHit(0.5)(QUERY, pool)

    assert decisions_in(outcome) == [
        ("a", "protected", "keyword_match", {"keyword_norm": 0.5, "at_least": 0.5})
    ]


def test_a_weak_keyword_hit_is_not_protected() -> None:
    """Below the bound nothing is protected."""
    pool = candidates("a 0.9 bm25=3 bm25_share=0.49")

    assert ProtectKeywordHit(0.5, "bm25_share")(QUERY, pool).pool is pool


def test_what_the_keyword_leg_did_not_bring_is_no_keyword_hit() -> None:
    """A candidate of the dense leg alone is not the strongest keyword hit."""
    pool = candidates("a 0.9 bm25_share=0.9")

    assert ProtectKeywordHit(0.5, "bm25_share")(QUERY, pool).pool is pool


@pytest.mark.parametrize("distance", [-0.1, 2.1, float("nan")])
def test_an_impossible_distance_is_refused(distance: float) -> None:
    """A distance is 1 - cosine: from 0 to 2."""
    with pytest.raises(SettingsError, match=r"distance is .*expected 0 to 2"):
        ProtectNearMatches(distance)


@pytest.mark.parametrize(("score", "shielded"), [(0.81, {"n", "k"}), (0.8, {"n"})])
def test_a_keyword_hit_above_all_near_matches_is_protected_with_them(
    score: float, shielded: set[str]
) -> None:
    """Else weaker ones that are near would take its place; a tie is not above."""
    pool = candidates(f"""
        k {score} in_keyword=1 bm25_share=0.45
        n 0.8 ! in_keyword=1 bm25_share=0.2
    """)

    plain = ProtectKeywordHit(0.5, "bm25_share")(QUERY, pool)
    outcome = ProtectKeywordHit(0.5, "bm25_share", above_near=True)(QUERY, pool)

    assert {c.id for c in plain.kept if c.protected} == {"n"}
    assert {c.id for c in outcome.kept if c.protected} == shielded


@pytest.mark.parametrize("other", ["b 0.8 in_keyword=0", "b 0.8 ! * in_keyword=0"])
def test_a_weak_keyword_hit_is_not_protected_without_near_matches(other: str) -> None:
    """No near match would take its place, and a pin is not a near match."""
    pool = candidates(f"k 0.9 in_keyword=1 bm25_share=0.45\n{other}")

    outcome = ProtectKeywordHit(0.5, "bm25_share", above_near=True)(QUERY, pool)

    assert not outcome.decisions
