"""Rerankers: one score per candidate in order, or an error."""

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest

from kept.errors import LLMError, LLMResponseParseError, MissingSignalError
from kept.kernel.model import Query
from kept.models.prompts import ContextRecord
from kept.models.rerank import EndpointReranker, ListwiseReranker
from kept.models.rerank_timing import TimedReranker
from kept.testing.tables import candidates
from loopback import (
    Act,
    Handler,
    Request,
    asking,
    patient,
    refuses,
    resets,
    says,
    sends,
    serving,
    settings,
)

QUERY = Query(text="when is the deadline")
POOL = candidates("""
    a 0.9 relevance=0.4 text=alpha
    b 0.8 relevance=0.7 text=beta
""")
SECRET = b"a secret of the tests"


def results(*pairs: tuple[int, float]) -> str:
    """Write the reply of a rerank service."""
    ranked = [{"index": index, "relevance_score": score} for index, score in pairs]
    return json.dumps({"results": ranked})


def endpoint_scores(act: Act, scale: str = "probability") -> Sequence[float]:
    """Ask a service that plays *act*."""
    with serving(act) as server:
        reranker = EndpointReranker(settings(server), scale, patient(retries=0))  # type: ignore[arg-type]
        try:
            return reranker.scores(QUERY, POOL)
        finally:
            reranker.close()


def test_relevance_needs_no_model() -> None:
    """The default reads what recall has measured, and is timed."""
    reranker = TimedReranker()

    before = reranker.last_milliseconds
    scores = reranker.scores(QUERY, POOL)

    assert reranker.id == "relevance"
    assert scores == [0.4, 0.7]
    assert before is None
    assert reranker.last_milliseconds is not None


def test_a_missing_relevance_is_an_error() -> None:
    """It is not taken for zero, and the clock still stops."""
    reranker = TimedReranker()

    with pytest.raises(MissingSignalError):
        reranker.scores(QUERY, [replace(POOL[0], signals={})])

    assert reranker.last_milliseconds is not None


def test_the_clock_is_no_part_of_equality() -> None:
    """Configurations compare; readings do not."""
    used = TimedReranker()
    used.scores(QUERY, POOL)

    assert used == TimedReranker()


def test_a_service_answers_in_its_own_order() -> None:
    """Results come ranked; the scores go back in the order of the candidates."""
    with serving(sends(results((1, 0.9), (0, 0.2)))) as server:
        reranker = EndpointReranker(settings(server), patience=patient())
        scores = reranker.scores(QUERY, POOL)
        reranker.close()

        assert scores == [0.2, 0.9]
        assert reranker.last_milliseconds is not None
        assert server.requests[0].path == "/v1/rerank"
        assert server.requests[0].payload == {
            "model": "loopback",
            "query": QUERY.text,
            "documents": ["alpha", "beta"],
            "top_n": 2,
        }


def test_raw_scores_become_probabilities() -> None:
    """With scale logit, any number is allowed."""
    scores = endpoint_scores(sends(results((0, -1e9), (1, 0.0))), scale="logit")

    assert scores == [0.0, 0.5]


@pytest.mark.parametrize(
    "act",
    [
        sends(results((0, 0.5))),
        sends(results((0, 0.5), (0, 0.6))),
        sends(results((0, 0.5), (2, 0.6))),
        sends(results((0, 0.5), (1, 0.6), (2, 0.1))),
        sends(results((0, 0.5), (1, 1.6))),
        sends(results((0, 0.5), (1, float("nan")))),
        sends("[]"),
        sends("<html>"),
        sends(""),
        refuses(500),
        resets,
    ],
)
def test_a_service_that_answers_anything_else_raises(act: Act) -> None:
    """The old order is never passed off as a new one."""
    with pytest.raises(LLMError):
        endpoint_scores(act)


def test_no_candidates_need_no_service() -> None:
    """Without candidates the model is not called."""
    with asking(refuses(500)) as (server, chat):
        reranker = EndpointReranker(settings(server), patience=patient())

        assert reranker.scores(QUERY, ()) == []
        assert ListwiseReranker(model=chat, secret=SECRET).scores(QUERY, ()) == []
        assert server.requests == []
        assert repr(reranker) == "EndpointReranker('loopback', scale='probability')"


def test_a_chat_model_scores_the_list() -> None:
    """Scores as JSON, with a record of the prompt."""
    records: list[ContextRecord] = []
    with asking(says('{"scores": [0.25, 1]}')) as (_, chat):
        reranker = ListwiseReranker(model=chat, secret=SECRET, record=records.append)

        assert reranker.scores(QUERY, POOL) == [0.25, 1.0]
        assert reranker.id == "loopback"
        assert reranker.last_milliseconds is not None

    assert records[0].template == "rerank"
    assert records[0].chunk_ids == ("a", "b")
    assert records[0].parameters["temperature"] == 0.0


@pytest.mark.parametrize(
    "reply",
    [
        '{"scores": [0.5]}',
        '{"scores": [0.5, 0.5, 0.5]}',
        '{"scores": [0.5, 1.5]}',
        '{"scores": [0.5, "1"]}',
        '{"scores": [0.5, true]}',
        '{"scores": [0.5, NaN]}',
        "[0.5, 0.5]",
        "0.5 0.5",
    ],
)
def test_a_list_that_does_not_fit_is_an_error(reply: str) -> None:
    """A wrong length or range is refused, not repaired."""
    with asking(says(reply)) as (_, chat), pytest.raises(LLMResponseParseError):
        ListwiseReranker(model=chat, secret=SECRET).scores(QUERY, POOL)


def test_long_passages_are_cut() -> None:
    """The model sees 1,200 characters of each passage at most."""
    pool = candidates(f"a 0.9 text={'x' * 5000}")

    def act(handler: Handler, request: Request) -> None:
        count = request.payload["messages"][-1]["content"].count("x")
        says('{"scores": [0.5]}' if count == 1200 else "no")(handler, request)

    with asking(act) as (_, chat):
        assert ListwiseReranker(model=chat, secret=SECRET).scores(QUERY, pool) == [0.5]
