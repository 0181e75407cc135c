"""Models that are added: any ONNX encoder or cross-encoder, from a folder or a hub."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_models
from file_server import Files, serving_files

import kept
from commands import kept as kept_command
from kept.errors import ModelMissingError, NotFoundError, SettingsError
from kept.models import local_models
from kept.models.embedders.local import LocalEmbedder
from kept.models.local_models import ModelUse
from kept.testing.contracts import EmbedderContract

LEAVE = "Employees have 28 days of leave a year"
PUMP = "The pump costs 410 euro and is delivered from Leeds"
QUESTION = "how many days of leave do employees have"
E5 = "intfloat/multilingual-e5-small"


@pytest.fixture(autouse=True)
def _own_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep added models in a folder of the test."""
    monkeypatch.setenv("KEPT_MODELS_DIR", str(tmp_path / "models"))


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Files]:
    """Run a model hub."""
    with serving_files() as files:
        monkeypatch.setenv("KEPT_MODEL_HUB", files.url)
        yield files


def put(hub: Files, repository: str, folder: Path) -> None:
    """Publish a folder as the hub has it, its graph in the folder onnx."""
    for path in folder.rglob("*"):
        if path.is_file():
            name = str(path.relative_to(folder))
            name = "onnx/model.onnx" if name == "model.onnx" else name
            hub.content[f"/{repository}/resolve/main/{name}"] = path.read_bytes()


class TestLocalEmbedder(EmbedderContract):
    """An added model keeps the contract of every embedder."""

    @pytest.fixture(autouse=True)
    def _added(self, tmp_path: Path) -> None:
        card = local_models.add(str(tiny_models.encoder(tmp_path / "tiny-en")))
        self.card = card

    def embedder(self) -> LocalEmbedder:
        """Return the tiny one."""
        return LocalEmbedder(self.card)


class TestOtherTokenizer(TestLocalEmbedder):
    """So does one with another tokenizer than BERT's."""

    @pytest.fixture(autouse=True)
    def _added(self, tmp_path: Path) -> None:
        folder = tiny_models.encoder(tmp_path / "tiny-level", bert=False)
        self.card = local_models.add(str(folder))


