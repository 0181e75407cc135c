"""LangChain: in a real chain, as retriever and as guard, with the record."""

import asyncio
import json
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnablePassthrough
from langchain_core.structured_query import (
    Comparator,
    Comparison,
    FilterDirective,
    Operation,
    Operator,
)
from langchain_tests.integration_tests import RetrieversIntegrationTests

import kept
from kept import Filters, Found, KnowledgeBase, Selecting
from kept.doors.langchain import KeptCompressor, KeptGuard, KeptRetriever
from kept.errors import InputError
from kept.search.render import fingerprints_json, record_json

QUESTION = "When does the Leeds office open?"
OFFICES = "When do the offices open and close?"
OFF_TOPIC = "how do I bake sourdough bread at home"
LEEDS = "The Leeds office opens at eight and closes at six."
PUMP = "The pump of model TW-C235 costs 410 euro without tax."


class Theirs(BaseRetriever):
    """Another retriever: returns everything it has for any question."""

    documents: list[Document]

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        return self.documents


@pytest.fixture
def theirs() -> Theirs:
    """Return a retriever that puts the pump first."""
    return Theirs(
        documents=[
            Document(page_content=PUMP, metadata={"source": "pump", "score": 0.1}),
            Document(page_content=LEEDS, metadata={"source": "leeds", "score": 0.7}),
            Document(page_content=LEEDS, metadata={"source": "leeds", "score": 0.7}),
        ]
    )


@pytest.fixture
def compressor() -> Iterator[KeptCompressor]:
    """Return a guard without a knowledge base."""
    with Selecting(embedder="hash") as selecting:
        yield KeptCompressor(selecting=selecting)


def read(documents: list[Document]) -> str:
    """Return the texts as a prompt shows them."""
    return "\n".join(document.page_content for document in documents)


def test_a_chain_answers_from_kept(base: KnowledgeBase) -> None:
    """The passage reaches the prompt of a real chain."""
    prompts: list[str] = []
    prompt = ChatPromptTemplate.from_template("{context}\n\n{question}")
    chain = (
        {"context": KeptRetriever(base=base) | read, "question": RunnablePassthrough()}
        | prompt
        | (lambda value: prompts.append(value.to_string()) or value)
        | FakeListChatModel(responses=["At eight."])
        | StrOutputParser()
    )

    assert chain.invoke(QUESTION) == "At eight."
    assert LEEDS in prompts[0]
    assert PUMP not in prompts[0]


def test_a_document_carries_its_story_in_less_than_a_kilobyte(
    base: KnowledgeBase,
) -> None:
    """Traces and checkpoints copy metadata; the record goes to who asks for it."""
    found: list[Found] = []
    retriever = KeptRetriever(base=base, on_found=found.append)

    documents = retriever.invoke(QUESTION)

    first = documents[0]
    assert first.page_content == LEEDS
    assert first.metadata["source"] == "memos/leeds"
    story = first.metadata["kept"]
    assert story["chunk_id"] == first.id
    assert 0.0 < story["relevance"] <= 1.0
    assert story["fingerprints"] == fingerprints_json(found[0].fingerprints)
    sizes = [len(json.dumps(one.metadata, allow_nan=False)) for one in documents]
    assert max(sizes) < 1_000


def test_a_call_may_say_how_many_and_which(base: KnowledgeBase) -> None:
    """What is given to invoke counts before what the retriever was made with."""
    retriever = KeptRetriever(base=base, k=4)

    assert len(retriever.invoke(OFFICES, k=1)) == 1
    assert len(retriever.invoke(OFFICES)) == 2
    assert retriever.invoke(OFFICES, filters={"tags": ["staff"]}) == []
    assert len(asyncio.run(retriever.ainvoke(OFFICES, k=1))) == 1


def test_a_retriever_pickles(base: KnowledgeBase) -> None:
    """A worker of another process opens the store again."""
    retriever = KeptRetriever(base=base, k=1)

    again = pickle.loads(pickle.dumps(retriever))  # noqa: S301 -- our own

    with again.base:
        assert again.base is not base
        assert again.invoke(QUESTION) == retriever.invoke(QUESTION)


def test_a_pickle_whose_store_is_gone_is_refused(tmp_path: Path) -> None:
    """Nothing is made where there was nothing."""
    with kept.open(tmp_path / "kb", create=True, embedder="hash") as opened:
        packed = pickle.dumps(KeptRetriever(base=opened))
    (tmp_path / "kb").rename(tmp_path / "moved")

    with pytest.raises(InputError, match="there is no knowledge base in"):
        pickle.loads(packed)  # noqa: S301 -- our own
    assert not (tmp_path / "kb").exists()


def test_a_guard_pickles(theirs: Theirs, compressor: KeptCompressor) -> None:
    """With the settings of its own, and no connection."""
    again = pickle.loads(pickle.dumps(compressor))  # noqa: S301 -- our own

    expected = compressor.compress_documents(theirs.documents, QUESTION)
    assert again.compress_documents(theirs.documents, QUESTION) == expected


@pytest.mark.anyio
class TestStandard(RetrieversIntegrationTests):
    """LangChain's own tests of retrievers, all of them."""

    @pytest.fixture(autouse=True)
    def _stocked(self, tmp_path: Path) -> Iterator[None]:
        with kept.open(tmp_path / "kb", create=True, embedder="hash") as opened:
            for city in ("Leeds", "Kiel", "Lyon", "Porto"):
                opened.add(f"When does the office open? The {city} office opens at 8.")
            self.opened = opened
            yield

    @pytest.fixture
    def anyio_backend(self) -> str:
        """Run the asynchronous one under asyncio."""
        return "asyncio"

    @property
    def retriever_constructor(self) -> type[KeptRetriever]:
        """Ours."""
        return KeptRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, object]:
        """The knowledge base."""
        return {"base": self.opened}

    @property
    def retriever_query_example(self) -> str:
        """One that four documents answer."""
        return "when does the office open"


