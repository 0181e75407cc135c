"""Models that a program brings: any object with a port's method, checked."""

import runpy
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray

import kept
from kept.errors import (
    BackendError,
    BadVectorError,
    EmbedderError,
    EmbedderMismatchError,
    SettingsError,
)
from kept.kernel.model import Candidate, Query

LEAVE = "Employees have 28 days of leave a year, and five more after ten years."
PUMP = "The pump TW-C235 costs 410 euro and is delivered from Leeds within a week."
QUESTION = "how many days of leave do employees have"
LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"


class Letters:
    """Embeds by counting letters: plain lists, of any length."""

    id = "letters-1"

    def __init__(self) -> None:
        self.passages: list[str] = []

    def embed(self, texts: list[str]) -> list[list[float]]:
        self.passages += texts
        return [[1.0 + text.lower().count(one) for one in LETTERS] for text in texts]


class Asymmetric(Letters):
    """Embeds questions in another way."""

    def __init__(self) -> None:
        super().__init__()
        self.questions: list[str] = []

    def embed_query(self, texts: list[str]) -> NDArray[np.float64]:
        self.questions += texts
        return np.asarray(super().embed(texts)) * 7.5


def opened(folder: Path, **models: object) -> kept.KnowledgeBase:
    return kept.open(folder / "kb", create=True, **cast("Any", models))


def filled(folder: Path, **models: object) -> kept.KnowledgeBase:
    base = opened(folder, **models)
    base.add(LEAVE, title="Leave")
    base.add(PUMP, title="Pump")
    return base


def test_an_object_with_an_id_and_embed_is_an_embedder(tmp_path: Path) -> None:
    """Lists of any length are enough; the dimension shows itself."""
    letters = Letters()
    with filled(tmp_path, embedder=letters) as base:
        found = base.search(QUESTION)

        assert base.embedder.id == "letters-1"
        assert base.embedder.dimension == len(LETTERS)
        assert [one.title for one in found] == ["Leave"]
        assert any(LEAVE in text for text in letters.passages)


def test_questions_go_through_embed_query_and_passages_do_not(tmp_path: Path) -> None:
    """Models such as e5 are used as they were trained."""
    model = Asymmetric()
    with filled(tmp_path, embedder=model) as base:
        asked_before = list(model.questions)
        base.search(QUESTION)
        base.why_not(base.documents()[1].document.id, QUESTION)

    assert asked_before == []
    assert set(model.questions) == {QUESTION}


def test_an_own_embedder_is_cautious_about_near_matches(tmp_path: Path) -> None:
    """Where nothing was measured, only what is nearly the same text is protected."""
    with opened(tmp_path, embedder=Letters()) as base:
        assert base.embedder.near_match_distance == 0.05


def test_thresholds_of_the_object_count(tmp_path: Path) -> None:
    """What its author measured is used."""
    model = Letters()
    model.near_match_distance = 0.12  # type: ignore[attr-defined]

    with opened(tmp_path, embedder=model) as base:
        assert base.embedder.near_match_distance == 0.12


def test_vectors_of_two_objects_never_mix(tmp_path: Path) -> None:
    """Another id is another model; the error says how to change to it."""
    filled(tmp_path, embedder=Letters()).close()
    other = Letters()
    other.id = "letters-2"

    with opened(tmp_path, embedder=other) as base:
        with pytest.raises(EmbedderMismatchError, match=r"reembed\(\)"):
            base.add("Another text about another thing.")

        assert base.reembed() == 2
        assert [one.title for one in base.search(QUESTION)] == ["Leave"]


class Nameless:
    """Embeds, but is called nothing."""

    def embed(self, texts: list[str]) -> list[list[float]]:
        return [[1.0]] * len(texts)


class Encoding:
    """Embeds by another name, as sentence-transformers does."""

    id = "encoding"

    def encode(self, texts: list[str]) -> list[list[float]]:
        return [[1.0]] * len(texts)


