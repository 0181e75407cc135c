"""Taking texts into a store by the ingest path, for tests of stores."""

import hashlib
from collections.abc import Iterable

from kept.ingest.cutting import Cutting
from kept.ingest.duplicates import DuplicateRules
from kept.ingest.ingestion import Handed, Ingest
from kept.ingest.receipts import Receipt, Source
from kept.kernel.ports import Embedder
from kept.models.embedders.hash import HashEmbedder
from kept.search.ports import Store
from kept.text.draft import Draft

HASH = HashEmbedder()
LONGEST_NAME = 200
ONLY_EXACT = DuplicateRules(cosine=1.0)


def take(
    store: Store, tenant: str, texts: Iterable[str], embedder: Embedder = HASH
) -> list[Receipt]:
    """Take texts in, each under its first words, and return the receipts."""
    store.claim(embedder.id, embedder.dimension)
    path = Ingest(store.intake(tenant), embedder, tenant, ONLY_EXACT, Cutting())
    return list(path(_handed(text) for text in texts))


def long_text(words: int) -> str:
    """Return a text that cannot be made much shorter by packing it."""
    digests = (hashlib.sha256(str(n).encode()).hexdigest() for n in range(words))
    return " ".join(digest[:10] for digest in digests)


def _handed(text: str) -> Handed:
    source = Source(uri=text[:LONGEST_NAME], raw_sha256=text)
    return Handed(source=source, read=lambda: Draft(text=text))


def found_by(store: Store, tenant: str, question: str) -> list[str]:
    """Return the texts that both legs find for a question, in order of spelling."""
    [vector] = HASH.embed([question])
    with store.shelf(tenant) as shelf:
        terms = shelf.weigh(question)
        legs = {
            "dense": shelf.dense_leg(vector, 9, None),
            "keyword": shelf.keyword_leg(terms, 9, None),
        }
        return sorted(c.chunk.text for c in shelf.candidates(vector, terms, legs))