def test_async_gives_the_same(base: KnowledgeBase) -> None:
    """Both ainvoke and abatch answer as invoke does."""
    retriever = KeptRetriever(base=base, k=1)

    async def ask() -> list[list[Document]]:
        return [await retriever.ainvoke(QUESTION), *await retriever.abatch([QUESTION])]

    assert asyncio.run(ask()) == [retriever.invoke(QUESTION)] * 2


def test_k_and_filters_reach_the_search(base: KnowledgeBase) -> None:
    """One comes back of two; only what is tagged takes part."""
    assert len(KeptRetriever(base=base, k=1).invoke("office opens closes at")) == 1

    tagged = KeptRetriever(base=base, filters=Filters(tags=("staff",)))
    assert tagged.invoke(QUESTION) == []


@pytest.mark.parametrize(
    ("filters", "texts"),
    [
        (Comparison(Comparator.GTE, "year", 2020), [LEEDS]),
        (Comparison(Comparator.CONTAIN, "team", "eop"), [LEEDS]),
        (Comparison(Comparator.CONTAIN, "year", 2026), [LEEDS]),
        (
            Operation(Operator.NOT, [Comparison(Comparator.LT, "year", 2020)]),
            [LEEDS],
        ),
        (
            Operation(
                Operator.OR,
                [
                    Comparison(Comparator.EQ, "team", "sales"),
                    Comparison(
                        Comparator.GT,
                        "seen",
                        {"type": "date", "date": "2026-01-01"},
                    ),
                ],
            ),
            [LEEDS],
        ),
        (
            Operation(
                Operator.AND,
                [
                    Comparison(Comparator.NIN, "year", [2026]),
                    Comparison(Comparator.EQ, "team", "people"),
                ],
            ),
            [],
        ),
    ],
)
def test_filters_of_a_structured_query_narrow_the_search(
    make_base: Callable[..., KnowledgeBase],
    filters: FilterDirective,
    texts: list[str],
) -> None:
    """Comparisons and operations mean what they mean elsewhere."""
    known = {"year": 2026, "team": "people", "seen": "2026-02-01"}
    own = make_base()
    own.add(LEEDS, metadata=known)
    own.add("The Leeds office opens at nine, or so it was.", metadata={"year": 2019})

    found = KeptRetriever(base=own, filters=filters).invoke(QUESTION)

    assert [one.page_content for one in found] == texts


def test_a_comparison_that_is_not_ours_is_refused(base: KnowledgeBase) -> None:
    """The error says what finds a part of a text."""
    like = Comparison(Comparator.LIKE, "team", "%a%")

    with pytest.raises(InputError, match="cannot be compared by 'like'"):
        KeptRetriever(base=base, filters=like).invoke(QUESTION)


def test_a_refusal_is_an_empty_list_and_is_heard_of(base: KnowledgeBase) -> None:
    """The chain gets nothing; on_found gets the reason."""
    heard: list[Found] = []

    assert KeptRetriever(base=base, on_found=heard.append).invoke(OFF_TOPIC) == []

    assert heard[0].refused is not None
    assert heard[0].refused.reason == "nothing_relevant"


def test_the_guard_takes_away_what_does_not_answer(
    theirs: Theirs, compressor: KeptCompressor
) -> None:
    """Their first document is gone, their own metadata is not."""
    found: list[Found] = []
    compressor.on_found = found.append
    guard = KeptGuard(retriever=theirs, compressor=compressor)

    [document] = guard.invoke(QUESTION)

    assert document.page_content == LEEDS
    assert document.metadata["source"] == "leeds"
    record = record_json(found[0].selection)
    reasons = [
        decision["reason"]
        for stage in record["stages"]
        for decision in stage["decisions"]
        if decision["verdict"] == "dropped"
    ]
    assert reasons == ["repeated", "relevance_floor"]
    assert "kept" not in theirs.documents[1].metadata


def test_the_guard_refuses_off_topic(
    theirs: Theirs, compressor: KeptCompressor
) -> None:
    """Documents that any question gets answer none."""
    guard = KeptGuard(retriever=theirs, compressor=compressor)

    assert guard.invoke(OFF_TOPIC) == []
    assert asyncio.run(guard.ainvoke(OFF_TOPIC)) == []
    assert asyncio.run(guard.ainvoke(QUESTION)) == guard.invoke(QUESTION)


def test_scores_in_the_metadata_can_be_read(
    theirs: Theirs, compressor: KeptCompressor
) -> None:
    """Under their key, once it is said what they mean."""
    scored = compressor.model_copy(update={"scores": "distance", "score_key": "score"})

    [document] = scored.compress_documents(theirs.documents, QUESTION)

    assert document.metadata["kept"]["signals"]["given"] == 0.7
    with pytest.raises(InputError, match="has no score"):
        compressor.model_copy(update={"scores": "distance"}).compress_documents(
            theirs.documents, QUESTION
        )


def test_a_document_without_an_id_can_be_refused(theirs: Theirs) -> None:
    """By default an id is derived from the text."""
    with Selecting(embedder="hash") as selecting:
        strict = KeptCompressor(selecting=selecting, ids="required")

        with pytest.raises(InputError, match=r"passage 1 .* has no id"):
            strict.compress_documents(theirs.documents, QUESTION)
