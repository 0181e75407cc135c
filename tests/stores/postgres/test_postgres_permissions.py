"""Permissions in the PostgreSQL store, by row-level security."""

from hypothesis import HealthCheck, given, settings

from kept.text.access import Principal
from permission_cases import Make, check, documents, principals, questions


@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(documents, principals, questions)
def test_what_may_not_be_read_is_as_if_it_was_not_there(
    make_base: Make,
    declared: list[tuple[str, list[str] | None]],
    asker: Principal,
    question: str,
) -> None:
    """All that one reads is what a base of the readable documents alone shows."""
    check(make_base, declared, asker, question)
