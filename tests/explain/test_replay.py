"""Replay: recorded queries, run again, are identical or say what changed."""

import threading
import time
from collections.abc import Callable
from dataclasses import replace

import pytest
import structlog
from structlog.testing import capture_logs

from kept.errors import NotFoundError
from kept.explain.render import replayed_json, replayed_line
from kept.explain.replay import Replayed, replay
from kept.kernel.filters import Filters
from kept.knowledge_base.base import KnowledgeBase
from kept.knowledge_base.settings import Settings
from kept.search.recorded import Recorded, code_version, digest, recorded, request_of
from kept.stores.query_records import GATHERED_SECONDS, Recorder
from kept.stores.sqlite.connection import SqliteDatabase
from kept.stores.sqlite.store import FILE

Make = Callable[..., KnowledgeBase]
QUESTION = "When does the Leeds office open?"
FACTS = [
    "The Leeds office opens at eight and closes at six.",
    "The Kiel office opens at nine and closes at five.",
    "A lost laptop is reported to security within one hour.",
]


def filled(base: KnowledgeBase) -> KnowledgeBase:
    """Take the facts in and return the knowledge base."""
    for fact in FACTS:
        base.add(fact)
    return base


@pytest.fixture
def keeping(make_base: Make) -> KnowledgeBase:
    """Return a knowledge base that records questions with their text."""
    base = filled(make_base(record_queries="text"))
    base.override({"relevance_floor": 0.0})
    return base


def again(base: KnowledgeBase) -> Replayed:
    """Run the only recorded query again."""
    [replayed] = replay(base, base.last_queries(100))
    return replayed


def test_nothing_changed_is_identical(keeping: KnowledgeBase) -> None:
    """The same data, configuration and code give the same digest."""
    keeping.search(QUESTION)

    replayed = again(keeping)

    assert (replayed.outcome, replayed.changed) == ("identical", ())
    assert replayed_line(replayed) == f"1 {QUESTION}: identical"


def test_a_replay_is_not_recorded(keeping: KnowledgeBase) -> None:
    """Looking at the past does not add to it."""
    keeping.search(QUESTION)
    again(keeping)

    assert len(keeping.last_queries(100)) == 1


def test_the_whole_request_is_run_again(keeping: KnowledgeBase) -> None:
    """k, filters, intent and pins are part of what is recorded."""
    [pin, *_] = [
        f"{stored.document.id}:0000" for stored in keeping.store.documents("default")
    ]
    found = keeping.search(
        QUESTION,
        k=1,
        filters=Filters(metadata={"city": ["Leeds"]}, since="2026-01-01"),
        intent="story",
        pinned=[pin],
    )

    [query] = keeping.last_queries(1)

    assert request_of("default", str(query.question), query.request) == found.request
    assert again(keeping).outcome == "identical"


def test_changed_data_is_named_with_what_it_changed(keeping: KnowledgeBase) -> None:
    """A new document comes in, and the answer says so."""
    keeping.search(QUESTION)
    [new] = keeping.add("The Leeds office will open on Saturdays, when it does open.")

    replayed = again(keeping)

    assert (replayed.outcome, replayed.changed) == ("changed", ("data",))
    assert replayed.added == (f"{new.document_id}:0000",)
    assert "DIFFERENT (data changed): added" in replayed_line(replayed)


def test_a_changed_configuration_is_named(keeping: KnowledgeBase) -> None:
    """An override of the tenant is another configuration."""
    found = keeping.search(QUESTION)
    keeping.override({"top_k": 1})

    replayed = again(keeping)

    assert (replayed.outcome, replayed.changed) == ("changed", ("configuration",))
    assert replayed.lost == tuple(c.id for c in found.selection.candidates[1:])


def test_a_question_that_is_refused_now_is_said_to_be(keeping: KnowledgeBase) -> None:
    """From an answer to a refusal, and back."""
    keeping.search(QUESTION)
    keeping.override({"relevance_floor": 1.0, "near_match_distance": 0.0})
    keeping.override({"keyword_protection": "none"})

    replayed = again(keeping)

    assert replayed.refused == (None, "nothing_relevant")
    assert "now refused: nothing_relevant" in replayed_line(replayed)
    [query] = keeping.last_queries(1)
    refused = replace(query, result={**query.result, "refused": "query_quality"})
    keeping.override({}, unset=["relevance_floor"])
    [back] = replay(keeping, [replace(refused, result_sha256="other")])
    assert "now answered, was refused: query_quality" in replayed_line(back)