def test_an_added_encoder_searches_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Added on the command line, used as any other embedder."""
    folder = tiny_models.encoder(tmp_path / "Tiny-EN")

    output = kept_command("models", "add", folder).out
    monkeypatch.setenv("KEPT_EMBEDDER", "tiny-en")
    with kept.open(tmp_path / "kb", create=True) as base:
        base.add(LEAVE, title="Leave")
        base.add(PUMP, title="Pump")
        found = base.search(QUESTION)

    assert "added the encoder tiny-en" in output
    assert "--embedder tiny-en" in output
    assert [one.title for one in found] == ["Leave"]


def test_what_the_repository_declares_is_used(tmp_path: Path) -> None:
    """Prompts, pooling and length of sentence-transformers' own files."""
    folder = tiny_models.encoder(
        tmp_path / "tiny",
        prompts={"prompts": {"query": "query ", "document": "passage "}},
        pooling={"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False},
        model={"max_position_embeddings": 66},
    )

    card = local_models.add(str(folder))

    assert (card.query_prefix, card.passage_prefix) == ("query ", "passage ")
    assert (card.pooling, card.max_tokens, card.kind) == ("cls", 64, "encoder")


def test_a_prefix_goes_before_a_question_and_another_before_a_passage(
    tmp_path: Path,
) -> None:
    """The same text is another vector as a question."""
    folder = tiny_models.encoder(tmp_path / "tiny")
    usage = ModelUse(query_prefix="query ", passage_prefix="passage ")
    plain = LocalEmbedder(local_models.add(str(folder), name="plain"))
    marked = LocalEmbedder(local_models.add(str(folder), name="marked", usage=usage))

    assert np.array_equal(marked.embed_query([LEAVE]), plain.embed([f"query {LEAVE}"]))
    assert np.array_equal(marked.embed([LEAVE]), plain.embed([f"passage {LEAVE}"]))
    assert np.array_equal(plain.embed_query([LEAVE]), plain.embed([LEAVE]))


def test_what_is_given_counts_before_what_is_declared(tmp_path: Path) -> None:
    """Options first, then the repository, then the recipe of the family."""
    folder = tiny_models.encoder(
        tmp_path / "e5-small-tiny", prompts={"prompts": {"query": "declared "}}
    )

    card = local_models.add(str(folder), usage=ModelUse(pooling="last", max_tokens=9))

    assert card.query_prefix == "declared "
    assert card.passage_prefix == "passage: "
    assert (card.pooling, card.max_tokens) == ("last", 9)


@pytest.mark.parametrize(
    ("repository", "query", "passage", "pooling"),
    [
        (E5, "query: ", "passage: ", "mean"),
        ("BAAI/bge-small-en-v1.5", "Represent this sentence for", "", "cls"),
        (
            "nomic-ai/nomic-embed-text-v1.5",
            "search_query: ",
            "search_document: ",
            "mean",
        ),
        ("Qwen/Qwen3-Embedding-0.6B", "Instruct: Given a web", "", "last"),
        ("intfloat/multilingual-e5-large-instruct", "Instruct: Given a", "", "mean"),
        ("someone/else", "", "", None),
    ],
)
def test_families_have_recipes(
    repository: str, query: str, passage: str, pooling: str | None
) -> None:
    """What their model cards say in prose, and no file declares."""
    recipe = local_models.recipe_for(repository)

    assert (recipe.query_prefix or "").startswith(query)
    assert (recipe.passage_prefix or "") == passage
    assert recipe.pooling == pooling


def test_vectors_are_pooled_as_the_card_says(tmp_path: Path) -> None:
    """The mean of the tokens, the first of them, or the last."""
    folder = str(tiny_models.encoder(tmp_path / "tiny"))
    mean, first, last = (
        LocalEmbedder(local_models.add(folder, name=f"by-{one}", usage=usage))
        for one in ("mean", "cls", "last")
        for usage in [ModelUse(pooling=one)]
    )

    rows = np.vstack([one.embed([LEAVE]) for one in (mean, first, last)])

    alike = (rows @ rows.T)[np.triu_indices(3, 1)]
    assert (alike < 0.9999).all()


def test_a_model_is_fetched_from_the_hub(tmp_path: Path, hub: Files) -> None:
    """Graph, tokenizer and configurations; the recipe fills in the prefixes."""
    put(hub, E5, tiny_models.encoder(tmp_path / "published"))

    card = local_models.add(E5)

    assert card.name == "multilingual-e5-small"
    assert card.source == E5
    assert card.query_prefix == "query: "
    assert local_models.verify(card) == []
    assert not list(local_models.added_folder().glob(".*"))


def test_a_download_that_breaks_off_is_continued(tmp_path: Path, hub: Files) -> None:
    """The next attempt asks only for what is missing."""
    folder = tiny_models.encoder(tmp_path / "published")
    put(hub, E5, folder)
    whole = (folder / "model.onnx").stat().st_size
    hub.cuts = [10**9, *[100] * 5]
    with pytest.raises(ModelMissingError, match="without sending complete message"):
        local_models.add(E5)

    card = local_models.add(E5)

    assert card.files["model.onnx"]
    ranges = [one.range for one in hub.asked if one.target.endswith("model.onnx")]
    assert ranges[5] == "bytes=500-"
    assert whole > 600


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("nowhere/at-all", "no nowhere/at-all with a tokenizer.json"),
        (E5, r"has no ONNX graph .*optimum-cli export onnx"),
        ("./nowhere", "neither a folder nor a repository"),
    ],
)
def test_a_source_without_a_model_is_refused(
    source: str, problem: str, tmp_path: Path, hub: Files
) -> None:
    """The message says what is missing and how to make it."""
    tiny_models.tokenizer(tmp_path)
    file = (tmp_path / "tokenizer.json").read_bytes()
    hub.content[f"/{E5}/resolve/main/tokenizer.json"] = file

    with pytest.raises((ModelMissingError, SettingsError), match=problem):
        local_models.add(source)

    assert local_models.added() == []


def test_a_folder_without_a_tokenizer_is_refused(tmp_path: Path) -> None:
    """Both files are needed."""
    folder = tiny_models.encoder(tmp_path / "tiny")
    (folder / "tokenizer.json").unlink()

    with pytest.raises(ModelMissingError, match=r"has no tokenizer\.json"):
        local_models.add(str(folder))


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"inputs": ("input_ids", "pixel_values")}, "the graph wants pixel_values"),
        ({"constant": True}, "returns the same for two different texts"),
    ],
)
def test_a_graph_that_is_no_encoder_is_refused(
    tmp_path: Path, options: dict[str, Any], problem: str
) -> None:
    """It is tried before it counts."""
    folder = tiny_models.encoder(tmp_path / "tiny", **options)

    with pytest.raises(ModelMissingError, match=problem):
        local_models.add(str(folder))

    assert local_models.added() == []


@pytest.mark.parametrize(
    ("configs", "problem"),
    [
        ({"pooling": {"pooling_mode_max_tokens": True}}, "the model pools by max, exp"),
        ({"pooling": {"pooling_mode": "weightedmean"}}, "pools by weightedmean"),
        ({"modules": [{"type": "sentence_transformers.models.Dense"}]}, "Dense layer"),
    ],
)
def test_what_would_give_other_vectors_is_refused(
    tmp_path: Path, configs: dict[str, Any], problem: str
) -> None:
    """A model is used as it was trained, or not at all."""
    folder = tiny_models.encoder(tmp_path / "tiny", **configs)

    with pytest.raises(ModelMissingError, match=problem):
        local_models.add(str(folder))


