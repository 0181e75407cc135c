"""Known-item questions are made the same way every time."""

from kept.evaluation.known_items import known_items

PASSAGES = [
    "The board met. Borealis Mills was bought for 40 million by Acme X in spring.",
    "The board met. The board met again.",
    "The board met. Engineers replaced the turbine housing with a lighter alloy.",
]


def test_informative_sentences_become_questions() -> None:
    """The rarest words make the question, and the sentence is the answer."""
    items = known_items(PASSAGES)

    assert [(i.passage, i.answer.split()[0]) for i in items] == [
        (0, "Borealis"),
        (2, "Engineers"),
    ]
    assert items == known_items(PASSAGES)


def test_questions_name_words_of_the_sentence_only() -> None:
    """Each question reads as one and holds four of the sentence's words."""
    for item in known_items(PASSAGES):
        asked = item.question.removeprefix("What does the text say about ")
        words = asked.removesuffix("?").replace(" and ", ", ").split(", ")

        assert len(words) == 4
        assert all(word in item.answer for word in words)


def test_at_most_so_many_are_asked() -> None:
    """The best ones stay, in the order of the passages."""
    [item] = known_items(PASSAGES, at_most=1)

    assert item.passage in {0, 2}
    assert known_items([], at_most=3) == ()


def test_single_keyword_makes_a_question_too() -> None:
    """One word is enough where one is asked for."""
    [item] = known_items(["Zebra."], keywords=1)

    assert item.question == "What does the text say about Zebra?"
