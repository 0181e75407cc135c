"""Grants: deterministic order, trimmed to a budget of tokens."""

from kept.kernel.model import Query
from kept.kernel.presets import Parts, preset
from kept.testing.tables import candidates


def chosen(pool: str, **settings: object) -> list[str]:
    """Return the ids that the grants preset selects, in order."""
    grants = preset("grants")
    plan = grants.plan(grants.configure(settings), Parts(0.1))
    return [c.id for c in plan.pipeline(Query(text="q"), candidates(pool)).candidates]


def test_retrieval_sorts_by_cosine_then_chunk_id() -> None:
    """Sort: score desc, then chunk id to guarantee stability."""
    assert chosen("b 0.5\nc 0.9\na 0.5") == ["c", "a", "b"]


def test_the_budget_trims_to_the_requested_limit() -> None:
    """Token budget trimming ensures cumulative token_len <= requested limit."""
    pool = "a 0.9 tokens=40\nb 0.8 tokens=40\nc 0.7 tokens=40"

    assert chosen(pool, token_budget=80) == ["a", "b"]
    assert chosen(pool, token_budget=79) == ["a"]


def test_a_planner_can_reserve_budget_by_section() -> None:
    """Roadmap 3: tag chunks and allow the planner to reserve budget by tag."""
    pool = """
        a 0.9 tokens=50 tags=background
        b 0.8 tokens=50 tags=background
        c 0.2 tokens=40 tags=eligibility
    """

    plain = chosen(pool, token_budget=100)
    reserved = chosen(pool, token_budget=100, reserved_shares={"eligibility": 0.4})

    assert plain == ["a", "b"]
    assert reserved == ["a", "c"]


def test_a_similarity_threshold_of_one_is_accepted() -> None:
    """RAG_SIMILARITY_THRESHOLD: passing 1.0 leaves only the exact check."""
    settings = preset("grants").configure({"RAG_SIMILARITY_THRESHOLD": 1.0})

    assert settings.model_dump()["similarity_threshold"] == 1.0