@pytest.mark.parametrize(
    ("config", "pooling"),
    [
        ({"pooling_mode_cls_token": False, "pooling_mode_lasttoken": True}, "last"),
        ({"pooling_mode": "cls"}, "cls"),
        ({}, "mean"),
    ],
)
def test_pooling_is_read_as_old_and_new_versions_write_it(
    tmp_path: Path, config: dict[str, Any], pooling: str
) -> None:
    """Flags before version 6 of sentence-transformers, a name since."""
    folder = tiny_models.encoder(tmp_path / "tiny", pooling=config)

    assert local_models.add(str(folder)).pooling == pooling


def test_a_file_that_is_no_graph_is_refused(tmp_path: Path) -> None:
    """The runtime's own words, in one sentence."""
    folder = tiny_models.encoder(tmp_path / "tiny")
    (folder / "model.onnx").write_bytes(b"version https://git-lfs.github.com/spec/v1")

    with pytest.raises(ModelMissingError, match="no graph that onnxruntime can run"):
        local_models.add(str(folder))


@pytest.mark.parametrize("name", ["minilm", "openai", "hash", "Two Words"])
def test_a_name_is_not_one_of_our_own(tmp_path: Path, name: str) -> None:
    """Nothing that is built in is replaced."""
    folder = tiny_models.encoder(tmp_path / "tiny")

    with pytest.raises(SettingsError, match="cannot be called"):
        local_models.add(str(folder), name=name)


@pytest.mark.parametrize("classes", [1, 2])
def test_an_added_cross_encoder_reranks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, classes: int
) -> None:
    """One score, or no and yes, become a probability."""
    local_models.add(str(tiny_models.cross_encoder(tmp_path / "ce", classes=classes)))
    monkeypatch.setenv("KEPT_RERANKER", "ce")
    monkeypatch.setenv("KEPT_RERANK_FROM", "0")
    monkeypatch.setenv("KEPT_RERANK_BELOW", "1")

    with kept.open(tmp_path / "kb", create=True, embedder="hash") as base:
        base.add(LEAVE, title="Leave")
        base.add("The year after leave Employees", title="Year")
        found = base.search(QUESTION)

    [step] = [s for s in found.selection.trace if s.stage == "opportunistic_rerank"]
    assert step.facts["reranker"] == local_models.card_of("ce").id
    assert found[0].title == "Leave"
    assert 0.5 < found[0].candidate.signals["rerank"] < 1


def test_a_model_of_three_classes_is_no_reranker(tmp_path: Path) -> None:
    """Which of them is relevance, nobody knows."""
    with pytest.raises(ModelMissingError, match="sorts pairs into 3 classes"):
        local_models.add(str(tiny_models.cross_encoder(tmp_path / "ce", classes=3)))


def test_an_added_model_is_listed_verified_and_removed(tmp_path: Path) -> None:
    """By the commands that the shipped model has."""
    local_models.add(str(tiny_models.encoder(tmp_path / "tiny")))

    assert "tiny" in kept_command("models", "list").out
    assert "sound" in kept_command("models", "verify", "tiny").out
    graph = local_models.card_of("tiny").folder / "model.onnx"
    graph.write_bytes(graph.read_bytes() + b"x")
    damaged = kept_command("models", "verify", "tiny")
    assert (damaged.code, "model.onnx has changed" in damaged.out) == (8, True)
    assert "removed" in kept_command("models", "remove", "tiny").out
    with pytest.raises(NotFoundError, match="'kept models add' adds one; there are: n"):
        local_models.card_of("tiny")


def test_adding_again_replaces(tmp_path: Path) -> None:
    """With other options, the vectors are those of another model."""
    folder = tiny_models.encoder(tmp_path / "tiny")
    first = local_models.add(str(folder))

    second = local_models.add(str(folder), usage=ModelUse(query_prefix="query "))

    assert first.id != second.id
    assert [card.id for card in local_models.added()] == [second.id]


def test_a_long_text_is_cut_at_the_models_length(tmp_path: Path) -> None:
    """What follows does not count, and a pair loses the passage's end."""
    usage = ModelUse(max_tokens=8)
    folder = tiny_models.encoder(tmp_path / "tiny")
    embedder = LocalEmbedder(local_models.add(str(folder), usage=usage))

    short, long = embedder.embed([f"{LEAVE}", f"{LEAVE} {PUMP}"])

    assert np.array_equal(short, long)
