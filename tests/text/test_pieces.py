"""Pieces: what was looked into is remembered, and only as much as was said."""

from hypothesis import given
from hypothesis import strategies as st

from kept.text.pieces import Pieces
from kept.text.tokens import analyse, count_tokens


def test_a_piece_is_looked_into_once() -> None:
    """The second time its finding is remembered; a long piece is looked into again."""
    looked: list[str] = []

    def look(piece: str) -> int:
        looked.append(piece)
        return len(piece)

    pieces = Pieces(look, chars=4)

    assert [pieces[p] for p in ("pump", "pump", "valve", "valve")] == [4, 4, 5, 5]
    assert looked == ["pump", "valve", "valve"]


def test_no_more_is_remembered_than_was_said() -> None:
    """A text of any size leaves a bounded number of pieces behind."""
    pieces = Pieces(len, most=3)

    assert sum(map(pieces.__getitem__, (f"w{n}" for n in range(9)))) == 18
    assert len(pieces) <= 3


@given(st.lists(st.text(alphabet="aé.-'#+09, 日語ー\u0301\u00ad\n_@", max_size=12)))
def test_a_text_is_the_sum_of_its_pieces(parts: list[str]) -> None:
    """Terms and counts of a text are those of what stands between its spaces."""
    text = " ".join(parts)

    terms = [term for part in parts for term in analyse(part, "en")]

    assert analyse(text, "en") == terms
    assert count_tokens(text) == sum(map(count_tokens, parts))