def test_changed_code_is_named_and_may_be_identical(keeping: KnowledgeBase) -> None:
    """Another version that answers alike is identical, and named."""
    keeping.search(QUESTION)
    [query] = keeping.last_queries(1)

    [replayed] = replay(keeping, [replace(query, code="0.0.1+older")])

    assert (replayed.outcome, replayed.changed) == ("identical", ("code",))
    assert replayed_line(replayed).endswith("identical (code changed)")


def test_a_difference_without_a_cause_is_unexplained(keeping: KnowledgeBase) -> None:
    """The promise of determinism is what replay checks."""
    keeping.search(QUESTION)
    [query] = keeping.last_queries(1)
    swapped = {**query.result, "selected": query.result["selected"][::-1]}

    [replayed] = replay(keeping, [replace(query, result_sha256="x", result=swapped)])

    assert replayed.outcome == "unexplained"
    assert replayed.reordered
    assert replayed_line(replayed).endswith(
        "although data, configuration and code are unchanged: reordered"
    )


def test_a_recorded_query_keeps_its_preset(make_base: Make) -> None:
    """Queries of several presets replay under their own."""
    filled(make_base(record_queries="text"))
    other = make_base(record_queries="text", preset="tenant_kb")
    other.search(QUESTION)
    other.close()
    default = make_base(record_queries="text")

    assert again(default).outcome == "identical"
    assert again(default).recorded.preset == "tenant_kb"


def test_without_text_only_fingerprints_are_kept(make_base: Make) -> None:
    """Neither the question nor the request is stored, so it cannot be run."""
    base = filled(make_base())
    base.search(QUESTION, k=2)

    replayed = again(base)

    assert replayed.outcome == "not_recorded"
    assert (replayed.recorded.question, replayed.recorded.request) == (None, {})
    assert len(replayed.recorded.question_sha256) == 64
    assert replayed_json(replayed)["question"] is None
    assert "text was not recorded" in replayed_line(replayed)
    stored = (base.store.folder / "kept.sqlite").read_bytes()
    wal = base.store.folder / "kept.sqlite-wal"
    assert QUESTION.encode() not in stored + wal.read_bytes()


def test_off_records_nothing(make_base: Make) -> None:
    """There is no writer."""
    base = filled(make_base(record_queries="off"))
    base.search(QUESTION)

    assert base.last_queries(10) == []


def test_a_read_only_store_is_searched_without_a_record(
    keeping: KnowledgeBase,
) -> None:
    """What cannot be written is not, and the query does not fail."""
    settings = keeping.settings.changed(record_queries="text")
    keeping.close()

    with KnowledgeBase(settings, writable=False) as base:
        assert base.search(QUESTION).selection.candidates
        assert base.last_queries(10) == []


def test_questions_may_hold_anything(keeping: KnowledgeBase) -> None:
    """Zero bytes and lone surrogates survive the record."""
    question = "Leeds\x00office\x07 opens\ud800 when?"
    keeping.search(question)

    assert again(keeping).recorded.question == question
    assert again(keeping).outcome == "identical"


def test_only_the_newest_are_kept(make_base: Make) -> None:
    """The table is bounded, for each tenant on its own."""
    base = filled(make_base(record_queries="text"))
    base.recorder = Recorder(base.store.database, keep=3)
    for number in range(10):
        base.search(f"{QUESTION} {number}")

    kept = [query.question for query in base.last_queries(100)]

    assert len(kept) <= 2 * 3
    assert kept[-3:] == [f"{QUESTION} {number}" for number in (7, 8, 9)]


def test_queries_are_found_by_number(keeping: KnowledgeBase) -> None:
    """In the order asked for; a number that is not there is refused."""
    for number in range(3):
        keeping.search(f"{QUESTION} {number}")

    found = keeping.recorded_queries([3, 1])

    assert [query.no for query in found] == [3, 1]
    with pytest.raises(NotFoundError, match="recorded query '77'"):
        keeping.recorded_queries([77])


def test_many_threads_record_every_query(keeping: KnowledgeBase) -> None:
    """Nothing is lost between threads, and nothing waits for ever."""

    def ask() -> None:
        for _ in range(10):
            keeping.search(QUESTION)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(keeping.last_queries(1000)) == 40


def test_a_record_that_cannot_be_written_is_logged(make_base: Make) -> None:
    """Telemetry fails no query."""
    base = filled(make_base())
    entry = recorded(base.search(QUESTION), "default", with_text=False)
    path = base.store.folder / FILE
    recorder = Recorder(SqliteDatabase(path, writable=False), keep=3)

    with capture_logs() as logs:
        recorder.note("default", lambda: entry)
        recorder.close()

    assert [line["event"] for line in logs] == ["queries_not_recorded"]


