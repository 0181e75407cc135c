"""A program with models of its own, as a type checker sees it."""

import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path

import kept
from kept import Candidate, Query


class Letters:
    """Embeds by counting letters."""

    id = "letters-1"

    def embed(self, texts: list[str]) -> list[list[float]]:
        """Return a list of numbers for each text."""
        return [[1.0 + text.count(one) for one in "etaoinshrdlu"] for text in texts]


class Everything:
    """Accepts every passage."""

    def review(self, query: Query, candidates: Sequence[Candidate]) -> list[str]:
        """Return a word for each candidate."""
        return ["accept" for _ in candidates]


def answered(folder: Path) -> str:
    """Fill a knowledge base, search it in both ways, and change what is in it."""
    question = "how many days of leave do employees have"
    with kept.open(folder, create=True, embedder=Letters(), judge=Everything()) as kb:
        kb.add("Employees have 28 days of leave.", metadata={"year": 2025})
        found = kb.search(question, k=3, filters={"metadata": {"year": 2025}})
        again = asyncio.run(kb.asearch(question))
        [stored] = kb.documents()
        kb.update(stored.id, title="Leave")
        titles: list[str] = [passage.title for passage in kb.search(question)]
        kb.delete(stored.id)
        return (
            f"{found}\n{str(found) == str(again)}\n{titles}\n{len(kb.documents())} left"
        )


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        print(answered(Path(scratch)))
