"""Copies and opposites: what was changed decides, not how much."""

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kept.ingest.differences import ComparedText, differing
from kept.ingest.opposites import meaningful
from kept.ingest.plain_words import plain_words, sketch_of
from kept.knowledge_base.base import KnowledgeBase
from kept.knowledge_base.settings import Settings

POLICY = """\
Remote work policy

Employees may work from another country for up to twenty working days in a calendar
year, at most ten of them in a row. The request goes to the line manager at least two
weeks before the first day abroad. Contractors are covered by this policy. It's the
company's duty to insure the equipment, which costs 30 euros a month until 15 March.

Travel to places outside the list of the travel desk is allowed when the security team
has agreed in writing. The insurance applies during working hours only, and private
trips before or after are the employee's own matter. "Abroad" is true of any place
beyond the border.
"""


def changed(old: str, new: str, **how: bool) -> tuple[str, ...] | None:
    """Return the words by which two texts differ."""
    return differing(ComparedText(old), ComparedText(new), **how)


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("are covered", "are not covered", ("not",)),
        ("are covered", "aren't covered", ("not",)),
        ("twenty", "thirty", ("twenty", "thirty")),
        ("30 euros", "40 euros", ("30", "40")),
        ("30 euros", "30 dollars", ("euros", "dollars")),
        ("a month", "a week", ("month", "week")),
        ("15 March", "15 May", ("march", "may")),
        ("weeks before", "weeks after", ("before", "after")),
        ("is allowed", "is forbidden", ("allowed", "forbidden")),
        ("is true", "is false", ("true", "false")),
        ("may work", "must work", ("may", "must")),
        ("line manager", "works council", ("line", "manager", "works", "council")),
        ("at most ten of them in a row", "at most ten of them", ("in", "a", "row")),
        ("hours only,", "hours,", ("only",)),
        ("before or after", "after or before", ("before", "or")),
    ],
)
def test_a_word_that_changes_what_a_text_says_keeps_it_apart(
    before: str, after: str, words: tuple[str, ...]
) -> None:
    """One word is enough, whichever of the two texts came first; it is named."""
    assert before in POLICY
    other = POLICY.replace(before, after, 1)

    assert changed(POLICY, other, in_order=True) == words
    assert changed(other, POLICY)


COPIES = {
    "doubled spaces": POLICY.replace(" ", "  "),
    "lower case": POLICY.lower(),
    "upper case": POLICY.upper(),
    "curly quotes": POLICY.replace("'", "\u2019").replace('"A', "\u201cA"),
    "one line a paragraph": re.sub(r"(?<!\n)\n(?!\n)", " ", POLICY),
    "narrow lines": "\n\n".join(
        textwrap.fill(part, 30) for part in POLICY.split("\n\n")
    ),
    "hyphenated": POLICY.replace("calendar", "calen-\ndar"),
    "a sentence in front": f"This page was printed from the intranet.\n\n{POLICY}",
    "a greeting in front": f"Dear colleagues, please find it below.\n{POLICY}",
    "header and footer": f"ACME Handbook | Page 1 of 3\n\n{POLICY}\n\n© 2026 ACME Ltd.",
    "a mail's footer": f"{POLICY}\nPlease do not reply to this message.",
    "a page break": POLICY.replace("\n\nTravel", "\n\nPage 1 of 2\n\nTravel"),
    "HTML": f"<div><p>{POLICY.replace('Contractors', '<b>Contractors</b>')}</p></div>",
    "Markdown": f"# {POLICY.replace('Contractors', '**[Contractors](/who/7)**')}",
    "another article": POLICY.replace("a calendar", "the calendar"),
    "no-break spaces": POLICY.replace(" in ", "\u00a0in\u00a0"),
    "a short form": POLICY.replace("It's", "It\u2019s"),
}


@pytest.mark.parametrize("copy", COPIES.values(), ids=COPIES)
def test_a_copy_in_another_form_is_a_copy(copy: str) -> None:
    """Case, spaces, quotes, lines, markup and what printers add carry no meaning."""
    assert copy != POLICY
    assert changed(POLICY, copy) == ()
    assert changed(copy, POLICY) == ()
    assert sketch_of(POLICY) & sketch_of(copy)


@pytest.mark.parametrize(
    "added",
    [
        "This policy is no longer in force.",
        "The fee is 40 euros.",
        "Students must apply in writing.",
        "It was withdrawn.",
        "Contractors and employees abroad travel.",
    ],
)
def test_a_sentence_with_a_fact_of_its_own_keeps_apart(added: str) -> None:
    """In front, behind or inside: it could never be cited if it was left out."""
    for other in (
        f"{added}\n\n{POLICY}",
        f"{POLICY}\n\n{added}",
        POLICY.replace("Contractors are", f"{added} Contractors are"),
    ):
        assert changed(POLICY, other)


