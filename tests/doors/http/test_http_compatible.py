"""The APIs of others: OpenAI's vector stores and embeddings, rerank, Dify."""

import base64
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
import openai
import pytest
from house import House, Response, problem

from kept.errors import LLMConnectionError
from kept.models.embedders.hash import HashEmbedder

QUESTION = "how many days of leave do employees have?"


def fault(response: Response, status: int, code: str) -> dict[str, Any]:
    """Return the error of a response in OpenAI's shape, which must be this one."""
    body: dict[str, Any] = response.json()
    assert (response.status_code, body["error"]["code"]) == (status, code), body
    assert body.keys() == {"error"}
    error: dict[str, Any] = body["error"]
    assert error.keys() == {"message", "type", "param", "code"}
    return error


def openai_client(house: House, key: str | None = None) -> openai.OpenAI:
    """Return OpenAI's own client, connected to the app in this process."""
    return openai.OpenAI(
        api_key=key or house.key(),
        base_url="http://127.0.0.1/v1",
        http_client=house.client,
        max_retries=0,
    )


@pytest.fixture
def stocked(house: House) -> House:
    """Return an app with two documents."""
    house.add(
        "Employees have 28 days of leave a year.",
        title="Handbook",
        metadata={"year": 2026},
    )
    house.add("The pump TW-C235 costs 410 euro.", title="Prices")
    return house


def test_a_vector_store_is_searched(stocked: House) -> None:
    """The passages of the search, as OpenAI's clients read them."""
    path = "/v1/vector_stores/default/search"
    body = {"query": QUESTION, "max_num_results": 3, "rewrite_query": False}

    reported = stocked.ask("POST", path, json=body).json()
    own = stocked.search(QUESTION, k=3).json()["selected"]

    assert reported["object"] == "vector_store.search_results.page"
    assert [one["attributes"]["chunk_id"] for one in reported["data"]] == [
        one["chunk_id"] for one in own
    ]
    first = reported["data"][0]
    assert first["filename"] == "Handbook"
    assert first["score"] == own[0]["relevance"]
    assert first["attributes"]["year"] == 2026
    assert first["content"] == [{"type": "text", "text": own[0]["text"]}]
    assert reported["has_more"] is False


def test_filters_and_thresholds_of_a_vector_store(stocked: House) -> None:
    """Conditions on attributes narrow it; what cannot be done is refused."""
    path = "/v1/vector_stores/default/search"

    def found(**more: object) -> list[str]:
        body = {"query": [QUESTION, "TW-C235"], **more}
        data = stocked.ask("POST", path, json=body).json()["data"]
        return [one["filename"] for one in data]

    is_2026 = {"type": "eq", "key": "year", "value": 2026}

    assert set(found()) == {"Handbook", "Prices"}
    assert found(filters=is_2026) == ["Handbook"]
    assert found(filters={"type": "and", "filters": [is_2026]}) == ["Handbook"]
    assert found(ranking_options={"score_threshold": 1.0}) == []


def test_a_vector_store_of_another_tenant_is_not_found(stocked: House) -> None:
    """Its name is the tenant's."""
    path = "/v1/vector_stores/globex/search"

    fault(stocked.ask("POST", path, json={"query": "a b"}), 404, "not_found")


def test_texts_are_embedded(stocked: House) -> None:
    """As the knowledge base would, as numbers or as base64."""
    texts = ["days of leave", "a pump"]
    body = {"input": texts, "model": "kept"}

    plain = stocked.ask("POST", "/v1/embeddings", json=body).json()
    packed = stocked.ask(
        "POST", "/v1/embeddings", json={**body, "encoding_format": "base64"}
    ).json()

    expected = stocked.service.base.embedder.embed(texts)
    assert [one["index"] for one in plain["data"]] == [0, 1]
    for one, other, vector in zip(plain["data"], packed["data"], expected, strict=True):
        assert np.array(one["embedding"], dtype=np.float32).tolist() == vector.tolist()
        data = np.frombuffer(base64.b64decode(other["embedding"]), dtype="<f4")
        assert data.tolist() == vector.tolist()
    assert plain["model"] == stocked.service.base.embedder.id
    assert plain["usage"]["total_tokens"] > 0
    for row in stocked.audit(action="embeddings"):
        assert (row["outcome"], row["texts"]) == ("answered", 2)
        assert (row["embedder"], row["question"]) == (plain["model"], None)
    assert len(stocked.audit(action="embeddings")) == 2


