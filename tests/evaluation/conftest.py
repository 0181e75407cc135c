"""What the tests of evaluating share: a small judged collection, on disk."""

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from kept.evaluation.corpus import FOLDER_VARIABLE
from kept.knowledge_base.settings import Settings

TOPICS = {
    "leave": "Employees have thirty days of annual leave, booked with their manager.",
    "travel": "Train travel is reimbursed in second class upon receipt of the ticket.",
    "bees": "A colony of honey bees survives the winter clustered around its queen.",
    "bridge": "The iron bridge over the estuary was rebuilt after the flood of 1953.",
    "bread": "Sourdough bread rises slowly, because wild yeast is slower than baker's.",
    "invoice": "Invoice INV-49302 was paid on the third of March by bank transfer.",
}
QUESTIONS = {
    "q1": ("How many days of annual leave do employees have?", {"leave": 2}),
    "q2": ("Which class of train travel is reimbursed?", {"travel": 1}),
    "q3": ("How does a colony of honey bees survive the winter?", {"bees": 1}),
    "q4": ("When was the iron bridge over the estuary rebuilt?", {"bridge": 1}),
}
PROBES = ("Who won the football world cup in Brazil?", "Which planet has most moons?")

Write = Callable[..., Path]


def json_file(path: Path, rows: Iterable[Mapping[str, Any]]) -> Path:
    """Write JSON lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


@pytest.fixture(autouse=True)
def _cache_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep what is built out of the user's cache."""
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "cache"))


@pytest.fixture
def settings() -> Settings:
    """Return settings on the hash embedder."""
    return Settings.of({"embedder": "hash"})


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Return a function that writes a collection with more passages and questions."""

    def written(
        name: str = "small",
        passages: Iterable[Mapping[str, Any]] = (),
        questions: Iterable[Mapping[str, Any]] = (),
        judgements: Iterable[tuple[str, str, int]] = (),
    ) -> Path:
        folder = tmp_path / name
        topics = [{"_id": k, "title": k.title(), "text": v} for k, v in TOPICS.items()]
        json_file(folder / "corpus.jsonl", [*topics, *passages])
        asked = [{"_id": k, "text": text} for k, (text, _) in QUESTIONS.items()]
        json_file(folder / "queries.jsonl", [*asked, *questions])
        judged = [(q, p, g) for q, (_, gs) in QUESTIONS.items() for p, g in gs.items()]
        lines = [f"{q}\t{p}\t{g}\n" for q, p, g in [*judged, *judgements]]
        (folder / "qrels").mkdir()
        head = "query-id\tcorpus-id\tscore\n"
        (folder / "qrels" / "test.tsv").write_text(head + "".join(lines), "utf-8")
        return folder

    return written


@pytest.fixture
def folder(write: Write) -> Path:
    """Return the folder of a small judged collection."""
    return write()


@pytest.fixture
def probes(tmp_path: Path) -> Path:
    """Return a file of questions that the collection does not answer."""
    return json_file(tmp_path / "probes.jsonl", [{"question": q} for q in PROBES])
