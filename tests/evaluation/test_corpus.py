"""A collection becomes a knowledge base once, and nothing of it is lost."""

from collections.abc import Callable
from pathlib import Path

import pytest

from kept.errors import InputError
from kept.evaluation.collection import load_collection
from kept.evaluation.corpus import Corpus, cache_folder, corpus_of
from kept.knowledge_base.base import KnowledgeBase
from kept.knowledge_base.settings import Settings

Steps = list[tuple[int, int]]


class InterruptedHereError(Exception):
    """Stands for whatever ends a process in the middle."""


def counting(steps: Steps) -> Callable[[str, int, int], None]:
    """Return a callback that records the progress."""

    def on_step(step: str, done: int, total: int) -> None:
        steps.append((done, total))

    return on_step


def documents(corpus: Corpus) -> int:
    """Return how many documents the knowledge base holds."""
    return len(corpus.base.store.documents(corpus.base.tenant))


def test_a_collection_is_ingested_once(folder: Path, settings: Settings) -> None:
    """The second time, everything is there already."""
    collection = load_collection(folder)
    first: Steps = []
    second: Steps = []

    with corpus_of(collection, settings, on_step=counting(first)) as corpus:
        kept = corpus.folder
    with corpus_of(collection, settings, on_step=counting(second)) as corpus:
        held = documents(corpus)

    assert kept.parent == cache_folder()
    assert first[-1] == (6, 6)
    assert (second, held) == ([], 6)


def test_an_interrupted_build_goes_on(folder: Path, settings: Settings) -> None:
    """What was taken in before the interrupt is not embedded again."""
    collection = load_collection(folder)

    def interrupt(step: str, done: int, total: int) -> None:
        raise InterruptedHereError

    with (
        pytest.raises(InterruptedHereError),
        corpus_of(collection, settings, on_step=interrupt),
    ):
        pass
    with corpus_of(collection, settings, on_step=counting([])) as corpus:
        statuses = [r.receipt.status for r in corpus.base.store.ledger("evaluation")]
        held = documents(corpus)

    assert held == 6
    assert statuses.count("created") == 6


def test_a_repeated_text_keeps_both_its_ids(
    write: Callable[..., Path], settings: Settings
) -> None:
    """Two passages with the very same text are one document with two names."""
    text = "The depot is closed on public holidays and on the last Friday of June."
    twice = [{"_id": name, "title": "", "text": text} for name in ("first", "again")]
    collection = load_collection(write(passages=twice))

    with corpus_of(collection, settings, on_step=counting([])) as corpus:
        names = list(corpus.names.values())

    assert ("first", "again") in names
    assert corpus.lost == 0


def test_nearly_equal_texts_stay_apart(
    write: Callable[..., Path], settings: Settings
) -> None:
    """An evaluation merges nothing that its judgements distinguish."""
    text = "The depot is closed on public holidays and on the last Friday of June"
    near = [{"_id": str(i), "title": "", "text": text + "." * i} for i in range(2)]
    collection = load_collection(write(passages=near))

    with corpus_of(collection, settings, on_step=counting([])) as corpus:
        held = documents(corpus)

    assert held == 8


def test_passages_without_text_are_counted(
    write: Callable[..., Path], settings: Settings
) -> None:
    """A title stands for a missing text; with neither there is nothing to take in."""
    empty = [
        {"_id": "title only", "title": "Opening hours of the depot", "text": " "},
        {"_id": "nothing", "title": "", "text": ""},
    ]
    collection = load_collection(write(passages=empty))

    with corpus_of(collection, settings, on_step=counting([])) as corpus:
        names = [name for names in corpus.names.values() for name in names]

    assert "title only" in names
    assert corpus.lost == 1


def test_another_cut_is_another_corpus(folder: Path, settings: Settings) -> None:
    """The cache knows the embedder and the way texts are cut."""
    collection = load_collection(folder)
    shorter = settings.model_copy(update={"chunk_chars": 60})

    with corpus_of(collection, settings, on_step=counting([])) as corpus:
        whole = corpus.folder
    with corpus_of(collection, shorter, on_step=counting([])) as corpus:
        cut = corpus.folder

    assert whole != cut


def test_a_folder_with_another_collection_is_refused(
    write: Callable[..., Path], settings: Settings, tmp_path: Path
) -> None:
    """One folder holds one collection."""
    store = tmp_path / "store"
    more = [{"_id": "more", "title": "", "text": "Owls hunt at night, mostly mice."}]
    with corpus_of(
        load_collection(write()), settings, store=store, on_step=counting([])
    ):
        pass
    other = load_collection(write("other", passages=more))

    with (
        pytest.raises(InputError, match="another collection"),
        corpus_of(other, settings, store=store, on_step=counting([])),
    ):
        pass


def test_a_knowledge_base_of_another_kind_is_left_alone(
    folder: Path, settings: Settings, tmp_path: Path
) -> None:
    """An evaluation never writes into a knowledge base that it did not make."""
    own = settings.model_copy(update={"store": str(tmp_path / "own")})
    with KnowledgeBase(own) as base:
        base.add("This is mine.")

    with (
        pytest.raises(InputError, match="no evaluation has made"),
        corpus_of(
            load_collection(folder),
            settings,
            store=tmp_path / "own",
            on_step=counting([]),
        ),
    ):
        pass


def test_a_broken_marker_is_another_collection(
    folder: Path, settings: Settings, tmp_path: Path
) -> None:
    """A folder with unknown content is not used."""
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "collection.json").write_text("{", "utf-8")

    with (
        pytest.raises(InputError, match="delete it"),
        corpus_of(
            load_collection(folder),
            settings,
            store=tmp_path / "store",
            on_step=counting([]),
        ),
    ):
        pass


def test_without_a_variable_the_cache_is_the_users(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """``KEPT_EVAL_CACHE`` moves the cache elsewhere."""
    monkeypatch.delenv("KEPT_EVAL_CACHE")

    assert cache_folder().name == "evaluation"
