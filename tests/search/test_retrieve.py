"""Retrieval: the same question and the same knowledge give the same bytes."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import count
from random import Random
from threading import Barrier
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kept.errors import EmbedderMismatchError, InputError
from kept.kernel.filters import Filters
from kept.kernel.pool import Pool
from kept.knowledge_base.base import KnowledgeBase
from kept.search.render import found_json
from kept.search.retrieve import Request
from kept.stores.sqlite.doctor import rebuild

Make = Callable[..., KnowledgeBase]
FACTS = [
    "The Leeds office opens at eight and closes at six.",
    "Invoice INV-49302 was paid on 3 March after a reminder.",
    "The pump of model TW-C235 costs 410 euro without tax.",
    "Employees have 28 days of leave, and five more after ten years.",
    "The calibration of the pH sensor takes two buffers and an hour.",
    "Die Probezeit beträgt sechs Monate, die Kündigungsfrist zwei Wochen.",
    "通勤手当の上限は月額三万円です。領収書が必要です。",
    "A lost laptop is reported to security within one hour.",
    "Travel by train is booked in second class, abroad too.",
    "The grant call closes on 30 April and funds 200,000 euro.",
]
QUESTIONS = [
    "When does the Leeds office open?",
    "INV-49302",
    "How much is the TW-C235 pump?",
    "days of leave after ten years",
    "Wie lange ist die Probezeit?",
    "通勤手当の上限はいくらですか",
]
VERSIONS = ["2.0.2", "2.0.3", "2.2.0", "2.2.2", "3.0.3", "3.2.0"]
names = count()
words = st.sampled_from(
    [*" ".join(FACTS).split(), "zebra", "hello", "the", "Peru", "🙂", "INV-1"]
)


@pytest.fixture
def answering(make_base: Make) -> KnowledgeBase:
    """Return a knowledge base of the facts."""
    return filled(make_base("answering"), FACTS)


def filled(base: KnowledgeBase, texts: list[str]) -> KnowledgeBase:
    """Take texts in and return the knowledge base."""
    for text in texts:
        base.add(text)
    return base


def asked(base: KnowledgeBase, question: str, **options: object) -> str:
    """Return the answer as JSON, without the timings beside it."""
    shown = found_json(base.search(question, **options))  # type: ignore[arg-type]  # any
    del shown["timings"]
    return json.dumps(shown, ensure_ascii=False)


def first_text(base: KnowledgeBase, question: str) -> str:
    """Return the best passage."""
    return base.search(question).selection.candidates[0].chunk.text


def test_questions_find_their_passage(base: KnowledgeBase) -> None:
    """Identifiers as typed, paraphrases, German and Japanese alike."""
    filled(base, FACTS)
    base.override({"cite": "generous"})

    assert [first_text(base, q) for q in QUESTIONS] == [
        FACTS[i] for i in (0, 1, 2, 3, 5, 6)
    ]


def test_the_counts_of_the_record_sum(base: KnowledgeBase) -> None:
    """Recalled plus added is selected plus dropped, and every drop has a reason."""
    filled(base, FACTS)

    record = found_json(base.search(QUESTIONS[3]))["record"]

    assert (
        record["recalled"] + record["added"] == record["selected"] + record["dropped"]
    )
    drops = [
        d for s in record["stages"] for d in s["decisions"] if d["verdict"] == "dropped"
    ]
    assert len(drops) == record["dropped"]
    assert all(d["reason"] and d["evidence"] for d in drops)


@settings(
    max_examples=8,
    suppress_health_check=[
        HealthCheck.function_scoped_fixture,
        HealthCheck.too_slow,
    ],
)
@given(order=st.permutations(FACTS))
def test_insertion_order_changes_nothing(make_base: Make, order: list[str]) -> None:
    """The fingerprint and every byte of the answer are the same."""
    one = filled(make_base(f"one{next(names)}"), FACTS)
    two = filled(make_base(f"two{next(names)}"), order)

    for question in QUESTIONS:
        assert asked(one, question) == asked(two, question)


@settings(
    max_examples=8,
    suppress_health_check=[
        HealthCheck.function_scoped_fixture,
        HealthCheck.too_slow,
    ],
)
@given(gone=st.sets(st.integers(0, len(FACTS) - 1), max_size=8))
def test_a_delete_leaves_no_ghosts(make_base: Make, gone: set[int]) -> None:
    """After deletes the answers are those of a store that never had the documents."""
    base = filled(make_base(f"one{next(names)}"), FACTS)
    asked(base, QUESTIONS[0])
    for stored in base.store.documents("default"):
        text = base.store.document("default", stored.document.id)[1]
        if FACTS.index(text) in gone:
            base.delete(stored.document.id)
    kept = [fact for i, fact in enumerate(FACTS) if i not in gone]
    fresh = filled(make_base(f"two{next(names)}"), kept)

    for question in QUESTIONS:
        assert asked(base, question) == asked(fresh, question)


def test_a_rebuild_changes_nothing(base: KnowledgeBase) -> None:
    """Indexes are derived: deleted and rebuilt, they give the same answers."""
    filled(base, FACTS)
    before = [asked(base, question) for question in QUESTIONS]

    rebuild(base.store)

    assert [asked(base, question) for question in QUESTIONS] == before


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    written=st.lists(st.lists(words, min_size=1).map(" ".join), min_size=1, max_size=4)
)
def test_another_tenant_changes_nothing(
    answering: KnowledgeBase, make_base: Make, written: list[str]
) -> None:
    """Neither scores nor fingerprints depend on what others store."""
    before = [asked(answering, question) for question in QUESTIONS]

    filled(make_base("answering", tenant="other"), written)

    assert [asked(answering, question) for question in QUESTIONS] == before


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    question=st.lists(words, min_size=1, max_size=8).map(" ".join),
    floor=st.floats(0.0, 1.0),
)
def test_a_refusal_cites_nothing_and_an_answer_cites(
    answering: KnowledgeBase, question: str, floor: float
) -> None:
    """Whatever is asked and wherever the floors are, one of the two happens."""
    answering.override({"relevance_floor": floor})

    found = answering.search(question)
    reported = answering.ask(question, extractive=True)

    assert (found.refused is None) == bool(found.selection.candidates)
    assert reported.found.refused == found.refused
    if found.refused is not None:
        assert reported.answer.citations == ()
        assert reported.answer.text == found.refused.message


def test_threads_get_the_same_bytes(base: KnowledgeBase) -> None:
    """Many readers at once see what one sees."""
    filled(base, FACTS)
    expected = [asked(base, question) for question in QUESTIONS]

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda q: asked(base, q), QUESTIONS * 10))

    assert answers == expected * 10


def test_readers_beside_a_writer_see_whole_states(make_base: Make) -> None:
    """While documents come in, every answer belongs to one state that existed."""
    base = make_base()
    base.add(FACTS[0])

    def ask(_: int) -> tuple[str, int]:
        found = base.search("office opens eight")
        return found.fingerprints.knowledge_base, found.selection.recalled

    with ThreadPoolExecutor(4) as pool:
        answers = pool.map(ask, range(60))
        for fact in FACTS[1:]:
            base.add(fact)
        seen = dict(answers)

    assert all(1 <= recalled <= len(FACTS) for recalled in seen.values())
    assert len(set(seen.values())) == len(seen)


@pytest.mark.parametrize("seed", ["0", "1", "random"])
def test_hash_seeds_and_processes_change_nothing(
    base: KnowledgeBase, seed: str
) -> None:
    """Another process with another hash seed prints the same bytes."""
    filled(base, FACTS)
    expected = asked(base, QUESTIONS[0])
    code = (
        "import json, sys; from kept.knowledge_base.base import KnowledgeBase;"
        "from kept.knowledge_base.settings import Settings;"
        "from kept.search.render import found_json;"
        "base = KnowledgeBase(Settings(store=sys.argv[1], embedder='hash'));"
        "shown = found_json(base.search(sys.argv[2])); del shown['timings'];"
        "print(json.dumps(shown, ensure_ascii=False))"
    )

    printed = subprocess.run(
        [sys.executable, "-c", code, str(base.store.folder), QUESTIONS[0]],
        env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONUTF8": "1"},
        capture_output=True,
        text=True,
        check=True,
    )

    assert printed.stdout.strip() == expected


def test_filters_narrow_both_legs_before_anything_is_scored(
    base: KnowledgeBase,
) -> None:
    """Types, tags, metadata and dates; what does not match is never recalled."""
    base.add(FACTS[0], type="memo", metadata={"city": "Leeds", "date": "2026-01-05"})
    base.add(FACTS[7], tags=("security",), metadata={"date": "2026-03-01"})
    base.add(FACTS[8], metadata={"city": "Kiel", "date": "2026-05-01"})

    def recalled(**conditions: object) -> int:
        filters = Filters(**conditions)  # type: ignore[arg-type]  # any condition
        found = base.search("office laptop train report booked", filters=filters)
        return found.selection.recalled

    assert recalled() == 3
    assert recalled(types=("memo",)) == 1
    assert recalled(tags=("security",)) == 1
    assert recalled(metadata={"city": ["Leeds", "Kiel"]}) == 2
    assert recalled(since="2026-02-01", until="2026-04-01") == 1
    assert recalled(metadata={"city": "Leeds"}, since="2026-02-01") == 0


def test_a_date_that_is_none_is_refused() -> None:
    """The error names the field, the value and what was expected."""
    with pytest.raises(InputError, match=r"since is 'soon'; expected a date"):
        Filters(since="soon")


@pytest.mark.parametrize(
    "question",
    ["hey this is a test message", "hello", "the of and", "???", "thanks a lot!"],
)
def test_small_talk_is_turned_away_without_a_search(
    base: KnowledgeBase, question: str
) -> None:
    """Guidance, no citations, and nothing was recalled."""
    filled(base, FACTS)

    found = base.search(question)

    assert found.refused is not None
    assert found.refused.reason == "query_quality"
    assert (found.selection.recalled, found.selection.candidates) == (0, ())


@pytest.mark.parametrize(
    "question", ["INV-49302", "TW-C235", '"second class"', "通勤手当は", "report.pdf"]
)
def test_one_specific_token_is_a_question(base: KnowledgeBase, question: str) -> None:
    """Identifiers, quotes, file names and scripts without spaces pass the gate."""
    filled(base, FACTS)

    found = base.search(question)

    assert found.refused is None or found.refused.reason != "query_quality"


def test_two_words_that_the_knowledge_base_knows_are_a_question(
    make_base: Make,
) -> None:
    """The default gate asks the knowledge base; the tenant-KB gate only counts."""
    default = filled(make_base(), FACTS)
    strict = make_base(preset="tenant_kb")

    assert default.search("lost laptop").selection.recalled > 0
    assert default.search("purple unicorns").refused is not None
    refused = strict.search("lost laptop").refused
    assert refused is not None
    assert refused.evidence == {"content_words": 2, "at_least": 3}


class Meeting:
    """Something in one of whose methods a thread waits until another comes along."""

    def __init__(self, inner: Any, method: str, barrier: Barrier) -> None:  # noqa: ANN401 -- of any kind
        self._inner, self._method, self._barrier = inner, method, barrier

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 -- as the inner one has it
        found = getattr(self._inner, name)
        return partial(self._met, found) if name == self._method else found

    def _met(self, method: Callable[..., Any], *given: Any) -> Any:  # noqa: ANN401 -- as above
        self._barrier.wait(timeout=60)
        return method(*given)


def test_a_question_is_embedded_while_its_words_are_weighed(
    answering: KnowledgeBase,
) -> None:
    """Both are begun before either is done, where the gate needs no weights."""
    request, barrier = Request(question=QUESTIONS[0]), Barrier(2)
    retriever = answering.retriever(answering.plan(request))
    embedder: Any = Meeting(answering.embedder, "embed_query", barrier)

    with answering.store.shelf(request.tenant) as shelf:
        weighing: Any = Meeting(shelf, "weigh", barrier)
        own = replace(retriever, embedder=embedder)
        found = own.chosen(own.drawn(weighing, request))

    assert found == retriever(request)


def test_a_recalled_chunk_is_made_once(answering: KnowledgeBase) -> None:
    """However often it is looked at; its id is there before."""
    [vector] = answering.embedder.embed(QUESTIONS[:1])
    with answering.store.shelf("default") as shelf:
        terms = shelf.weigh(QUESTIONS[0])
        legs = {"dense": shelf.dense_leg(vector, 5, None)}
        recalled = Pool.of(shelf.candidates(vector, terms, legs))

    entries = recalled.roll.entries
    assert [entry.id for entry in entries] == [c.chunk.id for c in recalled]
    assert all(entry.chunk is entry.chunk for entry in entries)
    assert len(entries) == 5


def test_an_empty_knowledge_base_refuses(base: KnowledgeBase) -> None:
    """Nothing relevant is an answer, not an error."""
    found = base.search("When does the Leeds office open?")

    assert found.refused is not None
    assert found.refused.reason == "nothing_relevant"


@pytest.mark.parametrize("question", ["", "   ", "x" * 1_000_000])
def test_what_cannot_be_a_question_is_an_error(
    base: KnowledgeBase, question: str
) -> None:
    """Empty and endless questions are refused with what was expected."""
    with pytest.raises(InputError, match="question"):
        base.search(question)


@pytest.mark.parametrize(
    ("side", "value", "message"),
    [
        ("question", None, "the question is None; expected text"),
        ("question", b"bytes", "the question is b'bytes'; expected text"),
        ("k", 2.0, "k is 2.0; expected a whole number"),
        ("k", "2", "k is '2'; expected a whole number"),
        ("filters", {"tags": ["x"]}, "filters are .*; expected Filters"),
    ],
)
def test_a_request_of_another_shape_is_refused(
    side: str, value: object, message: str
) -> None:
    """An invalid question, number or filter raises before any search."""
    with pytest.raises(InputError, match=message):
        Request(**{"question": "anything?", side: value})


@pytest.mark.parametrize("two", [np.int64(2), np.uint8(2)])
def test_a_number_of_another_kind_leaves_no_trace(make_base: Make, two: int) -> None:
    """The same k gives the same fingerprint, whatever was asked before."""
    plain, mixed = make_base(), make_base(tenant="other")

    expected = plain.search("anything?", k=2).fingerprints.configuration

    assert mixed.search("anything?", k=two).fingerprints.configuration == expected
    assert mixed.search("anything?", k=2).fingerprints.configuration == expected


def test_control_characters_do_no_harm(base: KnowledgeBase) -> None:
    """A question may hold anything."""
    filled(base, FACTS)

    assert base.search("Leeds\x00office\x07 opens\ud800 when?").selection.recalled


def test_a_store_of_another_embedder_is_not_searched(make_base: Make) -> None:
    """The vectors would not fit, so the question is refused with the way out."""
    filled(make_base(), FACTS)
    other = make_base(embedder="minilm")

    with pytest.raises(EmbedderMismatchError, match="kept reembed"):
        other.search("When does the Leeds office open?")


def test_pinned_chunks_are_forced_in(base: KnowledgeBase) -> None:
    """The caller's own choice is never pruned."""
    filled(base, FACTS)
    [target] = [
        d.document.id
        for d in base.store.documents("default")
        if base.store.document("default", d.document.id)[1] == FACTS[6]
    ]

    found = base.search(
        "When does the Leeds office open?", k=1, pinned=[f"{target}:0000"]
    )

    assert FACTS[6] in [c.chunk.text for c in found.selection.candidates]


