"""Languages: function words and detection."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kept.text.languages import LANGUAGES, detect_language, likely_languages, stop_words

scraps = st.sampled_from(
    [*" '.-_1\n", "the", "of", "don't", "DER", "und", "d'un", "x", "il", "y'all"]
)


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("What is the refund policy for damaged goods?", "en"),
        ("refund policy for students", "en"),
        ("Wie viele Urlaubstage habe ich in diesem Jahr?", "de"),
        ("L'homme qui aimait les chevaux est parti avec sa femme", "fr"),
        ("¿Cuál es la capital de los Estados Unidos y por qué?", "es"),
        ("Il gatto che dormiva sulla sedia della nonna", "it"),
        ("Jag vill inte att du ska vara ensam när vi kommer", "sv"),
        ("Kolik dní dovolené mám a kdy ji mohu čerpat?", "cs"),
        ("Что такое политика возврата и как она работает?", "ru"),
        ("Це політика повернення, але вона також діє для всіх", "uk"),
        ("Ποια είναι η πολιτική επιστροφών;", "el"),
        ("מהי מדיניות ההחזרים", "he"),
        ("ما هي سياسة الاسترجاع في هذا المتجر", "ar"),
        ("सामान वापस करने की नीति क्या है", "hi"),
        ("東京都の天気はどうですか", "ja"),
        ("退款政策是什么", "zh"),
        ("환불 정책은 무엇인가요", "ko"),
        ("นโยบายการคืนเงินคืออะไร", "th"),
    ],
)
def test_a_sentence_is_recognised_by_script_or_function_words(
    text: str, language: str
) -> None:
    """Script decides where it can, function words elsewhere."""
    assert detect_language(text) == language


@pytest.mark.parametrize("text", ["", "INV-49302", "refund policy", "12 34", "🤷"])
def test_without_function_words_there_is_no_language(text: str) -> None:
    """An open question is not answered with a guess."""
    assert detect_language(text) is None


@given(st.lists(scraps).map("".join))
def test_plain_letters_are_read_as_all_others(text: str) -> None:
    """The way for ASCII is only faster: a character that says nothing undoes it."""
    assert likely_languages(text) == likely_languages(f"{text} \u2603")


@given(st.text())
def test_detection_never_fails_and_names_a_known_language(text: str) -> None:
    """Whatever comes in, the answer is a language that exists here, or None."""
    assert detect_language(text) in {None, *LANGUAGES}


@pytest.mark.parametrize(
    "word",
    ["research", "computer", "system", "order", "amount", "bill", "state", "test"],
)
def test_english_content_words_are_no_stop_words(word: str) -> None:
    """A greedy list eats questions."""
    assert word not in stop_words("en")


@pytest.mark.parametrize(
    ("language", "words"),
    [
        ("en", "the of what how can is don't"),
        ("de", "der die und nicht ein"),
        ("fr", "le et dans une"),
        ("tr", "şey birkaç için"),
        ("he", "אבל של"),
        ("ru", "и не что"),
    ],
)
def test_function_words_are_stop_words(language: str, words: str) -> None:
    """Lists are clean: right letters, no punctuation."""
    assert set(words.split()) <= stop_words(language)


def test_an_unknown_language_has_no_stop_words() -> None:
    """Nothing is left out of a text in a language without a list."""
    assert stop_words("xx") == frozenset()
