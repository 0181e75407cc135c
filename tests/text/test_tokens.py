"""Tokens: keyword terms, words that count, and what a search term looks like."""

import json
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kept.text.languages import LANGUAGES
from kept.text.tokens import (
    analyse,
    analyse_query,
    analysis_id,
    content_words,
    count_tokens,
    detect_language,
    domain_tokens,
    index_terms,
    made_by_older_analysis,
    term_key,
)

languages = st.sampled_from([None, "xx", *LANGUAGES])


scraps = st.sampled_from(
    [*" .,()'+#-_7\n", ". ", ", ", ") ", "cells", "C++", ".env", "7,5", "a.b", "don't"]
)


@pytest.mark.parametrize(
    ("text", "language", "terms"),
    [
        ("The running dogs were happier", "en", "run dog happier"),
        ("Die Häuser in den Bergen", "de", "haus berg"),
        ("l'homme et les chevaux", "fr", "homm cheval"),
        ("the company\u2019s reports", "en", "compani report"),
        ("running dogs", None, "running dogs"),
        ("running dogs", "xx", "running dogs"),
        ("INV-49302", "en", "inv-49302 inv 49302"),
        ("C++ and C#", "en", "c++ c c# c"),
        ("snake_case_name", "en", "snake_case_name snake case name"),
        ("v1.2.3", "en", "v1.2.3 v1 2 3"),
        ("R&D", "en", "r&d r d"),
        ("report.pdf", None, "report.pdf report pdf"),
        (".env", None, ".env env"),
        ("1,000 and 1.000", None, "1,000 1000 1 000 and 1.000 1000 1 000"),
        ("a@b.io", None, "a@b.io a b.io a b io"),
        ("ＦＵＬＬ　ｗｉｄｔｈ", "en", "full width"),  # noqa: RUF001 -- meant
        ("Straße STRASSE", None, "strasse strasse"),
        ("soft\u00adhyphen", None, "softhyphen"),
        ("東京都", "ja", "東京 京都"),
        ("犬", "ja", "犬"),
        ("iPhone手机", "zh", "iphone 手机"),
        ("서울에서", "ko", "서울 울에 에서"),
        ("ภาษา", "th", "ภา าษ ษา"),
        ("हिन्दी", "hi", "हिन्द"),
        ("--- ... ___ ''", "en", ""),
    ],
)
def test_terms_of_a_text(text: str, language: str | None, terms: str) -> None:
    """Words are stemmed by language, identifiers kept whole and split."""
    assert analyse(text, language) == terms.split()


def test_identifier_is_found_as_typed_and_by_its_number() -> None:
    """Whatever part of an identifier is asked for, the text has it."""
    terms = set(analyse("Refund of invoice INV-49302 is pending.", "en"))

    for asked in ("INV-49302", "inv-49302", "49302"):
        assert all(terms & set(word.exact) for word in analyse_query(asked, ["en"]))


def test_a_question_is_spelled_in_every_language_of_the_texts() -> None:
    """A word of an open language is stemmed in each that is in store."""
    [word] = analyse_query("What about Häusern?", ["en", "de", None])

    assert word.exact == ("häusern", "haus")


def test_the_surface_is_looked_up_beside_the_stems() -> None:
    """A text whose language is open holds the word as it was written."""
    [word] = analyse_query("Houses", ["en", "en"])

    assert word.exact == ("hous", "houses")


def test_a_function_word_of_every_language_in_store_is_not_looked_up() -> None:
    """English texts have no term "once", so a Spanish question cannot miss it there."""
    spelled = analyse_query("¿Qué pasa el once de mayo?", ["en"])

    assert {word.exact for word in spelled} == {("pasa",), ("mayo",)}


def found_by(question: str, text: str, language: str | None) -> set[str]:
    """Return the terms of a text that the words of a question look up."""
    held = set(index_terms(text, language))
    spelled = analyse_query(question, [language, None])
    return {term for word in spelled for term in word.every if term in held}


@pytest.mark.parametrize(
    ("question", "text", "language"),
    [
        ("cafe", "Das Café am Markt ist offen", "de"),
        ("café", "The cafe at the market is open", "en"),
        ("resume", "His résumés were read", "en"),
        ("Mueller", "Frau Müller ist nicht im Haus", "de"),
        ("Lodz", "Łódź", None),
        ("κεφαλι", "το κεφάλι μου", "el"),
        ("سلام", "سَلام", None),
    ],
)
def test_accents_may_be_left_out_or_typed(
    question: str, text: str, language: str | None
) -> None:
    """A word is found beside its exact form by the one without marks."""
    assert found_by(question, text, language)


