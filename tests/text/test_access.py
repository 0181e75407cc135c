"""Who may read a document: names in one spelling, and lists as stores keep them."""

import pytest

from kept.errors import InputError, UnreadableSourceError
from kept.text.access import Principal, acl_readers, acl_text, principal_of, reader_name
from kept.text.draft import Draft, merged


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ("hr", "group:hr"),
        (" group:hr ", "group:hr"),
        ("user:ann@example.com", "user:ann@example.com"),
        ("Everyone", "everyone"),
        ("group:everyone", "group:everyone"),
        ("group:user:ann", "group:user:ann"),
        ("Zoe\u0308", "group:Zo\u00eb"),
    ],
)
def test_a_reader_has_one_spelling(given: str, stored: str) -> None:
    """A name without a kind is a group's; accents are composed."""
    assert reader_name(given) == stored


@pytest.mark.parametrize("given", ["", "group:", "user: ", "a\nb", "x" * 201, "a\0b"])
def test_a_name_that_cannot_be_shown_is_refused(given: str) -> None:
    """It says what was expected."""
    with pytest.raises(InputError, match="group:NAME"):
        reader_name(given)


def test_a_group_never_passes_for_a_user() -> None:
    """Whatever a directory calls its groups, the kind stands before the name."""
    names = Principal(groups=frozenset({"user:ann", "everyone"})).names

    assert names == ("everyone", "group:everyone", "group:user:ann")


def test_a_principal_is_made_from_its_names() -> None:
    """One user at most, and as many groups as there are."""
    made = principal_of(["user:ann", "hr", "group:board", "everyone"])

    assert made == Principal("ann", frozenset({"hr", "board"}))
    with pytest.raises(InputError, match="one user"):
        principal_of(["user:ann", "user:bob"])


@pytest.mark.parametrize("readers", [None, (), ("everyone",), ("group:b", "group:a")])
def test_lists_come_back_from_the_store(readers: tuple[str, ...] | None) -> None:
    """Nothing declared and nobody are two things; the order says nothing."""
    stored = acl_readers(acl_text(readers))

    assert stored == (None if readers is None else tuple(sorted(readers)))


def test_a_draft_takes_readers_in_every_form() -> None:
    """A list, JSON or words with commas; None declares nothing."""
    assert Draft(text="x", readers=["hr", "user:ann"]).readers == (
        "group:hr",
        "user:ann",
    )
    assert Draft(text="x", readers='["hr"]').readers == ("group:hr",)
    assert Draft(text="x", readers="hr, hr, everyone").readers == (
        "everyone",
        "group:hr",
    )
    assert Draft(text="x").readers is None
    with pytest.raises(UnreadableSourceError, match="group:NAME"):
        Draft(text="x", readers=["user:"])


def test_the_nearest_list_replaces_the_others() -> None:
    """Tags add up; readers that did would open what a folder closes."""
    layers = ({"readers": "hr", "tags": "a"}, {"readers": "board", "tags": "b"})

    fields = merged(layers, "a.txt")

    assert fields == {"readers": ("group:board",), "tags": ("a", "b")}