def test_an_embedder_that_fails_is_in_the_audit(
    stocked: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the code that the client received."""

    def unreachable(embedder: HashEmbedder, texts: Sequence[str]) -> NoReturn:
        msg = "the embedder is not there"
        raise LLMConnectionError(msg)

    monkeypatch.setattr(HashEmbedder, "embed", unreachable)

    sent = stocked.ask("POST", "/v1/embeddings", json={"input": "a pump"})

    fault(sent, 502, "backend_failed")
    [row] = stocked.audit(action="embeddings")
    assert (row["outcome"], row["code"]) == ("failed", "backend_failed")


def test_embedding_has_limits(stocked: House) -> None:
    """Other models, empty texts and too many are refused."""

    def sent(**body: object) -> Response:
        return stocked.ask("POST", "/v1/embeddings", json=body)

    fault(sent(input="a", model="other"), 404, "not_found")
    fault(sent(input=["a", " "]), 422, "invalid_input")
    fault(sent(input=["a"] * 129), 422, "invalid_input")
    fault(sent(input=[]), 422, "invalid_request")


def test_dimensions_are_honoured_or_refused(stocked: House) -> None:
    """A vector of another length than was asked for is never returned."""
    length = stocked.service.base.embedder.dimension

    def sent(dimensions: int) -> Response:
        body = {"input": "a pump", "dimensions": dimensions}
        return stocked.ask("POST", "/v1/embeddings", json=body)

    assert len(sent(length).json()["data"][0]["embedding"]) == length
    refused = fault(sent(length - 1), 422, "invalid_input")
    assert f"have {length}" in refused["message"]


@pytest.mark.parametrize("tokens", [[15339, 1917], [[15339], [1917, 0]]])
def test_tokens_of_another_tokenizer_are_refused(
    stocked: House, tokens: object
) -> None:
    """They would be other words to us, which no error would ever show."""
    sent = stocked.ask("POST", "/v1/embeddings", json={"input": tokens})

    refused = fault(sent, 422, "invalid_input")
    assert "check_embedding_ctx_length=False" in refused["message"]


def test_openais_own_client_reads_models_stores_and_files(stocked: House) -> None:
    """Lists, single objects and pages, as its classes parse them."""
    client = openai_client(stocked)

    models = [model.id for model in client.models.list()]
    model = client.models.retrieve("kept")
    stores = list(client.vector_stores.list())
    store = client.vector_stores.retrieve("default")
    files = list(client.vector_stores.files.list("default", limit=1))
    file = client.vector_stores.files.retrieve(files[0].id, vector_store_id="default")
    [vector] = client.embeddings.create(input="a pump", model="kept").data
    found = client.vector_stores.search("default", query=QUESTION)

    assert models == [stocked.service.base.embedder.id, "kept"]
    assert model.object == "model"
    assert [one.id for one in stores] == ["default"] == [store.id]
    assert (store.status, store.file_counts.completed) == ("completed", 2)
    assert [one.attributes["filename"] for one in files] == ["Handbook", "Prices"]
    assert file == files[0]
    assert file.attributes == {"year": 2026, "filename": "Handbook"}
    assert len(vector.embedding) == stocked.service.base.embedder.dimension
    assert found.data[0].filename == "Handbook"


def test_openais_own_client_reads_our_errors(stocked: House) -> None:
    """Each status is its class, and the message, the type and the code arrive."""
    client = openai_client(stocked)
    stranger = openai_client(stocked, key="kept_wrong_key")

    with pytest.raises(openai.NotFoundError) as missing:
        client.vector_stores.retrieve("globex")
    with pytest.raises(openai.AuthenticationError) as unknown:
        stranger.models.list()
    with pytest.raises(openai.UnprocessableEntityError) as wrong:
        client.embeddings.create(input="a", model="kept", encoding_format="hex")  # type: ignore[call-overload]

    assert (missing.value.code, missing.value.type) == (
        "not_found",
        "invalid_request_error",
    )
    assert (unknown.value.code, unknown.value.type) == (
        "unauthenticated",
        "authentication_error",
    )
    assert wrong.value.param == "encoding_format"


def test_texts_are_reranked_as_if_they_were_stored(stocked: House) -> None:
    """A text of the knowledge base has the relevance that a search gives it."""
    own = stocked.search(QUESTION).json()["selected"][0]
    texts = ["The weather is fine.", f"Handbook\n{own['text']}"]

    reported = stocked.ask(
        "POST",
        "/v1/rerank",
        json={"query": QUESTION, "documents": texts, "return_documents": True},
    ).json()

    best = reported["results"][0]
    assert [one["index"] for one in reported["results"]] == [1, 0]
    assert best["relevance_score"] == pytest.approx(own["relevance"])
    assert best["document"] == {"text": texts[1]}
    [row] = stocked.audit(action="rerank")
    assert (row["outcome"], row["texts"]) == ("answered", 2)


def test_reranking_takes_objects_and_gives_the_best(stocked: House) -> None:
    """Only as many as asked for come back."""
    documents = [{"text": "a pump"}, {"text": "days of leave"}]
    body = {"query": QUESTION, "documents": documents, "top_n": 1}

    reported = stocked.ask("POST", "/v1/rerank", json=body).json()
    wrong = stocked.ask(
        "POST", "/v1/rerank", json={"query": "a b", "documents": [{"title": "x"}]}
    )

    assert reported["results"][0]["index"] == 1
    assert len(reported["results"]) == 1
    problem(wrong, 422, "invalid_input")


def test_dify_retrieves(stocked: House) -> None:
    """Records with a score, above the threshold."""
    body = {
        "knowledge_id": "default",
        "query": QUESTION,
        "retrieval_setting": {"top_k": 2, "score_threshold": 0.1},
        "metadata_condition": None,
    }

    reported = stocked.ask("POST", "/retrieval", json=body).json()
    none = stocked.ask(
        "POST",
        "/retrieval",
        json={**body, "retrieval_setting": {"top_k": 2, "score_threshold": 1.0}},
    ).json()
    other = stocked.ask("POST", "/retrieval", json={**body, "knowledge_id": "globex"})

    [record] = [r for r in reported["records"] if r["title"] == "Handbook"]
    assert record["content"] == "Employees have 28 days of leave a year."
    assert 0.1 <= record["score"] <= 1.0
    assert record["metadata"]["year"] == 2026
    assert none == {"records": []}
    assert (other.status_code, other.json()["error_code"]) == (404, 2001)
    assert "globex" in other.json()["error_msg"]


def test_dify_gets_its_own_shape_of_error(stocked: House) -> None:
    """A number of its API and a message, for a missing key too."""
    body = {"knowledge_id": "default", "query": "   "}

    empty = stocked.ask("POST", "/retrieval", json=body)
    stranger = stocked.client.post("/retrieval", json=body)

    assert (empty.status_code, empty.json()["error_code"]) == (422, 422)
    assert empty.json()["error_msg"] == "the question is empty; ask something"
    assert (stranger.status_code, stranger.json()["error_code"]) == (401, 1002)