def test_an_exact_form_has_terms_of_its_own() -> None:
    """What was folded is marked, so "ano" is not counted where "año" stands."""
    terms = index_terms("Feliz año nuevo a todos", "es")

    assert "ano" not in terms
    assert "~ano" in terms


def test_marks_that_are_letters_are_not_folded() -> None:
    """Hindi without its vowel signs, or й without its breve, are other words."""
    for text in ("हिन्दी", "йод"):
        assert not [term for term in index_terms(text, "hi") if term.startswith("~")]


@pytest.mark.parametrize(
    "question", ["warranty policy", "inquiry", "warranties", "Garantie", "Anfragen"]
)
def test_a_text_of_open_language_is_found_by_other_forms(question: str) -> None:
    """A line of names and nouns has no function word to tell its language by."""
    text = "Warranty policies inquiries, Garantien Anfrage: Ulla Berg"

    assert detect_language(text) is None
    assert found_by(question, text, None)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("KeywordIndex.search(question)", {"~keyword", "~index"}),
        ("getHTTPResponse", {"~get", "~http", "~respons"}),
        ("PostgreSQLStore", {"~postgr", "~sql", "~store"}),
        ("iPhone, McDonald", {"~mc", "~donald"}),
        ("e-mail and snake_case", set()),
    ],
)
def test_a_name_is_found_by_its_parts(text: str, parts: set[str]) -> None:
    """Qualified names and names in mixed letters are put together of words."""
    terms = set(index_terms(text, "en"))

    assert {term for term in terms if term.startswith("~")} == parts
    assert set(analyse(text, "en")) <= terms


@given(st.text(), languages)
def test_analysis_never_fails_and_gives_clean_terms(
    text: str, language: str | None
) -> None:
    """Any string at all gives terms without spaces, none of them empty."""
    terms = analyse(text, language)

    assert all(term and not any(map(str.isspace, term)) for term in terms)


@given(st.text(), languages)
def test_a_text_contains_the_terms_of_each_of_its_words(
    text: str, language: str | None
) -> None:
    """Words are analysed alone as they are in company, save for dots before them."""
    words = text.split()

    alone = [term for word in words for term in analyse(word, language)]

    assert analyse(" ".join(words), language) == alone


@given(st.text(), st.lists(languages, min_size=1, max_size=3))
def test_a_question_gives_terms_that_the_same_text_has(
    text: str, spoken: list[str | None]
) -> None:
    """Query and passage are analysed alike, whatever the language."""
    terms = {language: set(analyse(text, language)) for language in spoken}
    for word in analyse_query(text, spoken):
        assert any(terms[language] & set(word.exact) for language in spoken)


@given(st.text(), languages, st.lists(languages, min_size=1, max_size=3))
def test_more_languages_never_take_a_spelling_away(
    text: str, language: str | None, others: list[str | None]
) -> None:
    """What is looked up in texts of one language is looked up among others too."""
    alone = {one for word in analyse_query(text, [language]) for one in word.every}
    among = {
        one for word in analyse_query(text, [*others, language]) for one in word.every
    }

    assert alone <= among


@given(st.text())
def test_term_keys_fit_a_database_integer(term: str) -> None:
    """A key is a signed 64-bit number and stable."""
    assert -(2**63) <= term_key(term) < 2**63
    assert term_key(term) == term_key(term)


def test_term_keys_do_not_change_from_run_to_run() -> None:
    """Keys are stored, so they may never move."""
    assert term_key("refund") == 8_245_242_453_581_999_577
    assert term_key("東京") == -1292157288493601808


def test_threads_agree() -> None:
    """Stemmers are not shared without a lock."""
    words = [f"running{'s' * n} houses{'ly' * n}" for n in range(200)]
    alone = [analyse(text, "en") for text in words]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda text: analyse(text, "en"), words * 4))

    assert together == alone * 4


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("", 0),
        ("two words", 2),
        ("don't", 1),
        ("東京都", 3),
        ("東京 tower", 3),
        ("ที่", 1),
        ("x" * 25, 3),
    ],
)
def test_count_of_words(text: str, count: int) -> None:
    """Words count once, characters without spaces singly, endless runs by length."""
    assert count_tokens(text) == count


@given(st.lists(scraps).map("".join))
def test_plain_letters_are_counted_as_all_others(text: str) -> None:
    """The way for ASCII is only faster: a word in other letters undoes it."""
    assert count_tokens(text) == count_tokens(f"{text} \u00e9") - 1


@given(st.lists(scraps).map("".join), st.sampled_from([None, "en"]))
def test_a_text_has_the_terms_of_its_pieces(text: str, language: str | None) -> None:
    """What closes a word before a space says nothing, so it may be left out."""
    pieces = (analyse(piece, language) for piece in text.split())

    assert analyse(text, language) == [term for terms in pieces for term in terms]


