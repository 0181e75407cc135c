"""Show an answer as a notebook does, and count its rows as a data frame."""

import tempfile
from pathlib import Path

import kept


def looked_at(folder: Path) -> str:
    """Fill a knowledge base, search it, and return the explanation of the result."""
    with kept.open(folder, create=True, embedder="hash") as kb:
        kb.add("Employees have 28 days of leave, five more after ten years.")
        kb.add("Invoice INV-49302 was paid on 3 March.")
        found = kb.search("How many days of leave do employees have?")
        frame = found.to_pandas()
        selected = int((frame["state"] == "selected").sum())
        return f"{found!r}\n{found.explain()}\n{selected} selected"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        print(looked_at(Path(scratch)))
