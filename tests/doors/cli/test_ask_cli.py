"""kept ask: people read an answer with its sources, machines read JSON."""

import shutil
from pathlib import Path

import pytest

import kept as kept_package
from commands import apart, kept, started
from kept.kernel.gate import GUIDANCE
from kept.knowledge_base.base import KnowledgeBase
from kept.search.retrieve import NOTHING_RELEVANT

QUESTION = "When does the Leeds office open?"
FACTS = [
    "The Leeds office opens at eight and closes at six.",
    "The Kiel office opens at nine and closes at five.",
]


@pytest.fixture
def store(base: KnowledgeBase, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a small knowledge base, which the commands use."""
    for fact in FACTS:
        base.add(fact, title=fact[4:16], source_uri=f"memo:{fact[4:8]}")
    base.close()
    monkeypatch.setenv("KEPT_STORE", str(base.store.folder))
    monkeypatch.setenv("KEPT_EMBEDDER", "hash")
    return base.store.folder


def test_an_answer_is_followed_by_its_sources(store: Path) -> None:
    """Each has its marker, its relevance, where it is from and what it says."""
    ran = kept("ask", QUESTION, "-k", 1)

    first, empty, name, badges, uri, snippet, *rest = ran.out.splitlines()
    assert ran.code == 0
    assert first == "The Leeds office opens at eight and closes at six. [1]"
    assert empty == ""
    assert name.startswith("[1] Leeds office  (d")
    assert badges.startswith("    good (")
    assert badges.endswith("%), cited")
    assert uri == "    memo:Leed"
    assert snippet == f"    {FACTS[0]}"
    assert rest == [
        "",
        "Word for word from the sources; it seems to answer the question",
    ]
    assert ran.err == ""


def test_what_is_not_cited_is_only_named(store: Path) -> None:
    """Sources are those that the answer points to; other passages are in one line."""
    ran = kept("ask", "When do the Leeds office and the Kiel office open?")

    assert "not cited" not in ran.out
    assert "faithfulness" not in ran.out


def test_words_that_no_source_has_are_named(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As search engines do, under the passages that are close."""
    monkeypatch.setenv("KEPT_RELEVANCE_FLOOR", "0.02")
    ran = kept("ask", "When does the Leeds office sauna open?")

    assert ran.out.startswith("These passages are close, but I do not see the answer")
    assert "\nMissing: sauna\n" in ran.out


def test_machines_get_one_object(store: Path) -> None:
    """The answer, its citations, the search, what both rest on."""
    shown = kept("ask", QUESTION, "--json").json

    assert list(shown) == [
        *("question", "text", "kind", "supported", "faithfulness", "answers"),
        *("missing", "disagreements", "quotes", "citations"),
        *("removed_markers", "record", "refused", "context", "search"),
        *("fingerprints", "timings"),
    ]
    assert shown["text"].endswith("[1]")
    assert shown["refused"] is None
    assert shown["search"]["recalled"] == 2


@pytest.mark.parametrize(
    ("question", "text", "reason"),
    [
        ("hey this is a test message", GUIDANCE, "query_quality"),
        ("Which volcano erupted in Iceland?", NOTHING_RELEVANT, "nothing_relevant"),
    ],
)
def test_a_refusal_is_an_answer_without_sources(
    question: str, text: str, reason: str, store: Path
) -> None:
    """People read why, machines read the reason; both end well."""
    assert kept("ask", question).out == f"{text}\n"
    shown = kept("ask", question, "--json").json
    assert (shown["refused"]["reason"], shown["citations"]) == (reason, [])


def test_the_options_of_search_narrow_the_answer(store: Path) -> None:
    """What is filtered away is not answered from."""
    assert kept("ask", QUESTION, "--type", "memo").out == f"{NOTHING_RELEVANT}\n"


def test_an_empty_question_is_refused(store: Path) -> None:
    """There is nothing to answer."""
    assert kept("ask", " ").complaint(3) == "the question is empty; ask something"


def test_asking_can_be_replayed(store: Path) -> None:
    """It is recorded as a query, so replay knows it."""
    kept("ask", QUESTION)

    ran = kept("replay", "--json")

    assert ran.code == 0
    assert "not_recorded" in ran.out


def test_a_reader_who_has_had_enough_ends_it(store: Path) -> None:
    """A closed pipe is not reported as an error."""
    variables = {"KEPT_STORE": str(store), "KEPT_EMBEDDER": "hash"}
    process = started("ask", QUESTION, env=variables)
    assert process.stdout is not None
    process.stdout.close()

    _, err = process.communicate(timeout=120)

    assert process.returncode in {0, 141}
    assert b"Traceback" not in (err or b"")


def test_the_answer_does_not_depend_on_the_process(store: Path) -> None:
    """Hash seeds differ, answers do not."""
    answers = {
        apart(
            *("ask", QUESTION),
            env={
                "KEPT_STORE": str(store),
                "KEPT_EMBEDDER": "hash",
                "PYTHONHASHSEED": seed,
            },
        ).out
        for seed in ("1", "2")
    }

    assert len(answers) == 1


def test_doctor_reports_templates_that_have_drifted(
    store: Path, tmp_path: Path
) -> None:
    """A template that no longer matches its checksum is reported, not repaired."""
    source = Path(kept_package.__file__).parent
    copied = tmp_path / "changed" / "kept"
    shutil.copytree(source, copied, ignore=shutil.ignore_patterns("__pycache__"))
    with (copied / "models" / "prompts" / "answer.v1.txt").open("a") as file:
        file.write("Always agree.\n")

    sound = kept("doctor", "--store", store)
    changed = apart("doctor", "--store", store, env={"PYTHONPATH": str(copied.parent)})

    assert sound.code == 0
    assert changed.code == 8
    assert "answer.v1: template drift: template answer v1 has changed" in changed.out
    assert "NOT repaired" in changed.out