@pytest.mark.parametrize(
    "text",
    [
        "hey this is a test message",
        "Hi",
        "hello there!",
        "thanks, that is great",
        "just testing",
        "can you help me please?",
        "Hallo, das ist eine Nachricht",
        "你好",
        "",
        "???",
        "x y z",
    ],
)
def test_small_talk_has_fewer_than_three_content_words(text: str) -> None:
    """A greeting or a try is no question."""
    assert len(content_words(text)) < 3
    assert domain_tokens(text) == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("How do I test a message queue?", ["test", "message", "queue"]),
        ("What is the refund policy?", ["refund", "policy"]),
        ("refund refund REFUND", ["refund"]),
        ("Which grants fund C++ tools?", ["grants", "fund", "c++", "tools"]),
    ],
)
def test_content_words_of_a_question(text: str, words: list[str]) -> None:
    """Function words go, words about something stay, each once."""
    assert content_words(text) == words


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("INV-49302", ["INV-49302"]),
        ("inv/2024/17 please", ["inv/2024/17"]),
        ("write to jo.doe@example.com", ["jo.doe@example.com"]),
        ("open report_v2.pdf", ["report_v2.pdf"]),
        ("what is config.yaml", ["config.yaml"]),
        ('the "parental leave" rule', ['"parental leave"']),
        ("„Elternzeit“ bitte", ["„Elternzeit“"]),
        ("more than 5 kg", ["5 kg"]),
        ("$20,000", ["$20,000"]),
        ("rate of 3.5%", ["3.5%"]),
        ("since 2024-05-01", ["2024-05-01"]),
        ("B12", ["B12"]),
        ("C++", ["C++"]),
        ("F#", ["F#"]),
        ("https://example.com/a?b=1", ["https://example.com/a?b=1"]),
        ("退款政策", ["退款政策"]),
        ("order 493021", ["493021"]),
        ("snake_case", ["snake_case"]),
        ("the 1st place in 2024", []),
        ("don't worry, it's a well-known fact", []),
        ("end.Start of it", []),
    ],
)
def test_domain_tokens_of_a_question(text: str, tokens: list[str]) -> None:
    """What only a search can mean is found as typed."""
    assert domain_tokens(text) == tokens


@given(st.text())
def test_gate_words_never_fail(text: str) -> None:
    """Any string at all can be asked."""
    assert all(content_words(text))
    assert all(domain_tokens(text))


@pytest.mark.evaluation_data
def test_naughty_strings_pass_through(evaluation_data: Path) -> None:
    """The big list of naughty strings breaks nothing."""
    naughty = json.loads((evaluation_data / "blns" / "blns.json").read_text("utf-8"))
    for text in naughty:
        analyse(text, detect_language(text))
        analyse_query(text, ["en", "de", "ja", None])
        content_words(text)
        domain_tokens(text)
        count_tokens(text)


def test_a_warm_chunk_is_analysed_in_well_under_half_a_millisecond() -> None:
    """It runs on every chunk and on every question."""
    chunk = ("The board accepts final reports of previously funded groups. " * 14)[:800]
    analyse(chunk, "en")

    best = min(_seconds(lambda: analyse(chunk, "en")) for _ in range(20))

    assert best < 0.0005


def test_hostile_strings_take_linear_time() -> None:
    """Long runs of one character do not make a pattern go back and forth."""
    for text in (
        "a" * 100_000,
        "-" * 100_000,
        "a-" * 50_000,
        '"' * 50_000,
        "1." * 9999,
    ):
        assert _seconds(lambda text=text: analyse(text, "en")) < 2
        assert _seconds(lambda text=text: domain_tokens(text)) < 5


def test_importing_loads_no_lists_and_no_stemmers() -> None:
    """Lists and stemmers wait for the first text."""
    code = (
        "import sys, kept.text.tokens; "
        "print(sorted({'stop_words', 'Stemmer', 'tantivy'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )

    assert done.stdout.strip() == "[]"


def test_the_analysis_has_a_name() -> None:
    """An index records which version of the analysis built it."""
    assert analysis_id().startswith("2-")


def test_an_analysis_is_older_by_its_own_number_only() -> None:
    """Nodes with different versions of a stemmer do not undo each other's work."""
    assert made_by_older_analysis("1-3.0-2018-0.25")
    assert not made_by_older_analysis("2-2.2-2017-0.20")
    assert not made_by_older_analysis("99-3.0-2018-0.25")
    assert not made_by_older_analysis("unknown")


def _seconds(act: object) -> float:
    assert callable(act)
    start = time.thread_time()
    act()
    return time.thread_time() - start