@pytest.mark.parametrize(
    ("models", "problem"),
    [
        ({"embedder": Encoding()}, "Encoding without `embed`; expected an object with"),
        ({"embedder": Nameless()}, "a Nameless that has no `id`"),
        ({"embedder": Letters}, "the class Letters; hand in an object of it"),
        ({"reranker": Letters()}, r"without `scores`; expected an object with `id`"),
        ({"judge": Letters()}, r"without `review`; expected one with `review\(query"),
        ({"reader": Letters()}, r"without `read`"),
        ({"embedder": 3}, "the embedder is a int without `embed`"),
    ],
)
def test_an_object_that_lacks_something_is_refused_at_once(
    tmp_path: Path, models: dict[str, Any], problem: str
) -> None:
    """The error says what was met, what is expected and where the examples are."""
    with pytest.raises(SettingsError, match=problem):
        opened(tmp_path, **models)

    assert not (tmp_path / "kb").exists()


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ([0.5, 0.5], "shape"),
        ([[0.0, 0.0]], "is zero"),
        ([[float("nan"), 1.0]], "NaN"),
        ([[1.0, 0.0], [1.0, 0.0]], "expected one row per text"),
        ("words", "no array of numbers"),
    ],
)
def test_what_is_no_vector_is_refused(
    tmp_path: Path, rows: object, problem: str
) -> None:
    """The error names the embedder, and nothing is stored."""

    class Broken(Letters):
        dimension = 2

        def embed(self, texts: list[str]) -> list[list[float]]:
            return cast("Any", rows)

    with (
        opened(tmp_path, embedder=Broken()) as base,
        pytest.raises(BadVectorError, match=problem),
    ):
        base.add(LEAVE)


def test_an_error_of_the_object_is_its_cause(tmp_path: Path) -> None:
    """It becomes a sentence with the name of the object; the original stays."""

    class Failing(Letters):
        def embed(self, texts: list[str]) -> list[list[float]]:
            msg = "out of tokens"
            raise ConnectionError(msg)

    with (
        opened(tmp_path, embedder=Failing()) as base,
        pytest.raises(EmbedderError, match=r"'letters-1' failed: Connec.*tokens") as e,
    ):
        base.add(LEAVE)

    assert isinstance(e.value.__cause__, ConnectionError)


class Judging:
    """Accepts what mentions a word."""

    def __init__(self, word: str) -> None:
        self.word = word

    def review(self, query: Query, candidates: Sequence[Candidate]) -> list[str]:
        return [
            "accept" if self.word in one.chunk.text else "reject" for one in candidates
        ]


def test_a_judge_that_is_handed_in_is_asked(tmp_path: Path) -> None:
    """Without a setting: who brings a judge wants its opinion."""
    with filled(tmp_path, embedder="hash", judge=Judging("pump")) as base:
        found = base.search(QUESTION)

    reasons = {str(one.reason) for one in found.selection.decisions()}
    assert not found
    assert "judge_rejected" in reasons


def test_a_setting_switches_the_judge_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The environment's word counts before what is implied."""
    monkeypatch.setenv("KEPT_VALIDATION_ENABLE", "false")

    with filled(tmp_path, embedder="hash", judge=Judging("pump")) as base:
        assert base.search(QUESTION)


def test_a_judge_may_only_accept_reject_or_be_unsure(tmp_path: Path) -> None:
    """Another word is an error, never a pass."""

    class Vague:
        def review(self, query: Query, candidates: Sequence[Candidate]) -> list[str]:
            return ["maybe"] * len(candidates)

    with (
        filled(tmp_path, embedder="hash", judge=Vague()) as base,
        pytest.raises(BackendError, match="'maybe', expected one of: accept"),
    ):
        base.search(QUESTION)


class Longest:
    """Ranks long passages first."""

    id = "longest"

    def scores(
        self, query: Query, candidates: Sequence[Candidate]
    ) -> NDArray[np.float64]:
        lengths = np.array([len(one.chunk.text) for one in candidates])
        return lengths / (lengths.max() + 1)


