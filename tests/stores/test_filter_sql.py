"""Filters let through exactly what a plain predicate says, however they are nested."""

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from filter_cases import KEYS, TAGS, TYPES, Taken, atoms, drawn, lets_through, nested
from kept.errors import InputError
from kept.kernel.filter_matching import admits
from kept.kernel.filters import Condition, Filters
from kept.knowledge_base.base import KnowledgeBase
from kept.knowledge_base.settings import Settings
from kept.search.ports import Shelf
from kept.stores.filter_sql import MOST_VALUES
from kept.stores.row_writer import ORD_BITS, number_of

DOCUMENTS = 60


class Stock:
    """Documents with metadata of every kind, and a shelf that they stand on."""

    def __init__(self, taken: list[Taken], shelf: Shelf) -> None:
        self.taken = taken
        self.shelf = shelf

    def allowed(self, filters: Filters) -> set[str]:
        """Return the documents that the store lets through."""
        keys = self.shelf.allowed(filters)
        if keys is None:
            return {one.id for one in self.taken}
        numbers = {int(key) >> ORD_BITS for key in keys}
        return {one.id for one in self.taken if number_of(one.id) in numbers}


@pytest.fixture(scope="module")
def stock(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stock]:
    """Return documents of two tenants, of whom one is asked."""
    store = str(tmp_path_factory.mktemp("filtering"))
    taken: list[Taken] = []
    with KnowledgeBase(Settings.of({"store": store, "embedder": "hash"})) as base:
        for place in range(DOCUMENTS):
            fields = Taken("", TYPES[place % 2], TAGS[: place % 3], drawn(place))
            text = f"Pump {place} stands in hall {place * 7} beside valve {place * 31}."
            [receipt] = base.add(
                text, type=fields.type, tags=fields.tags, metadata=fields.metadata
            )
            taken.append(fields._replace(id=str(receipt.document_id)))
        with base.store.shelf("default") as shelf:
            yield Stock(taken, shelf)


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_nested_filters_mean_what_the_predicate_says(
    stock: Stock, data: st.DataObject
) -> None:
    """And, or and not over every kind of condition, on values of every kind.

    What is in no store, but handed in, is let through by the same rule.
    """
    filters = data.draw(nested([one.id for one in stock.taken]))

    expected = {one.id for one in stock.taken if lets_through(filters, one)}

    assert stock.allowed(filters) == expected
    assert {one.id for one in stock.taken if admits(filters, one.facts())} == expected


def test_texts_are_compared_to_their_very_end(stock: Stock) -> None:
    """A NUL inside a text ends nothing."""
    torn = {
        one.id
        for one in stock.taken
        if any("x\0yz" in atoms(one.metadata.get(key)) for key in KEYS)
    }

    for end in ("\0yz", "yz"):
        parts = (Filters(where=(Condition(key, "ends_with", end),)) for key in KEYS)
        assert stock.allowed(Filters(any_of=tuple(parts))) == torn
    assert torn


def test_what_lacks_a_key_is_not_excluded_by_it(stock: Stock) -> None:
    """Not equal is everything but equal: without the key, with null, with a list."""
    equal = Filters(metadata={"team": "sales"})
    lacking = {one.id for one in stock.taken if "team" not in one.metadata}

    others = stock.allowed(Filters(none_of=(equal,)))

    assert lacking <= others
    assert others == {one.id for one in stock.taken} - stock.allowed(equal)


def test_filters_of_nothing_let_everything_or_nothing_through(stock: Stock) -> None:
    """An empty part holds for all documents, so none of it holds for no document."""
    everything = {one.id for one in stock.taken}

    assert stock.allowed(Filters(any_of=(Filters(),))) == everything
    assert stock.allowed(Filters(none_of=(Filters(),))) == set()
    assert stock.shelf.allowed(Filters(none_of=())) is None


def test_too_many_values_are_refused_in_words(stock: Stock) -> None:
    """The database could not take them; the error says how many it takes."""
    wanted = [str(number) for number in range(MOST_VALUES + 1)]

    with pytest.raises(InputError, match="at most 30000 are taken"):
        stock.shelf.allowed(Filters(metadata={"team": wanted}))