def test_a_sentence_left_out_keeps_apart() -> None:
    """The older text still says what the newer does not."""
    assert changed(
        POLICY, POLICY.replace("Contractors are covered by this policy. ", "")
    )


@pytest.mark.parametrize(
    ("language", "old", "new"),
    [
        ("de", "Freie Mitarbeiter sind eingeschlossen.", "sind nicht"),
        ("fr", "Les stagiaires sont concernés.", "ne sont pas"),
        ("es", "Los profesores están incluidos.", "no están"),
        ("it", "I visitatori sono ammessi.", "non sono"),
        ("pt", "As baterias estão cobertas.", "não estão"),
        ("nl", "Stagiairs zijn verzekerd.", "zijn niet"),
        ("ru", "Подрядчики включены в правила.", "не включены"),
        ("zh", "承包商适用本规定。", "不适用"),
    ],
)
def test_a_negation_is_seen_in_other_languages(
    language: str, old: str, new: str
) -> None:
    """The word put in is named, and is on the list of words that carry meaning."""
    [verb] = [word for word in new.split() if word in old] or [new[1:]]
    found = changed(f"{old} " * 3, f"{old} " * 2 + old.replace(verb, new))

    assert language
    assert found
    assert set(meaningful(found)) == set(found)


@pytest.mark.parametrize(
    "added",
    [
        "This document was exported from Confluence.",
        "Northwind Ltd. | Staff handbook | Page 4 of 19",
        "Hier ist die gewünschte Kopie aus dem Archiv.",
        "Cette page a été imprimée depuis l'intranet.",
        "Esta página se imprimió desde la intranet.",
        "Questa pagina è stata stampata dalla intranet.",
        "Deze pagina is afgedrukt vanaf het intranet.",
        "Эта страница распечатана из интранета.",
        "Ta strona została wydrukowana z intranetu.",
        "本页由内部网打印。",
        "このページはイントラネットから印刷されました。",
        "이 페이지는 인트라넷에서 인쇄되었습니다.",
        "Copyright 2026 Globex. Last updated on 3 May 2026.",
    ],
)
def test_words_that_printers_and_pages_add_are_known_in_several_languages(
    added: str,
) -> None:
    """A page's number, its date, and where it comes from say nothing of their own."""
    assert changed(POLICY, f"{added}\n\n{POLICY}") == ()
    assert changed(f"{POLICY}\n\n{added}", POLICY) == ()


@pytest.mark.parametrize(
    "added",
    [
        "Pets stay at home.",
        "All staff get a bonus.",
        "The company pays the costs.",
        "This text is wrong.",
        "The copy below is a joke.",
        "Archived files are sent to China.",
        "The text from Norway applies.",
        "For members in Norway.",
        "Page 5 | No bonus",
        "Dieses Dokument ist veraltet.",
        "Hunde bleiben draußen.",
        "Ce texte est faux.",
        "Tutti pagano.",
        "Это шутка.",
        "全部作废。",
        "これは嘘です。",
        "모두 돈을 냅니다.",
        "هذه مزحة.",
    ],
)
def test_words_that_no_boilerplate_has_keep_apart(added: str) -> None:
    """The vocabulary of boilerplate is closed: what is not in it may mean anything."""
    for other in (f"{added}\n\n{POLICY}", f"{POLICY}\n\n{added}"):
        assert changed(POLICY, other)
        assert changed(other, POLICY)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("if > 8", "if = 8"),
        ("if > 8", "if 8"),
        ("a / b", "a * b"),
        ("x=5", "x>5"),
        ("10² m", "102 m"),
        ("2½ hours", "21/2 hours"),
        ("`ready`", "`!ready`"),
        ("x ∈ A", "x ∉ A"),
        ("a few", "few"),
        ("vitamin A", "vitamin"),
        ("2 of the members", "the members"),
        ("are <del>not</del> in", "are not in"),
        ("are ~~not~~ in", "are not in"),
        ("No, they are.", "No they are."),
        ("re-signed", "resigned"),
        ("covered?", "covered."),
        ("in Maßen", "in Massen"),
        ("| yes | |", "| | yes |"),
    ],
)
def test_signs_that_change_what_a_text_says_keep_it_apart(
    before: str, after: str
) -> None:
    """Operators, raised digits, struck words and empty cells are read as words."""
    for frame in ("{} " + POLICY, POLICY + " {}", POLICY.replace("It's", "{} It's")):
        assert changed(frame.replace("{}", before), frame.replace("{}", after))