def test_a_reranker_orders_and_is_named_in_the_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its scores decide, and the stage says whose they were."""
    monkeypatch.setenv("KEPT_RERANK_FROM", "0")
    monkeypatch.setenv("KEPT_RERANK_BELOW", "1")

    with filled(tmp_path, embedder="hash", reranker=Longest()) as base:
        base.add("Leave: employees have days.", title="Short")
        found = base.search("days of leave of employees")
        again = base.search("days of leave of employees")

    [step] = [s for s in found.selection.trace if s.stage == "opportunistic_rerank"]
    assert step.facts["reranker"] == "longest"
    assert found[0].title == "Leave"
    assert found.fingerprints == again.fingerprints


def test_the_fingerprint_names_the_object_and_not_its_address(tmp_path: Path) -> None:
    """Two processes with the same models have the same configuration."""
    prints = []
    for place in ("one", "two"):
        folder = tmp_path / place
        with filled(folder, embedder="hash", judge=Judging("leave")) as base:
            prints.append(base.search(QUESTION).fingerprints.configuration)

    assert prints[0] == prints[1]


@pytest.mark.parametrize("role", ["judge", "reranker"])
def test_a_model_that_a_preset_never_calls_is_refused(
    tmp_path: Path, role: str
) -> None:
    """Nothing that was brought is ignored in silence."""
    model: Any = {"judge": Judging("pump"), "reranker": Longest()}[role]

    with pytest.raises(SettingsError, match=f"'grants' has no place for a {role}"):
        opened(tmp_path, preset="grants", embedder="hash", **{role: model})


PACKAGE = """
class Letters:
    id = "letters-packed"
    def embed(self, texts):
        return [[1.0 + text.lower().count(one) for one in "etaoin"] for text in texts]

class Longest:
    id = "longest-packed"
    def scores(self, query, candidates):
        return [0.5 for one in candidates]

def broken():
    raise OSError("no licence")

def exists(settings):
    return settings.store.endswith("there")
"""
POINTS = """
[kept.embedders]
letters = offered_models:Letters
broken = offered_models:broken
missing = offered_nowhere:Letters

[kept.rerankers]
longest = offered_models:Longest

[kept.stores]
attic = offered_models
"""


@pytest.fixture
def _package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Install a package with entry points, as pip would."""
    site = tmp_path / "site"
    facts = site / "offered_models-1.0.dist-info"
    facts.mkdir(parents=True)
    (site / "offered_models.py").write_text(PACKAGE)
    (facts / "METADATA").write_text("Name: offered-models\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text(POINTS)
    monkeypatch.syspath_prepend(site)
    yield
    sys.modules.pop("offered_models", None)


@pytest.mark.usefixtures("_package")
def test_a_package_offers_models_by_name(tmp_path: Path) -> None:
    """So that the command line and the service can use them too."""
    with filled(tmp_path, embedder="letters", reranker="longest") as base:
        assert base.embedder.id == "letters-packed"
        assert base.parts.reranker is not None
        assert base.parts.reranker.id == "longest-packed"
        assert base.search(QUESTION)


@pytest.mark.usefixtures("_package")
@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"embedder": "leters"}, "minilm, hash, openai, broken, letters, missing"),
        ({"reranker": "cohere"}, "endpoint-logits, llm, longest"),
    ],
)
def test_an_unknown_name_lists_those_that_are_known(
    tmp_path: Path, settings: dict[str, str], problem: str
) -> None:
    """Built in or offered by a package, in one list."""
    with pytest.raises(SettingsError, match=problem):
        opened(tmp_path, **settings)


@pytest.mark.usefixtures("_package")
@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("broken", "'broken' of kept.embedders could not be made .OSError: no licence"),
        ("missing", "in the package offered-models, which cannot be loaded"),
    ],
)
def test_a_package_that_fails_is_named(tmp_path: Path, name: str, problem: str) -> None:
    """The sentence says whose fault it is."""
    with (
        opened(tmp_path, embedder=name) as base,
        pytest.raises(SettingsError, match=problem),
    ):
        base.add(LEAVE)


@pytest.mark.usefixtures("_package")
def test_a_package_offers_a_store_by_its_scheme() -> None:
    """The scheme of the address is the name of the entry point."""
    with pytest.raises(kept.KeptError, match="there is no knowledge base in 'attic:"):
        kept.open("attic://house/nothing")
    with pytest.raises(SettingsError, match="milvus://…, attic://…"):
        kept.open("cellar://house")


def test_a_typed_program_with_models_of_its_own_works(tmp_path: Path) -> None:
    """Mypy checks the same file in strict mode."""
    example = Path(__file__).parents[2] / "docs" / "examples" / "own_models.py"

    output = runpy.run_path(str(example))["answered"](tmp_path / "kb")

    assert output.splitlines()[1:] == [
        "Employees have 28 days of leave.",
        "True",
        "['Leave']",
        "0 left",
    ]
