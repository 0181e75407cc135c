"""Two texts side by side: lines, words, and what is folded."""

from kept.text.side_by_side import compared


def test_lines_are_put_beside_each_other() -> None:
    """Lines that stayed stand beside themselves; gains and losses have no partner."""
    reported = compared("a\nb\nc", "a\nc\nd")

    rows = [row for block in reported.blocks for row in block.rows]
    numbers = [
        (row.left.number if row.left else 0, row.right.number if row.right else 0)
        for row in rows
    ]
    assert numbers == [(1, 1), (2, 0), (3, 2), (0, 3)]
    assert [row.same for row in rows] == [True, False, True, False]


def test_words_that_differ_are_marked_within_a_line() -> None:
    """Changes with hardly a word between them are one, so that they can be read."""
    reported = compared(
        "paid out at the end of the year.", "paid out when the year ends."
    )

    [row] = reported.blocks[0].rows
    assert row.left is not None
    assert row.right is not None
    assert row.left.pieces == (
        ("paid out ", False),
        ("at the end of the year", True),
        (".", False),
    )
    assert row.right.pieces == (
        ("paid out ", False),
        ("when the year ends", True),
        (".", False),
    )


def test_what_is_far_from_a_change_is_folded() -> None:
    """Two lines around a change stay; texts that are the same are not folded."""
    before = [f"line {number}" for number in range(20)]
    after = [*before[:10], "other", *before[11:]]

    reported = compared("\n".join(before), "\n".join(after))

    assert [(len(block.rows), block.folded) for block in reported.blocks] == [
        (8, True),
        (5, False),
        (7, True),
    ]
    same = compared("\n".join(before), "\n".join(before))
    assert same.same
    assert not any(block.folded for block in same.blocks)


def test_long_texts_are_compared_at_their_beginnings() -> None:
    """However long two texts are, comparing them stays affordable and is honest."""
    long = "\n".join(f"line {number}" for number in range(5_000))

    assert compared(long, "x").cut
    assert compared("y" * 100_000, "x").cut
    assert not compared("y", "x").cut
    assert compared("w " * 5_000, "v " * 5_000).blocks