def test_the_one_that_was_named_stays_where_all_are_near(base: KnowledgeBase) -> None:
    """Texts of one form are all near to the question; its words choose."""
    texts = [f"Release notes {n}: bug fixes and a faster start." for n in VERSIONS]
    filled(base, texts)

    found = base.search("release notes of 3.2.0", k=2).selection

    assert found.candidates[0].chunk.text == texts[VERSIONS.index("3.2.0")]
    assert any(d.reason == "protected_overflow" for d in found.decisions())


def test_relevance_does_not_change_with_k_or_depth(
    make_base: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The absolute channel belongs to the question and the chunk alone."""
    base = filled(make_base(), FACTS)

    def signals(**options: object) -> dict[str, float]:
        found = base.search(QUESTIONS[3], **options)  # type: ignore[arg-type]  # any
        [best] = [c for c in found.selection.candidates if "28 days" in c.chunk.text]
        absolute = ("cosine", "bm25", "coverage", "bm25_share", "relevance")
        return {name: best.signals[name] for name in absolute}

    expected = signals()
    assert signals(k=1) == expected
    monkeypatch.setenv("KEPT_DEPTH", "2")
    assert signals(k=1) == expected


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"KEPT_GUARDRAILS_ENABLE": "false"},
        {"KEPT_FUSION": "reciprocal_rank"},
        {"KEPT_PRESET": "tenant_kb", "RETRIEVAL_DEPTH": "4"},
    ],
)
def test_a_larger_k_only_adds(
    make_base: Make, monkeypatch: pytest.MonkeyPatch, changed: dict[str, str]
) -> None:
    """A larger k returns the same passages in the same order, and more."""
    for name, value in (
        {"KEPT_DEPTH": "4", "KEPT_RELEVANCE_FLOOR": "0"} | changed
    ).items():
        monkeypatch.setenv(name, value)
    chosen, words = Random(5), " ".join(FACTS[:5]).split()  # noqa: S311 -- no secret
    base = make_base(near_duplicate_threshold=1.0)
    texts = [" ".join(chosen.choices(words, k=9)) for _ in range(40)]
    base.add("\n\n".join(texts[:20]))
    filled(base, texts[20:])

    for question in texts[:5]:
        before: list[str] = []
        for k in (1, 3, 4, 5, 9, 20):
            found = base.search(question, k=k).selection.candidates
            ids = [c.id for c in found]
            assert [i for i in ids if i in before] == before
            before = ids
