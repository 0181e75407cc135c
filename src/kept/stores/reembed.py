"""Re-embedding a live store: resumable, readable throughout, swapped at the end."""

from collections.abc import Callable

from kept.ingest.cutting import titled
from kept.kernel.ports import Embedder
from kept.models.embedders import checked
from kept.stores.ports import Reembedding

BATCH = 64

Report = Callable[[int, int], None]


def unreported(done: int, total: int) -> None:
    """Ignore progress: *done* of *total* chunks."""


def reembed(work: Reembedding, embedder: Embedder, report: Report) -> int:
    """Give every chunk a vector of *embedder*, and return how many were made.

    What was made before an interruption is kept. Documents that come in meanwhile
    are caught up before the swap.
    """
    work.begin()
    made = 0
    report(*work.progress())
    while True:
        rows = work.missing(BATCH)
        if rows:
            passages = [titled(title, text) for _, title, text in rows]
            vectors = checked(embedder.embed(passages), passages, embedder.id)
            work.add(rows, vectors)
            made += len(rows)
            report(*work.progress())
        elif work.swap():
            return made