def test_records_are_made_with_a_breath_between(make_base: Make) -> None:
    """Queries that are answered meanwhile wait for one record, not for all."""
    base = filled(make_base())
    entry = recorded(base.search(QUESTION), "default", with_text=False)
    recorder = Recorder(base.store.database, keep=3)
    made: list[float] = []
    both = threading.Event()

    def make() -> Recorded:
        made.append(time.monotonic())
        if len(made) == 2:
            both.set()
        return entry

    recorder.note("default", make)
    recorder.note("default", make)
    both.wait(60)
    recorder.close()

    assert made[1] - made[0] >= GATHERED_SECONDS / 3


def test_a_tenant_without_documents_is_not_recorded(make_base: Make) -> None:
    """A search does not make a tenant."""
    base = make_base(tenant="nobody")
    base.search(QUESTION)

    assert base.last_queries(10) == []
    assert base.store.tenants() == []


def test_a_record_does_not_wait_for_the_disk(keeping: KnowledgeBase) -> None:
    """The recorder's commits are not synchronous; those of documents are."""
    with keeping.store.database.relaxed() as recording:
        assert recording.pragma("synchronous") == 1
    with keeping.store.database.writing() as writer:
        assert writer.pragma("synchronous") == 2


def test_the_digest_sees_every_decision(keeping: KnowledgeBase) -> None:
    """Another reason for a drop is another digest."""
    found = keeping.search(QUESTION)
    [first, *rest] = found.selection.trace
    shorter = replace(found.selection, trace=tuple(rest))

    assert digest(found) == digest(keeping.search(QUESTION))
    assert digest(found) != digest(replace(found, selection=shorter))
    assert first.stage == "fuse_absolute"


def test_the_code_has_a_name() -> None:
    """Version and digest, the same as long as the files are."""
    assert code_version() == code_version()
    assert "+" in code_version()


def test_the_log_has_one_line_for_a_query_and_one_for_each_decision(
    keeping: KnowledgeBase,
) -> None:
    """Counters and fingerprints, never the question."""
    with capture_logs() as logs:
        found = keeping.search(QUESTION)

    [answered] = [line for line in logs if line["event"] == "query_answered"]
    assert answered["log_level"] == "info"
    assert answered["selected"] == len(found.selection.candidates)
    assert answered["configuration"] == found.fingerprints.configuration
    assert {"protected", "filtered_by_floor", "gated"} <= answered.keys()
    decided = [line for line in logs if line["event"] == "candidate_decided"]
    assert len(decided) == sum(1 for _ in found.selection.decisions())
    assert QUESTION not in repr(logs)


def test_levels_decide_what_is_logged(
    keeping: KnowledgeBase, capsys: pytest.CaptureFixture[str]
) -> None:
    """At info level no decisions; unconfigured, nothing at all."""
    keeping.search(QUESTION)
    assert capsys.readouterr().out == ""
    try:
        structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(20))
        keeping.search(QUESTION)
        replayed = capsys.readouterr().out
        structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(30))
        keeping.search(QUESTION)
        quiet = capsys.readouterr().out
    finally:
        structlog.reset_defaults()

    assert "query_answered" in replayed
    assert "candidate_decided" not in replayed
    assert quiet == ""


@pytest.mark.parametrize(
    "wrapper", [structlog.stdlib.BoundLogger, structlog.BoundLogger]
)
def test_loggers_of_any_kind_are_heard(
    keeping: KnowledgeBase,
    wrapper: type[structlog.BoundLogger],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The standard library's loggers are asked for their level, others just log."""
    caplog.set_level("INFO")
    structlog.configure(
        wrapper_class=wrapper,
        logger_factory=structlog.stdlib.LoggerFactory(),
        processors=[structlog.stdlib.render_to_log_kwargs],
    )

    keeping.search(QUESTION)

    assert [record.message for record in caplog.records] == ["query_answered"]


def test_settings_are_read_once_and_overrides_count_at_once(
    keeping: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The environment of a running service does not change under it."""
    assert keeping.configured().settings == keeping.configured().settings
    monkeypatch.setenv("KEPT_TOP_K", "1")

    assert keeping.configured().settings.model_dump()["top_k"] == 8
    keeping.override({"top_k": 2})
    assert keeping.configured().settings.model_dump()["top_k"] == 2
    assert isinstance(keeping.settings, Settings)