def test_quoted_lines_and_bullets_are_no_operators() -> None:
    """A mark in front of a line is layout."""
    for mark in (">", "*", "-", "+"):
        lines = [f"{mark} {line}".rstrip() for line in POLICY.splitlines()]
        expected = () if mark != "+" else ("+",)
        assert changed(POLICY, "\n".join(lines)) == expected


def test_ordinary_rewording_is_allowed_only_where_it_is_asked_for() -> None:
    """The grants preset merges it, as its document did, but no opposites."""
    long = POLICY * 3
    other = long.replace("the employee's own matter", "the employee's own affair", 1)
    names = long.replace("covered by this", "covered by Miller's", 1)

    assert changed(long, other) == ("matter", "affair")
    assert changed(long, other, reworded=True) == ()
    assert changed(long, names, reworded=True)
    assert changed(long, long.replace("may work", "must work", 1), reworded=True)
    assert changed(long, long.replace("30 euros", "31 euros", 1), reworded=True)


def test_what_markup_hides_counts_where_both_texts_have_it() -> None:
    """A link to another year's form, an attribute of a tag, an argument of a macro."""
    for old, new in (
        ("See [the form](/forms/2025).", "See [the form](/forms/2026)."),
        ("Write <input disabled name='x'> there.", "Write <input name='x' on> there."),
        ('It is {{ref("A", "that")}} one.', 'It is {{ref("B", "that")}} one.'),
    ):
        assert changed(f"{POLICY}{old}", f"{POLICY}{new}")
    assert (
        changed(f"{POLICY}See [the form](/forms/2025).", f"{POLICY}See the form.") == ()
    )


@given(st.text(max_size=200))
def test_every_text_is_a_copy_of_itself_in_any_case_of_spacing(text: str) -> None:
    """Whatever is in a text, its words do not depend on the white space between."""
    assert changed(text, text) == ()
    assert plain_words(text) == plain_words(" \n" + text + " ")


@given(st.lists(st.sampled_from(["rain", "falls", "on", "the", "old", "bridge"])))
def test_differences_are_the_same_both_ways(words: list[str]) -> None:
    """Which of two texts came first does not decide whether they are one."""
    old, new = " ".join(words), " ".join([*words, "rain", *words[:2]])

    assert (changed(old, new) == ()) is (changed(new, old) == ())


@pytest.fixture
def base(tmp_path: Path) -> Iterator[KnowledgeBase]:
    """Return an empty knowledge base."""
    settings = Settings(store=str(tmp_path / "kb"), embedder="hash")
    with KnowledgeBase(settings) as opened:
        yield opened


def test_copies_are_found_whatever_stands_in_front(base: KnowledgeBase) -> None:
    """The first chunk of a copy is another one, so it is found by its sketch."""
    [first] = base.add(POLICY * 3)
    front = "For internal use only, from the archive of the library. " * 4
    for place, copy in enumerate((f"{front}\n\n{POLICY * 3}", (POLICY * 3).upper())):
        [receipt] = base.add(copy, source_uri=f"copy-{place}")
        assert receipt.status == "reused", receipt
        assert receipt.document_id == first.document_id


def test_the_ledger_names_the_words_that_keep_an_opposite_apart(
    base: KnowledgeBase,
) -> None:
    """The newer text is stored, so that it can be cited."""
    base.add(POLICY)
    [receipt] = base.add(POLICY.replace("are covered", "are not covered"))

    assert receipt.status == "created"
    [miss] = receipt.evidence["near_misses"]
    assert miss["differs_in"] == ["not"]


def test_documents_of_an_older_store_are_found_by_sketches_too(
    base: KnowledgeBase,
) -> None:
    """They are sketched once, when the first text comes in after an upgrade."""
    base.add(POLICY * 3)
    with base.store.database.writing() as connection:
        connection.execute("DELETE FROM sketches")
    front = "For internal use only, from the archive of the library. " * 4

    [receipt] = base.add(f"{front}\n\n{POLICY * 3}")

    assert receipt.status == "reused"
    with base.store.database.reading() as connection:
        [(count,)] = connection.execute("SELECT COUNT(*) FROM sketches").fetchall()
    assert count > 1


def test_a_deleted_document_leaves_no_sketch(base: KnowledgeBase) -> None:
    """Only the mark stays that says that all documents are sketched."""
    [receipt] = base.add(POLICY)
    assert receipt.document_id is not None
    base.delete(receipt.document_id)

    with base.store.database.reading() as connection:
        rows = connection.execute("SELECT document_no FROM sketches").fetchall()
    assert rows == [(0,)]
